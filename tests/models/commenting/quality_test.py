"""Features of the quality scorer by hand, what its answers depend on and what not."""

import math
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models.commenting import quality
from pipeline.models.commenting.quality import (
    SURFACE,
    Design,
    Scorer,
    make_features,
    measure_scale,
    scale_features,
    score_comments,
)
from pipeline.models.encoder import Encoder

DESIGN = Design(2, 2, 64, "jieba", has_surface=True, has_relation=True, dim=0)
TITLE, CONTENT = "公交票价上涨", "明年起公交票价上涨一元，班次不变。"
TEXTS = ["票价太高了，公交也慢", "同意", "The fare is too high!! See https://a.example", "", "涨价合理吗？我看不合理"]
ROWS = pl.DataFrame(
    {"text": TEXTS, "title": [TITLE, TITLE, None, TITLE, TITLE], "content": [CONTENT, None, None, "", CONTENT]}
)


def make_scorer(design: Design = DESIGN, encoder: Encoder | None = None, target: str = "grade") -> Scorer:
    """Make one of random weights, its scale that of the rows above."""
    features = make_features(ROWS, design, _embed(encoder))
    rng = np.random.default_rng(4)
    grams, numbers = (rng.normal(size=n) for n in (len(design.grams()) * design.buckets, features.numbers.shape[1]))
    return Scorer(design, measure_scale(features), (grams, numbers), 0.2, (1.0, 5.0), encoder, target)


def _embed(encoder: Encoder | None) -> quality.Embed | None:
    return partial(quality.encode, encoder) if encoder else None


def test_surface_by_hand() -> None:
    """Lengths as logarithms, bends where they are passed, marks as a share of the characters."""
    surface = pl.DataFrame({"text": ["Oh no! Why? 42…", ""]}).select(**SURFACE).row(0, named=True)
    assert surface["log_characters"] == pytest.approx(math.log(16))
    assert surface["log_characters_over_8"] == pytest.approx(math.log(16 / 9))
    assert surface["log_characters_over_16"] == 0
    assert surface["log_words"] == pytest.approx(math.log(5))
    assert surface["log_sentences"] == pytest.approx(math.log(4))
    assert surface["word_length"] == pytest.approx((2 + 2 + 3 + 2) / 4)
    for name, count in {"questions": 1, "exclamations": 1, "ellipses": 1, "digits": 2, "capitals": 2}.items():
        assert surface[name] == pytest.approx(count / 16), name


def test_relation_by_hand(tiny: Encoder) -> None:
    """票价 of 票价, 太高, 了 … stands in title and content; where there is no article there is no number.

    A comment that is its title has cosine 1 with it; the names say which column that is.
    """
    design = DESIGN._replace(characters=0, words=0, has_surface=False)
    texts, titles, contents = ["我 爱 公交", "我 爱 公交", "好"], ["公交 很 快", None, ""], ["我 要 公交", "爱", None]
    rows = pl.DataFrame({"text": texts, "title": titles, "content": contents})
    numbers = make_features(rows, design).numbers
    assert numbers[0] == pytest.approx([1 / 3, 2 / 3])
    assert np.isnan(numbers[1, 0])
    assert numbers[1, 1] == pytest.approx(1 / 3)
    assert np.isnan(numbers[2]).all()
    design = design._replace(dim=tiny.dim)
    names = [name for family in design.families().values() for name in family]
    rows = pl.DataFrame({"text": ["good work", "bad soup"], "title": ["good work", "good work"]})
    numbers = make_features(rows, design, _embed(tiny)).numbers
    cosines, (first, second) = numbers[:, names.index("cosine_title")], quality.encode(tiny, rows["text"].to_list())
    expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert cosines == pytest.approx([1, expected], abs=1e-6)
    assert np.isnan(numbers[:, names.index("cosine_content")]).all()


def test_families_have_length_one_and_the_surface_ten() -> None:
    """N-grams have length one a kind; numbers a mean square of 1 a family, the surface 100, where they vary."""
    features = make_features(ROWS, DESIGN)
    grams, numbers = scale_features(features, measure_scale(features), DESIGN)
    assert grams.shape == (5, 128)
    lengths = [
        np.sqrt(grams[:, columns].multiply(grams[:, columns]).sum(axis=1)) for columns in (slice(0, 64), slice(64, 128))
    ]
    assert np.asarray(lengths).reshape(2, 5)[:, [0, 1, 2, 4]] == pytest.approx(1)
    width = len(SURFACE)
    varies = np.isfinite(measure_scale(features).spread[:width]).mean()
    assert (numbers[:, :width] ** 2).sum(axis=1).mean() == pytest.approx(100 * varies, rel=1e-4)
    assert (numbers[2, width:] == 0).all()  # without an article: as the mean


@pytest.mark.parametrize("has_encoder", [False, True])
@settings(max_examples=8)
@given(data=st.data())
def test_a_score_depends_on_its_comment_alone(tiny: Encoder, has_encoder: bool, data: st.DataObject) -> None:
    """In any order and batch a comment has the same score; without an encoder to the last bit."""
    encoder = tiny if has_encoder else None
    quality_scorer = make_scorer(DESIGN._replace(dim=tiny.dim if encoder else 0), encoder)
    expected = score_comments(quality_scorer, ROWS)
    order = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=9))
    scores = score_comments(quality_scorer, ROWS[order], data.draw(st.integers(1, 5)))
    assert scores == pytest.approx(expected[order], abs=1e-5 if encoder else 0)


def test_scores_are_within_what_was_learnt_from() -> None:
    """Grades lie between the least and the largest; log(1 + likes) is cut there; no rows have no scores."""
    quality_scorer = make_scorer()
    rows = pl.DataFrame({"text": ["!" * 5000, "？", "涨" * 4000, "<script>{0} %s</script>", "\0"]})
    for target in ("grade", "upvotes"):
        scores = score_comments(quality_scorer._replace(target=target), rows)
        assert ((scores >= 1) & (scores <= 5)).all()
        assert np.isfinite(scores).all()
    assert score_comments(quality_scorer, rows[:0]).shape == (0,)


def test_absent_article_columns_are_null_ones(caplog: pytest.LogCaptureFixture) -> None:
    """Without title and content a comment is scored by itself, and that is said."""
    caplog.set_level("INFO", logger="pipeline")
    alone = score_comments(make_scorer(), ROWS.select("text"))
    assert "5 of 5 comments have no article" in caplog.text
    assert (alone == score_comments(make_scorer(), ROWS.with_columns(title=None, content=pl.lit("")))).all()
    assert alone[2] == score_comments(make_scorer(), ROWS)[2]
    assert alone[0] != score_comments(make_scorer(), ROWS)[0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pl.DataFrame({"comment": ["a"]}), "'text' of strings, found columns comment"),
        (pl.DataFrame({"text": [1]}), "of strings, found Int64"),
        (pl.DataFrame({"text": ["a", "b", None]}), "row 3: field 'text' is null"),
    ],
)
def test_what_cannot_be_scored_is_an_error(rows: pl.DataFrame, message: str) -> None:
    """Rows without comments are errors before anything is scored, and so is a model of another kind."""
    with pytest.raises(BadInput, match=message):
        score_comments(make_scorer(), rows, 1)
    with pytest.raises(BadInput, match="of kind 'subtext', not 'quality' or 'upvotes'"):
        quality.load({}, {"kind": "subtext"})
