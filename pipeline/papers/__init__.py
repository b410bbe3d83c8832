"""What the papers print: their tables and claims, one module a paper."""
