"""Models for ReCAM: readers of cloze items and the features of words."""
