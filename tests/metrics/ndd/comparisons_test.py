"""Perplexity and cosine."""

import numpy as np
import pytest
import torch

from pipeline.metrics.ndd import comparisons
from tests.support.masked import Drawn


class Numbered(Drawn):
    """A model whose surprisals and vectors are the words."""

    def surprisals(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """-log p of a word is its number."""
        return [np.array([float(word) for word in words]) for words in sentences]

    def sentence_vectors(self, sentences: list[list[str]]) -> torch.Tensor:
        """The words themselves."""
        return torch.tensor([[float(word) for word in words] for words in sentences])


def test_perplexity_is_given_as_printed_and_exponentiated() -> None:
    """Mean of -log p (section 2.1), and its exponential, which table 10 seems to show (NDD-01)."""
    rows = comparisons.perplexity(Numbered(), [["1", "3"], []])
    assert rows["log_perplexity"].to_list() == [2, None]
    assert rows["perplexity"].to_list() == [pytest.approx(np.exp(2)), None]


def test_perplexity_change_is_of_the_second_sentence_against_the_first() -> None:
    """It is above 0 where the second is worse."""
    assert comparisons.perplexity_change(Numbered(), [["1", "3"]], [["3"]]).tolist() == [1]


def test_perplexity_change_takes_as_many_calls_as_both_have_units() -> None:
    """2n of table 2 where both have n (NDD-22)."""
    model = Drawn()
    comparisons.perplexity_change(model, [list("abcd")], [list("abce")])
    assert model.ask_count == 8


def test_cosine_is_that_of_the_first_states() -> None:
    """1 of the same direction, 0 of a right angle, -1 of the opposite (NDD-02)."""
    first, second = [["1", "0"], ["1", "0"], ["1", "1"]], [["2", "0"], ["0", "3"], ["-1", "-1"]]
    assert comparisons.cosine(Numbered(), first, second) == pytest.approx([1, 0, -1])


def test_cosine_takes_one_call_a_sentence() -> None:
    """2 of table 2 a pair (NDD-22)."""
    model = Drawn()
    comparisons.cosine(model, [list("ab")], [list("ac")])
    assert model.ask_count == 2
