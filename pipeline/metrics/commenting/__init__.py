"""Metrics of automatic metrics and scorers of comments: correlation with grades of people."""
