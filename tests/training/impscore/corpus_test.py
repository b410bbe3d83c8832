"""Row numbers of distinct texts: they point at what was given."""

import polars as pl
import torch

from pipeline.training.impscore.corpus import SIDES, SPLITS, corpus


def test_triples_point_at_their_texts(pairs: pl.DataFrame, groups: pl.DataFrame) -> None:
    """Each row of `triples` names the implicit, explicit and negative text of its pair; each text stands once."""
    whole = corpus(pairs, groups)
    assert len(set(whole.texts)) == len(whole.texts)
    assert {*whole.texts} == {t for side in SIDES for t in pairs[side]} | {*groups["text"]}
    assert [tuple(whole.texts[i] for i in row) for row in whole.triples.tolist()] == pairs.select(SIDES).rows()
    assert [whole.texts[i] for i in whole.graded.tolist()] == groups["text"].to_list()


def test_parts_of_pairs(pairs: pl.DataFrame) -> None:
    """The splits part the triples: 24, 4 and 4, and a split without pairs is empty."""
    whole = corpus(pairs)
    assert [tuple(whole.of(split).shape) for split in SPLITS] == [(24, 3), (4, 3), (4, 3)]
    assert whole.of("none").shape == (0, 3)
    assert whole.groups_of("train") == []


def test_groups_run_from_explicit_to_implicit(pairs: pl.DataFrame, groups: pl.DataFrame) -> None:
    """A group's rows come by level, in whatever order its sentences were given; other splits' groups stay out."""
    whole = corpus(pairs.clear(), groups.sample(fraction=1.0, shuffle=True, seed=3))
    expected = groups.sort("group", "level").group_by("group", maintain_order=True).agg("text")["text"].to_list()
    assert [[whole.texts[i] for i in rows] for rows in whole.groups_of("train")] == expected
    assert whole.groups_of("test") == []


def test_another_training_part(pairs: pl.DataFrame) -> None:
    """A training part with other rows and negatives is numbered by the same texts; validation and test stay whole."""
    whole = corpus(pairs)
    train = pairs.filter(pl.col("split") == "train")
    other = train.head(6).with_columns(negative=train["explicit"][6:12])
    found = whole.with_train(other)
    assert found.texts is whole.texts
    for side, text in enumerate(SIDES):
        assert [whole.texts[i] for i in found.of("train")[:, side]] == other[text].to_list()
    for split in ("validation", "test"):
        assert torch.equal(found.of(split), whole.of(split))
    assert whole.with_train(train.clear()).of("train").shape == (0, 3)
