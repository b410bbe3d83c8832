"""Row numbers of distinct texts: they point at what was given."""

import polars as pl
import torch

from pipeline.training.impscore.fit import SIDES, make_corpus


def test_triples_point_at_their_texts(pairs: pl.DataFrame, groups: pl.DataFrame) -> None:
    """Row numbers point at the texts of each triple; a group's rows come by level, of its own split alone."""
    corpus = make_corpus(pairs, groups)
    assert len(set(corpus.texts)) == len(corpus.texts)
    assert {*corpus.texts} == {t for side in SIDES for t in pairs[side]} | {*groups["text"]}
    assert [tuple(corpus.texts[i] for i in row) for row in corpus.triples.tolist()] == pairs.select(SIDES).rows()
    assert [corpus.texts[i] for i in corpus.graded.tolist()] == groups["text"].to_list()
    corpus = make_corpus(pairs.clear(), groups.sample(fraction=1.0, shuffle=True, seed=3))
    expected = groups.sort("group", "level").group_by("group", maintain_order=True).agg("text")["text"].to_list()
    assert [[corpus.texts[i] for i in rows] for rows in corpus.select_groups("train")] == expected
    assert corpus.select_groups("test") == []


def test_another_training_part(pairs: pl.DataFrame) -> None:
    """A training part with other rows and negatives is numbered by the same texts; validation and test stay whole."""
    corpus = make_corpus(pairs)
    train = pairs.filter(pl.col("split") == "train")
    other = train.head(6).with_columns(negative=train["explicit"][6:12])
    changed = corpus.replace_train(other)
    assert changed.texts is corpus.texts
    for side, text in enumerate(SIDES):
        assert [corpus.texts[i] for i in changed.select_triples("train")[:, side]] == other[text].to_list()
    for split in ("validation", "test"):
        assert torch.equal(changed.select_triples(split), corpus.select_triples(split))
    assert corpus.replace_train(train.clear()).select_triples("train").shape == (0, 3)
