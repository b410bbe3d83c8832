"""Data sets of sentence compression, and compressions measured beside the baselines."""

import json
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.tasks.ndd import compressions

ROWS = [
    {"words": ["the", "old", "bus", "is", "late"], "kept": [True, False, True, True, True], "split": "test"},
    {"words": ["we", "really", "wait"], "kept": [True, False, True], "split": "train"},
]


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows, one a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_compressions_are_measured_beside_baselines(tmp_path: Path) -> None:
    """Keeping what people keep has F1 1 and no difference in ratio; people's own and the baselines follow."""
    data = write_rows(tmp_path / "data.jsonl", ROWS)
    rows = compressions.read_data_set(data).rows
    numbers = compressions.measure_predictions(rows, compressions.read_predictions(data, rows))
    values = {(row["by"], row["metric"]): row["value"] for row in numbers.iter_rows(named=True)}
    assert values["answers", "f1_macro"] == 1
    assert values["answers", "ratio_delta"] == 0
    assert values["unedited", "ratio"] == 1
    assert (values["gold", "length"], values["unedited", "length"]) == (3, 4)  # words: 4 and 2; 5 and 3
    assert values["gold", "ratio_macro"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert values["unedited", "f1_macro"] == pytest.approx((8 / 9 + 4 / 5) / 2)
    names = ["answers", "gold", "unedited", "head", "tail", "random"]
    summary = compressions.summarize_measures(numbers)
    assert summary["by"].to_list() == names
    assert summary.columns[:3] == ["by", "f1_macro", "ratio"]  # no F1 without its CR, and copying next to it (NDD-26)
    assert compressions.read_data_set(data, split="test").rows.height == 1


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Another format, another part, other sentences and too few of them are named."""
    data = write_rows(tmp_path / "data.jsonl", ROWS)
    rows = compressions.read_data_set(data).rows
    with pytest.raises(BadInput, match="no source 'bnc'; there are own, google, broadcast, colloquial"):
        compressions.read_data_set(data, "bnc")
    with pytest.raises(BadInput, match="no rows of the part 'dev'; there are test, train"):
        compressions.read_data_set(data, split="dev")
    short = write_rows(tmp_path / "few.jsonl", ROWS[:1])
    with pytest.raises(BadInput, match=r"few.jsonl: expected 2 sentences, as in the data, found 1"):
        compressions.read_predictions(short, rows)
    different = write_rows(tmp_path / "other.jsonl", [ROWS[0], {**ROWS[1], "words": ["we", "never", "wait"]}])
    with pytest.raises(BadInput, match="row 2: expected the words of 'we really wait', found 'we never wait'"):
        compressions.read_predictions(different, rows)
    unusable = write_rows(tmp_path / "none.jsonl", [ROWS[0], {**ROWS[1], "kept": [False, False, False]}])
    with pytest.raises(BadInput, match=r"none.jsonl:2: nothing_kept; expected a compression of each sentence"):
        compressions.read_predictions(unusable, rows)
