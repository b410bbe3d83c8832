"""Erasing people: whom a request is about, what comes from them, and how each store loses it."""
