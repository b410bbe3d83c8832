"""Masked language models for NDD: counts, or a transformer."""
