"""What all benchmarks share: CPU seconds, a comparison with a reference in the same run, and a process of its own."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "UNDERTONE_BENCH_RESULTS"  # the file to which each comparison adds a line of JSON


def cpu(work: Callable[[], Any]) -> float:
    """Measure CPU seconds of this process, which a busy machine inflates less than wall time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(
    name: str, rows: int, ours: Callable[[], Any], reference: Callable[[], Any], reference_name: str, rounds: int = 5
) -> None:
    """Run both in turns; print rows a CPU second by the medians, and how many times faster ours is."""
    assert rows, f"{name}: there is nothing to do"
    our_seconds, reference_seconds = [], []
    for _ in range(rounds):
        reference_seconds.append(cpu(reference))
        our_seconds.append(cpu(ours))
    report(name, rows, statistics.median(our_seconds), reference_name, statistics.median(reference_seconds))


def report(name: str, rows: int, seconds: float, reference_name: str, reference_seconds: float) -> None:
    """Print a comparison, and add its ratio to the results of `make bench`."""
    ratio = reference_seconds / seconds
    print(f"{name:34} {rows / seconds:>11,.0f} rows/cpu-s   {reference_name:44} "
          f"{rows / reference_seconds:>11,.0f}   ours is {ratio:5.2f}x as fast", flush=True)  # fmt: skip
    if path := os.environ.get(RESULTS):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": f"{name} / {reference_name}", "ratio": round(ratio, 3)}) + "\n")


def run_apart(call: str, **settings: str) -> Any:
    """Run a call of `module.function(...)` of tests.bench in a process of its own; return its result as JSON."""
    module = call.partition(".")[0]
    code = f"import json; from tests.bench import {module}; print(json.dumps({call}))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    process = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Most memory this process has held, MB. `ru_maxrss` is never less than that of the process that started it."""
    return int(Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) / 1024
