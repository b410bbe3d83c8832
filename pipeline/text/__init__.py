"""Text: language, words."""
