"""The page of article commenting."""
