"""How long Airflow on SQLite waits for a lock: at SQLite's 5 seconds a burst of runs ended the scheduler for good."""

CONNECT_ARGS = {"timeout": 120}  # seconds
