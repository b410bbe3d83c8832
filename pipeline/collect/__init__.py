"""Collecting: importers of files people have, adapters of five sites' JSON, one polite fetcher, and what every row
goes through on the way in: anonymise, clean, deduplicate.
"""
