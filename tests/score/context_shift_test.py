"""Context shift: by hand with a stub, its bounds, batches, long contexts; how it goes with other measures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.models.ndd.count_lm import CountLM, fit
from pipeline.score import context_shift as shift
from pipeline.score.context_shift import context_shift, correlate_shift, measure_words

CORPUS = [["nice", "hat", "again"], ["the", "soup", "is", "cold"], ["汤", "又", "凉", "了"], ["nice", "soup"]]
letters = st.sampled_from(["nice", "hat", "soup", "cold", "汤", "x"])
pairs = st.lists(st.tuples(st.lists(letters, max_size=5), st.lists(letters, max_size=5)), max_size=6)


class Stub:
    """A model of two words: p of the first is one half, or 0.9 behind a context's word "c" anywhere before it."""

    signature = "stub"

    def distributions(
        self, sentences: Sequence[Sequence[str]], sentence: npt.NDArray[np.int64], place: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], torch.Tensor]]:
        """All at once, backwards."""
        rows = np.arange(len(place))[::-1].copy()
        first = [0.9 if "c" in sentences[int(sentence[k])][: int(place[k])] else 0.5 for k in rows]
        yield rows, torch.tensor([[p, 1 - p] for p in first]).log()


@pytest.fixture(scope="module")
def model() -> CountLM:
    """Counts with a cache, so that all words of a context count."""
    return replace(fit(CORPUS), cache=0.2)


def test_by_hand() -> None:
    """Of "a c b" behind "c" the first two words expect something else, and b, behind its own c, the same."""
    apart = np.sqrt(((np.sqrt(0.9) - np.sqrt(0.5)) ** 2 + (np.sqrt(0.5) - np.sqrt(0.1)) ** 2) / 2)
    comments, contexts = [["a", "c", "b"], ["a", "b"]], [["c"], ["d"]]
    actual = measure_words(Stub(), comments, contexts)
    assert actual[0] == pytest.approx([apart, apart, 0], abs=1e-6)
    assert actual[1].tolist() == [0, 0]
    assert context_shift(Stub(), comments, contexts) == pytest.approx([2 * apart / 3, 0], abs=1e-6)
    totals = context_shift(Stub(), comments, contexts, weights="distance")
    assert totals == pytest.approx([1.9 * apart, 0], abs=1e-6)  # 1 next to the context, then μ = .9
    kl = 0.9 * np.log(1.8) + 0.1 * np.log(0.2)  # of (.5, .5) and (.9, .1); see `distance_test`
    totals = context_shift(Stub(), comments, contexts, divergence="kl", weights="sum")
    reverse = context_shift(Stub(), comments, contexts, divergence="kl_reversed", weights="sum")
    assert sorted([totals[0], reverse[0]]) == pytest.approx([2 * kl, 1.0217], abs=1e-4)


def test_no_context_no_words(model: CountLM) -> None:
    """Without a context it is 0 and no model is asked; without words of its own it is not defined."""
    comments, contexts = [["nice", "hat"], [], []], [[], ["soup"], []]
    for asked_model in (None, model):
        actual = context_shift(asked_model, comments, contexts)  # type: ignore[arg-type]
        assert actual.tolist() == pytest.approx([0, np.nan, np.nan], nan_ok=True)
    assert context_shift(model, [], []).shape == (0,)


@settings(max_examples=30)
@given(pairs, st.integers(1, 7))
def test_a_batch_equals_single_ones(model: CountLM, rows: list[tuple[list[str], list[str]]], asks: int) -> None:
    """Comments together, in small blocks and alone have the same shift."""
    comments, contexts = [row[0] for row in rows], [row[1] for row in rows]
    complete = context_shift(model, comments, contexts)
    alone = [context_shift(model, [comment], [context])[0] for comment, context in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shift, "_BLOCK_WORDS", asks)
        blocks = context_shift(model, comments, contexts)
    assert np.array_equal(complete, alone, equal_nan=True)
    assert np.array_equal(complete, blocks, equal_nan=True)


def test_only_the_last_words_of_a_context_count() -> None:
    """A word further back than those kept changes nothing, one among them does."""
    far = ["c", *["d"] * 64]
    assert context_shift(Stub(), [["a"]], [far]) == 0
    assert context_shift(Stub(), [["a"]], [far[:-1]]) > 0


def frame(count: int = 300) -> pl.DataFrame:
    """Comments whose shift falls with their length, and measures that go with the one or the other."""
    rng = np.random.default_rng(4)
    length = rng.integers(1, 40, count)
    noise = rng.normal(size=count)
    return pl.DataFrame({
        "context_shift": noise - length / 10, "word_count": length, "implicitness": noise + rng.normal(size=count),
        "terseness": -length + rng.normal(size=count), "subtext": rng.normal(size=count) > 0,
        "thread_id": [f"t{row}" for row in range(count)],
    })  # fmt: skip


def test_at_equal_length() -> None:
    """The partial correlation is that of the three plain ones, and parts what goes with length from what does not."""
    rows = frame().with_columns(letters=-2 * pl.col("word_count"))
    actual = correlate_shift(rows, ["implicitness", "terseness", "subtext", "word_count", "letters"], draws=200)
    assert actual["metric"].to_list() == ["implicitness", "terseness", "subtext", "word_count", "letters"]
    for metric, plain, partial in actual.select("metric", "spearman", "partial").head(3).iter_rows():
        xy, xz, yz = (
            stats.spearmanr(rows[first], rows[second]).statistic
            for first, second in [("context_shift", metric), ("context_shift", "word_count"), (metric, "word_count")]
        )
        assert plain == pytest.approx(xy)
        assert partial == pytest.approx((xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2)))
    own_effect, terse, chance, length, other_length = actual.iter_rows(named=True)
    assert own_effect["partial"] > own_effect["spearman"] + 0.1
    assert own_effect["partial_low"] < own_effect["partial"] < own_effect["partial_high"]
    assert terse["spearman"] > 0.5
    assert abs(terse["partial"]) < 0.2
    assert chance["low"] < 0 < chance["high"]
    assert (length["partial"], other_length["partial"], length["n"]) == (None, None, 300)
    assert other_length["spearman"] == pytest.approx(-length["spearman"])


def test_rows_without_a_value_are_left_out() -> None:
    """Null and NaN leave a comment out of what they are missing in; too few or constant ones give null."""
    rows = frame(20).with_columns(
        context_shift=pl.when(pl.int_range(pl.len()) == 0).then(float("nan")).otherwise("context_shift"),
        subtext=pl.when(pl.int_range(pl.len()) > 2).then("subtext"), constant=1,
    )  # fmt: skip
    actual = correlate_shift(rows, ["implicitness", "subtext", "constant"], draws=20)
    assert actual["n"].to_list() == [19, 17, 19]
    assert actual.row(2)[1:7] == (None,) * 6
    short = correlate_shift(rows.head(3), ["implicitness"], draws=20)
    assert short.row(0)[1:] == (*(None,) * 6, 2)
    assert correlate_shift(rows, [], draws=20).is_empty()
