"""A process of its own that imports files when told to, so that tests can kill it or race it.

Started as `python importing.py`; it says `ready`, then for each line of JSON on its input (arguments of
`import_files`) it imports and answers `done`, or the name of the error.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def start(home: Path) -> "subprocess.Popen[str]":
    """A process with that home, its imports done."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())],
        env={**os.environ, "UNDERTONE_HOME": str(home), "POLARS_MAX_THREADS": "2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert answer(child) == "ready"
    return child


def ask(child: "subprocess.Popen[str]", paths: list[Path], source: str | None, day: str, origin: str) -> None:
    """Tell the process to import."""
    assert child.stdin is not None
    job: dict[str, Any] = {"paths": [str(p) for p in paths], "source": source, "day": day, "origin": origin}
    child.stdin.write(json.dumps(job) + "\n")
    child.stdin.flush()


def answer(child: "subprocess.Popen[str]") -> str:
    """What it says next; the empty text after its end."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def stop(child: "subprocess.Popen[str]") -> None:
    """Kill the process, if it lives, and let go of its pipes."""
    child.kill()
    child.communicate()


def main() -> None:
    """Answer until the input ends."""
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
    from pipeline import warehouse
    from pipeline.errors import UndertoneError
    from pipeline.tasks.collect import import_files

    warehouse.snapshot("comments")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            import_files([Path(p) for p in job["paths"]], job["source"], job["day"], origin=job["origin"])
            said = "done"
        except UndertoneError as why:
            said = type(why).__name__
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
