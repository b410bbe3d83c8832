"""Row numbers of distinct texts: they point at what was given."""

import polars as pl

from pipeline.examples import pairs as examples
from pipeline.training.corpus import SIDES, SPLITS, balanced, corpus


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


def test_only_the_training_part_is_balanced(pairs: pl.DataFrame) -> None:
    """Of the pairs to train on a length-matched part is taken; validation and test stay whole."""
    found = balanced(pairs, 42)
    for split in ("validation", "test"):
        assert found.filter(pl.col("split") == split)["pair_id"].sort().equals(
            pairs.filter(pl.col("split") == split)["pair_id"].sort()
        )  # fmt: skip
    train = pairs.filter(pl.col("split") == "train")
    kept = found.filter(pl.col("split") == "train")
    assert kept.equals(examples.balanced(train, 42))
    longer = kept["implicit"].str.len_chars().cast(pl.Int64) - kept["explicit"].str.len_chars().cast(pl.Int64)
    assert 0 < kept.height < train.height
    assert (longer > 0).sum() == (longer < 0).sum()
