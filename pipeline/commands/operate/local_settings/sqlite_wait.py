"""How long a part of Airflow waits for SQLite's lock.

At SQLite's 5 seconds a burst of runs ended the scheduler. The api-server keeps them: it logs in its event loop.
"""

import sys

CONNECT_ARGS = {"timeout": 5 if sys.argv[1:2] == ["api-server"] else 60}  # seconds
