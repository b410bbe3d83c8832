"""Ranking graded groups with a trained model."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline import cli, warehouse
from pipeline.tasks import impscore, rank


def test_model_and_baselines(tables: Path, tmp_path: Path) -> None:
    """Each baseline is what its rule gives by hand, and the model's row stands first with values in [-1, 1]."""
    for source in impscore.play("2026-11-19"):
        impscore.build_pairs(source, "2026-11-19")
    impscore.train("2026-11-19", epochs=1)
    path = tmp_path / "g.jsonl"
    entries = [
        {"group": "up", "sentences": ["a", "bb!", "cccc!!"]},
        {"group": "down", "sentences": ["cccc", "bb", "a?"]},
    ]
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    found = {row["by"]: row for row in rank.rank(path).to_dicts()}
    assert list(found) == ["model", "length", "punctuation"]
    # "up": all three pairs rise; "down": two of three pairs fall, "bb" and "a?" tie
    assert found["length"]["kendall_tau"] == pytest.approx((3 / 3 + (0 - 2) / 3) / 2, abs=1e-6)
    assert found["punctuation"]["kendall_tau"] == pytest.approx((3 / 3 + 2 / 3) / 2, abs=1e-6)
    assert -1 <= found["model"]["kendall_tau"] <= 1
    printed = CliRunner().invoke(cli.app, ["rank", "--groups", str(path), "--json"]).stdout.splitlines()
    assert json.loads(printed[0])["groups"] == 2
    assert {"kendall_tau", "spearman_rho"} <= set(json.loads(printed[0]))
    warehouse.close()
