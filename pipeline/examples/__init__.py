"""Examples: what models learn from."""
