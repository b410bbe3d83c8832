"""How long a part of Airflow waits for SQLite's lock.

At SQLite's 5 seconds a burst of runs ended the scheduler for good. The api-server stays at them: it writes its log in its
event loop, and what holds the lock may be a request that needs the loop to end.
"""

import sys

CONNECT_ARGS = {"timeout": 5 if sys.argv[1:2] == ["api-server"] else 60}  # seconds
