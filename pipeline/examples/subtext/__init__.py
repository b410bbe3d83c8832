"""Examples for CSD: comments in context with a label, and what comments mean."""
