"""Readers of files, one module a format: each yields the rows of a file in chunks of bounded size."""
