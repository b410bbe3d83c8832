"""Pages of a labelling project: guidelines, the project page, the data card."""
