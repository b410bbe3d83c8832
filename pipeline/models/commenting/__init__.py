"""Models for article commenting: commenters, relevance, similar articles, the quality scorer."""
