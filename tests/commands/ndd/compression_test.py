"""The command about sentence compression, run as scripts run it."""

import json
from pathlib import Path

from tests.commands.conftest import Run


def test_baselines_and_answers(run: Run, tmp_path: Path) -> None:
    """Without answers there are the baselines; with them they come first; what was left out is told."""
    path = tmp_path / "data.jsonl"
    rows = [{"text": "the old bus is late", "compressed": "the bus is late"}, {"text": "so", "compressed": "never"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    alone = run("evaluate", "compression", "--data", path)
    assert alone.code == 0, alone.err
    assert "read: left out 1 as not_aligned" in alone.err
    assert "f1_macro" in alone.out
    path.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    result = run("evaluate", "compression", "--data", path, "--predictions", path, "--json")
    first = json.loads(result.out.splitlines()[0])
    assert (first["by"], first["metric"], first["value"]) == ("answers", "f1_macro", 1.0)
    assert run("evaluate", "compression", "--data", tmp_path / "none.jsonl").code == 2
