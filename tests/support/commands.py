"""Commands of `undertone` as a person runs them, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence

_RUN = """
import json, sys
from pipeline.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as error:
        if error.code:
            raise
"""


def run(*commands: Sequence[object], umask: int = -1) -> "subprocess.CompletedProcess[str]":
    """Run commands one after another in one process, whose start takes longer than they do; a failure ends it."""
    words = json.dumps([[*map(str, command)] for command in commands])
    return subprocess.run([sys.executable, "-c", _RUN, words], capture_output=True, text=True, check=False, umask=umask)
