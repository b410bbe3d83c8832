"""Metrics of cloze sets and their readers."""
