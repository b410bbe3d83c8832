"""Text compression by what is lost when words are dropped (NDD, section 4)."""
