"""Training for ReCAM: readers of cloze items, the abstractness scorer, adapted encoders."""
