"""How long a part of Airflow waits for SQLite's lock.

At SQLite's 5 seconds a burst of runs ended the scheduler for good. The api-server keeps them: it writes its log in its
event loop, and the lock may be held by a request that needs the loop to end.
"""

import sys

CONNECT_ARGS = {"timeout": 5 if sys.argv[1:2] == ["api-server"] else 60}  # seconds
