"""Metrics of labels: agreement of raters, what labels look like together, how well words predict them."""
