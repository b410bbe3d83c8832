"""Generated comments look like the real ones, a fallen ratio is listed, and the script for a GPU runs on a CPU."""

import os
import re

import numpy as np
import pytest

from tests.bench import gpu
from tests.bench.ratios import find_regressions
from tests.bench.texts import generate_comments, load_comments

COUNT = 50_000


def describe(texts: list[str]) -> dict[str, float]:
    """Quantiles of the length; shares of distinct texts and of texts without a Chinese character."""
    lengths = np.quantile([*map(len, texts)], (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)).tolist()
    foreign = sum(not re.search("[\u4e00-\u9fff]", text) for text in texts)
    shares = {"distinct": len({*texts}) / len(texts), "foreign": foreign / len(texts)}
    return {**{f"length {place}": length for place, length in enumerate(lengths)}, **shares}


def test_generated_comments_have_the_distributions_of_real_ones() -> None:
    """Quantiles of length differ by a tenth or a character at most, shares of copies and languages by a hundredth."""
    if "UNDERTONE_DATA" not in os.environ:
        pytest.skip("UNDERTONE_DATA names no real data")
    real = describe(load_comments(COUNT))
    for name, value in describe([*generate_comments(COUNT)]).items():
        assert value == pytest.approx(real[name], rel=0.1, abs=1 if name.startswith("length") else 0.01), name


def test_a_ratio_that_fell_by_more_than_a_tenth_is_listed() -> None:
    """A new comparison, a small fall and a rise are not."""
    kept = {"import": 1.0, "score": 2.0, "read": 3.0}
    lines = find_regressions({"import": 0.89, "score": 1.81, "read": 4.0, "new": 0.1}, kept)
    assert lines == ["import: 1.00 -> 0.89 (-11%)"]


def test_the_script_for_a_gpu_runs_on_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    """A named bench prints its lines; a name that there is not is refused."""
    gpu.main(["readers", "--device", "cpu", "--small"])
    assert len(capsys.readouterr().out.splitlines()) == 3
    with pytest.raises(SystemExit):
        gpu.main(["unknown"])
