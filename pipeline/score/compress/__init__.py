"""Text compression by the loss from dropped words (NDD, section 4)."""
