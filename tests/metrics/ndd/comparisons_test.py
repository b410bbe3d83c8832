"""Perplexity and cosine."""

import numpy as np
import pytest
import torch

from pipeline.metrics.ndd import distance
from tests.support.rows.masked import Drawn


class Numbered(Drawn):
    """A model whose surprisals and vectors are the words."""

    def surprisals(self, sentences: list[list[str]]) -> list[np.ndarray]:
        return [np.array([float(word) for word in words]) for words in sentences]

    def sentence_vectors(self, sentences: list[list[str]]) -> torch.Tensor:
        return torch.tensor([[float(word) for word in words] for words in sentences])


def test_perplexity_and_cosine_by_hand() -> None:
    """Mean of -log p and its exponential (NDD-01); cosines of the first states are 1, 0 and -1 (NDD-02)."""
    rows = distance.perplexity(Numbered(), [["1", "3"], []])
    assert rows["log_perplexity"].to_list() == [2, None]
    assert rows["perplexity"].to_list() == [pytest.approx(np.exp(2)), None]
    assert distance.perplexity_change(Numbered(), [["1", "3"]], [["3"]]).tolist() == [1]
    first, second = [["1", "0"], ["1", "0"], ["1", "1"]], [["2", "0"], ["0", "3"], ["-1", "-1"]]
    assert distance.cosine(Numbered(), first, second) == pytest.approx([1, 0, -1])


def test_calls_are_as_many_as_table_2_says() -> None:
    """For a pair with n units each 2n for perplexity, and 2 for the cosine (NDD-22)."""
    for measure, count in ((distance.perplexity_change, 8), (distance.cosine, 2)):
        model = Drawn()
        measure(model, [list("abcd")], [list("abce")])
        assert model.ask_count == count
