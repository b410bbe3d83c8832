"""Training for article commenting: commenters, relevance, retrieval and the quality scorer."""
