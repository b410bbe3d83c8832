"""Studies: the ablation, the sensitivity grid, what a model says of data sets, and their page."""
