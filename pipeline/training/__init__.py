"""Training: fit models and store them by content hash."""
