"""Upkeep of the tables: check, compact, sweep, and recovery of a lost catalog."""
