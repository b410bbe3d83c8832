"""Metrics: numbers about models and texts, as plain functions over arrays."""
