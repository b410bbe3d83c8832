"""The ratios of `make bench` beside those kept in the repository, so that what became slower is seen."""

import json
from collections.abc import Mapping
from pathlib import Path

KEPT = Path(__file__).with_name("ratios.json")
FALL = 0.9  # a ratio below this share of the kept one is a regression


def read_results(path: Path) -> dict[str, float]:
    """Ratios by name of the comparisons that a run has written, a JSON object a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row["ratio"] for row in map(json.loads, lines)}


def find_regressions(ratios: Mapping[str, float], kept: Mapping[str, float]) -> list[str]:
    """List a line for each comparison whose ratio fell by more than a tenth."""
    return [
        f"{name}: {kept[name]:.2f} -> {ratio:.2f} ({ratio / kept[name] - 1:+.0%})"
        for name, ratio in ratios.items()
        if name in kept and ratio < FALL * kept[name]
    ]
