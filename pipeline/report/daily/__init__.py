"""Pages of the daily chain: the report of a day and the health of the pipeline."""
