"""Erase people's data: what a request is about, what was derived from it, and how each store is erased."""
