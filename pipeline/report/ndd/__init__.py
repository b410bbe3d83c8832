"""The page of NDD."""
