"""Examples for ImpScore: pairs, graded groups and choice questions."""
