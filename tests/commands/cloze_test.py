"""The commands about cloze questions, run as scripts run them."""

import json
from pathlib import Path

from commands.conftest import Run


def test_audit(run: Run, tmp_path: Path) -> None:
    """A row a baseline; items with the same option twice are left out and told of; a broken file is one line."""
    item = {"article": "It rained.", "question": "They lost @placeholder.", "label": 1}
    rows = [
        ["peace", "hope", "joy", "rain", "dust"],
        ["grief", "hope", "time", "luck", "idea"],
        ["a", "b", "c", "d", "A "],
    ]
    lines = [json.dumps({**item, **{f"option_{i}": word for i, word in enumerate(row)}}) for row in rows]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run("cloze", "audit", path, "--json")
    assert done.code == 0, done.err
    assert "left out, as two of their options are the same: 1" in done.err
    found = {row["baseline"]: row for row in map(json.loads, done.out.splitlines())}
    assert found["often_right"]["accuracy"] == 1.0  # hope is right in the other item
    assert found["often_right"]["n"] == 2
    path.write_text('{"article": "x"}\n', encoding="utf-8")
    done = run("cloze", "audit", path)
    assert (done.code, "line 1" in done.err) == (2, True)
