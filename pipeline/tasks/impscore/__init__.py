"""ImpScore: pairs, training, ranking, studies and their page."""
