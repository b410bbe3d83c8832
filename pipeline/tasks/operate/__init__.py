"""Catch up on days: run a range again, and make what is missing, for all families."""
