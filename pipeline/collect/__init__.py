"""Collecting: importers, adapters of five sites' JSON, one polite fetcher; then anonymise, clean, deduplicate."""
