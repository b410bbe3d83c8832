"""Models for CSD: the subtext recogniser, and what writes the meaning of a comment."""
