"""Make tests/support/home_0_1_0.tar.xz: a home as version 0.1.0 (commit d5b3494) leaves it, from the sample alone.

    git worktree add OLD d5b3494 && cd OLD && uv venv
    uv pip install -c constraints.txt -e '.[train]'
    .venv/bin/python NEW/tests/support/make_home_0_1_0.py

The home's path is as long as that of any home into which a test unpacks it: Iceberg names files by absolute paths, and
in manifests that are not compressed one path can stand for another of the same length.
"""

import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HOME = Path("/tmp/undertone-0.1.0-".ljust(200, "_"))  # noqa: S108
DAY = "2026-11-19"
ARCHIVE = Path(__file__).with_name("home_0_1_0.tar.xz")


def hash_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """Hash rows in any order."""
    lines = sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def main(service: str) -> None:
    """Run commands of version 0.1.0 and pack what they leave."""
    os.environ |= {"UNDERTONE_HOME": str(HOME), "UNDERTONE_USER_KEY": "0.1.0", "UNDERTONE_LLM_URL": service}
    from pyiceberg.table import TableProperties

    TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT = "null"
    import pipeline
    from pipeline import sample, warehouse
    from pipeline.cli import app

    HOME.mkdir()
    comments = HOME / "comments.csv"
    threads = map(json.loads, sample.THREADS.read_text(encoding="utf-8").splitlines()[:3])
    rows = [
        f"{thread['article_id']},{row['comment_id']},{row['text']}" for thread in threads for row in thread["comments"]
    ]
    comments.write_text("\n".join(["thread_id,comment_id,text", *rows]), encoding="utf-8")
    for command in (
        f"import {comments} --source forum --day {DAY}",
        f"collect --path sample --source zhihu --day {DAY}",
        f"tokenize --day {DAY}",
        f"pairs play --day {DAY}",
        "pairs build --source sample_en",
        f"train impscore --profile paper --set features=8 --epochs 2 --promote --day {DAY}",
        f"score day {DAY}",
        f"label export --day {DAY} --limit 12",
        *["label collect --tool simulated"] * 4,
        f"label release --licence CC-BY-4.0 --day {DAY}",
        f"recover {comments} --ask m --limit 3",
    ):
        app(command.split(), standalone_mode=False)
    tables = {name: warehouse.scan(name).collect() for name in warehouse.names()}
    source = (Path(pipeline.__file__).parent / "settings.py").read_text(encoding="utf-8")
    expected = {
        "tables": {name: [frame.height, hash_rows(frame.iter_rows(named=True))] for name, frame in tables.items()},
        "columns": {name: frame.columns for name, frame in tables.items()},
        "settings": sorted(set(re.findall(r'\("([A-Z_]{3,})"', source))),
    }
    (HOME / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    warehouse.close()
    shutil.rmtree(HOME / "scratch")
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        archive.add(HOME, "home")
    shutil.rmtree(HOME)


if __name__ == "__main__":
    from servers.llm_server import Server  # beside this file

    with Server(write=lambda *_: json.dumps({"plain": "照字面", "meaning": "话里有话"})) as server:
        main(server.url)
