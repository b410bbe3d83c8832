"""The relevance network against its equation written plainly; padding, numbering, gradients."""

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.models.commenting.relevance import Relevance, Shape, build_vocabulary, number_words

WORDS = ["雨", "river", "路", "soup", "salt"]
SHAPE = Shape(embedding=6, hidden=12, widths=(1, 2, 4))  # type: ignore[arg-type]
texts = st.lists(st.lists(st.sampled_from([*WORDS, "?"]), max_size=7), min_size=1, max_size=6)


def make_network() -> Relevance:
    torch.manual_seed(1)
    return Relevance(len(WORDS), SHAPE).eval()


def make_series(lists: list[list[str]]) -> pl.Series:
    return pl.Series(lists, dtype=pl.List(pl.String))


def pool(model: Relevance, text: list[str]) -> Tensor:
    """Compute the highest value of each filter, one window after the other, with zeros after the text."""
    rows = [WORDS.index(word) + 2 if word in WORDS else 1 for word in text or ["?"]]
    vectors = torch.cat([model.embedding.weight[rows], torch.zeros(8, SHAPE.embedding)])
    maxima = []
    for convolution in model.filters.widths:
        width = convolution.kernel_size[0]
        windows = [vectors[start : start + width] for start in range(len(rows))]
        values = torch.stack(
            [torch.einsum("ow,fwo->f", window.T, convolution.weight.transpose(1, 2)) for window in windows]
        )
        maxima.append((values + convolution.bias).amax(dim=0))
    return torch.cat(maxima).relu()


@settings(max_examples=10)
@given(texts, texts)
def test_scores_are_the_equation(articles: list[list[str]], comments: list[list[str]]) -> None:
    """conv(x, c) = (M v(x) + u) · v(c) + b of one pair at a time, whatever it was padded and batched with (C.2)."""
    model = make_network()
    article_rows, comment_rows = (
        number_words(make_series(lists), WORDS, 9).pad(np.arange(len(lists))) for lists in (articles, comments)
    )
    queries, vectors = model.encode_articles(article_rows), model.encode_comments(comment_rows)
    scores = model.score(queries.unsqueeze(1), vectors.unsqueeze(0))
    assert scores.shape == (len(articles), len(comments))
    for i, article in enumerate(articles):
        for j, comment in enumerate(comments):
            looked_for = model.look_for.weight @ pool(model, article) + model.look_for.bias
            expected = looked_for @ pool(model, comment) + model.bias
            assert scores[i, j].item() == pytest.approx(expected.item(), abs=1e-5)


def test_padding_is_never_learnt() -> None:
    """All weights have gradients but the vector of padding, which stays at zero."""
    model = make_network().train()
    read = number_words(make_series([["雨", "路"], ["soup", "salt", "?", "river", "雨"]]), WORDS, 9).pad(np.arange(2))
    model.score(model.encode_articles(read), model.encode_comments(read)).sum().backward()
    for name, value in model.named_parameters():
        assert value.grad is not None, name
        assert value.grad.any(), name
    assert not model.embedding.weight[0].any()
    assert not model.embedding.weight.grad[0].any()


def test_words_are_numbered_by_hand() -> None:
    """0 is padding, 1 an unknown word; the most frequent words are kept, of equal ones those that sort first."""
    texts = number_words(make_series([["路", "?", "雨", "雨"], [], ["", "soup"]]), WORDS, 3)
    assert texts.rows.tolist() == [4, 1, 2, 1, 1, 5]
    assert texts.starts.tolist() == [0, 3, 4, 6]
    rows, lengths = texts.pad(np.array([2, 0, 1]))
    assert rows.tolist() == [[1, 5, 0], [4, 1, 2], [1, 0, 0]]
    assert lengths.tolist() == [2, 3, 1]
    assert number_words(make_series([]), WORDS, 3).starts.tolist() == [0]
    parts = [make_series([["b", "b", "c"], []]), make_series([["a", "d", "", "", ""]])]
    assert build_vocabulary(parts, 3) == ["b", "a", "c"]
    assert build_vocabulary(parts, 30_000) == ["b", "a", "c", "d"]
    assert build_vocabulary(parts, 2, excluded=("b", "a")) == ["", "c"]
