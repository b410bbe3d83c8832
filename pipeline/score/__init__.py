"""Scoring: applying a model or metric to texts, in batches."""
