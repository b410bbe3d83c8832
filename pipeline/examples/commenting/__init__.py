"""Examples for article commenting: articles with their comments, split."""
