"""The page of a cloze set and its readers."""
