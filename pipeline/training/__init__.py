"""Training: fitting models, keeping them by content hash."""
