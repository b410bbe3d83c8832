"""Neighbouring Distribution Divergence: how far two sentences that share words are apart (NDD, sections 2 and 3)."""
