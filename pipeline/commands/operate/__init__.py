"""Commands that operate the pipeline: Airflow on this machine, upkeep, backfill, erasure, queries."""
