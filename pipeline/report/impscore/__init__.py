"""The page of studies of a model."""
