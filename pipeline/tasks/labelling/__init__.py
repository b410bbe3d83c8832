"""Labelling projects: comments to raters, labels to annotations, annotations to a release."""
