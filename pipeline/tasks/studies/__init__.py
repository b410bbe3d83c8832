"""Studies: the ablation, the sensitivity grid, descriptions of data sets, and their page."""
