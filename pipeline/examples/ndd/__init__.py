"""Examples for NDD: sentences with compressions, edits, and pairs of similar sentences."""
