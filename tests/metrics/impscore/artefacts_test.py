"""Baselines that see only the surface, on pairs and groups built so that one kind of surface tells."""

import polars as pl
import pytest

from pipeline.metrics.impscore.artefacts import BASELINES, audit, audit_groups

SUBJECTS = ["the dog", "our boss", "that film", "her soup", "the train", "his speech", "my rent", "this phone"]
ENDS = ["today", "again", "at last", "in May", "on Monday", "as ever"]
TOPICS = [f"{subject} {end}" for subject in SUBJECTS for end in ENDS]  # 48, told apart by words


def pairs(implicit: str, explicit: str, source: str = "forum") -> pl.DataFrame:
    """A pair a topic from two patterns; the negative is the next topic's explicit sentence."""
    explicit_texts = [explicit.format(topic) for topic in TOPICS]
    return pl.DataFrame(
        {"source": [source] * len(TOPICS), "implicit": [implicit.format(topic) for topic in TOPICS],
         "explicit": explicit_texts, "negative": explicit_texts[1:] + explicit_texts[:1]}
    )  # fmt: skip


def accuracies(frame: pl.DataFrame, subset: str = "all") -> dict[str, float]:
    return dict(frame.filter(pl.col("subset") == subset).select("baseline", "accuracy").iter_rows())


def test_what_gives_pairs_away() -> None:
    """Where a mark or a Chinese character alone differs, punctuation or the bag of words tells, and nothing else."""
    actual = accuracies(audit(pairs("{} is late?", "{} is late.")))
    assert actual["punctuation"] == 1.0
    assert actual["source"] == 0.5
    assert actual["words"] == pytest.approx(0.5, abs=0.1)
    assert actual["length"] == pytest.approx(0.5, abs=0.1)
    for implicit, explicit in (("{} is grand", "{} is awful"), ("{}真准时", "{}不准时")):
        actual = accuracies(audit(pairs(implicit, explicit)))
        assert actual["words"] == 1.0
        assert actual["punctuation"] == 0.5


def test_direction_is_learnt_on_the_training_part() -> None:
    """Baselines are fitted on `train` and measured on `test`: a rule that turns round there is wrong every time."""
    longer = pairs("{} which nobody who was there will soon forget", "{} ends")
    turned = pairs("{} ends", "{} which nobody who was there will soon forget")
    both_splits = pl.concat([longer.with_columns(split=pl.lit("train")), turned.with_columns(split=pl.lit("test"))])
    actual = audit(both_splits)
    assert accuracies(actual)["length"] == 0.0
    assert actual["pair_count"].to_list() == [len(TOPICS)] * actual.height


def test_subsets_are_all_and_each_source() -> None:
    """Each source has its row beside `all`, with its number of triples; all is over both."""
    actual = audit(
        pl.concat([pairs("{} is late?", "{} is late."), pairs("{} is late.", "{} is late?", "other").head(24)])
    )
    assert set(actual["subset"]) == {"all", "forum", "other"}
    assert set(actual["baseline"]) == set(BASELINES)
    counts = dict(actual.select("subset", "pair_count").unique().iter_rows())
    assert counts == {"all": 72, "forum": 48, "other": 24}
    marks = {subset: accuracies(actual, subset)["punctuation"] for subset in counts}
    assert marks["forum"] == 1.0  # the commoner rule is learnt
    assert marks["other"] == 0.0
    assert marks["all"] == pytest.approx(48 / 72)


def test_near_duplicates_are_not_learnt_by_heart() -> None:
    """Crosswise, a cluster is never in both parts: a word that one cluster alone has teaches nothing about it."""
    words = [f"w{i}" for i in range(20)]
    rows = pl.DataFrame(
        {"source": ["forum"] * 40, "implicit": [f"{w} {w}x" for w in words for _ in range(2)],
         "explicit": [f"{w} {w}y" for w in words for _ in range(2)],
         "negative": [f"{w} {w}y" for w in words for _ in range(2)]}
    )  # fmt: skip
    clustered = rows.with_columns(cluster_id=pl.Series([w for w in words for _ in range(2)]))
    apart = rows.with_columns(cluster_id=pl.Series([f"c{i}" for i in range(40)]))
    assert accuracies(audit(clustered))["words"] == 0.5
    assert accuracies(audit(apart))["words"] > 0.8


def groups(sentence: str, count: int = 12) -> pl.DataFrame:
    """Graded groups of four; {n} becomes as many words as the level, {m} as many question marks."""
    rows = [
        (f"g{g}", level, sentence.format(t=TOPICS[g], n="very " * level, m="?" * level))
        for g in range(count)
        for level in range(1, 5)
    ]
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def taus(frame: pl.DataFrame) -> dict[str, float]:
    return dict(frame.select("baseline", "kendall_tau").iter_rows())


def test_groups_that_shrink_with_the_level() -> None:
    """A baseline learns that shorter is more implicit; groups of one surface are ranked by none."""
    rows = groups("{t} is {n}late").with_columns(level=5 - pl.col("level"))
    actual = taus(audit_groups(rows))
    assert actual["longer"] == -1.0
    assert actual["length"] == 1.0
    assert set(taus(audit_groups(groups("{t} is late"))).values()) == {0.0}
    alone = taus(audit_groups(groups("{t} is {n}late", 1)))
    assert alone == {"longer": 1.0, "length": 0.0, "punctuation": 0.0, "words": 0.0}
