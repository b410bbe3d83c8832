"""Rank and choose: does implicitness rise with the level, does pragmatic distance find what is meant?"""

from collections.abc import Callable

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.impscore.groups import lang_of_most
from pipeline.metrics.impscore.artefacts import audit_groups
from pipeline.metrics.impscore.ranking import agreement_matrix, average_correlations
from pipeline.score.signature import choose_head
from pipeline.tasks.impscore import scoring
from pipeline.text.language import detect_language

Done = Callable[[int], None]


def rank(
    sentences: pl.DataFrame,
    model: str | None = None,
    done: Done = lambda _: None,
    learnt: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Mean rank correlations over graded groups, a row for the model and one for each surface baseline.

    Args:
        sentences: rows of `examples.impscore.groups.read`; a group is scored by the head of the language of most of it.
        model: what `in_force.load_model` takes.
        done: told how many sentences each batch held.
        learnt: groups that the baselines are fitted on; without any, they are fitted crosswise.

    Returns:
        by, group_count, kendall_tau (equation 11), spearman_rho; the model stands first.
    """
    scored = scoring.add_scores(sentences, "text", model, done, lang_of_most())
    found = average_correlations(scored.with_columns(value="implicitness"))
    mine = pl.DataFrame({"by": ["implicitness"], **{name: [value] for name, value in found._asdict().items()}})
    beside = audit_groups(sentences, learnt).rename({"baseline": "by"})
    return pl.concat([mine, beside.select(mine.columns)])


def choose(asked: pl.DataFrame, model: str | None = None, done: Done = lambda _: None) -> pl.DataFrame:
    """Answer choice questions by the least pragmatic distance to the reference (section 6.2).

    Args:
        asked: rows of `examples.impscore.questions.read`.
        model: what `in_force.load_model` takes.
        done: told how many sentences each batch held.

    Returns:
        The questions with chosen (place of the nearest option), distances and is_right.
    """
    rows = asked.with_row_index("_q").explode("options")
    numbered = distances(rows, "reference", "options", model, done)
    answered = numbered.group_by("_q", maintain_order=True).agg(distances="pragmatic_distance")
    chosen = answered["distances"].list.arg_min().cast(pl.Int64)
    told = asked.with_columns(chosen=chosen, distances=answered["distances"])
    return told.with_columns(is_right=pl.col("chosen") == pl.col("answer"))


def accuracy(answered: pl.DataFrame) -> pl.DataFrame:
    """The share of questions answered rightly, with what guessing would reach: by, question_count, accuracy."""
    chance = float((1 / answered["options"].list.len()).mean())  # type: ignore[arg-type]
    right = float(answered["is_right"].mean())  # type: ignore[arg-type]
    rows = [("pragmatic_distance", answered.height, round(right, 6)), ("chance", answered.height, round(chance, 6))]
    return pl.DataFrame(
        rows, schema={"by": pl.String, "question_count": pl.Int64, "accuracy": pl.Float64}, orient="row"
    )


def distances(
    rows: pl.DataFrame, one: str, other: str, model: str | None = None, done: Done = lambda _: None
) -> pl.DataFrame:
    """Any frame with `pragmatic_distance` of two text columns added (equation 6); null where one holds no text.

    Both texts go through the head of the first one's language.
    """
    from pipeline.score import implicitness

    heads = scoring.load_heads(model).heads
    texts = rows.select(_a=pl.col(one).str.strip_chars(), _b=pl.col(other).str.strip_chars())
    held = texts.with_row_index("_row").filter((pl.col("_a") != "") & (pl.col("_b") != ""))
    held = held.with_columns(lang=detect_language("_a"))
    value = np.full(rows.height, np.nan)
    for (lang,), part in held.partition_by("lang", as_dict=True).items():
        head = heads[choose_head(str(lang), list(heads))]
        value[part["_row"].to_numpy()] = implicitness.measure_distances(
            part["_a"].to_list(), part["_b"].to_list(), head, done
        )
    return rows.with_columns(pragmatic_distance=pl.Series(value).fill_nan(None))


def agreement(
    sentences: pl.DataFrame, ratings: pl.DataFrame, model: str | None = None, done: Done = lambda _: None
) -> dict[str, pl.DataFrame]:
    """How far raters, the groups' own order (`gold`) and a model agree, each with each (table 4, figure 9; IMP-35).

    Args:
        sentences: rows of `examples.impscore.groups.read`.
        ratings: rows of `examples.impscore.groups.read_ratings`.
        model: what `in_force.load_model` takes.
        done: told how many sentences each batch held.

    Returns:
        A frame for kendall and one for spearman: by, and a column a rater.
    """
    mine = sentences.join(ratings.select("group").unique(), on="group", how="semi").sort("group", "level")
    scored = scoring.add_scores(mine, "text", model, done, lang_of_most())
    ranked = ratings.pivot("rater", index=["group", "level"], values="rank")
    every = scored.select("group", "level", model="implicitness", gold=pl.col("level").cast(pl.Float64))
    every = every.join(ranked, on=["group", "level"], how="left", maintain_order="left")
    names = [name for name in every.columns if name not in {"group", "level"}]
    parts = [part.select(names).to_numpy().T for part in every.partition_by("group", maintain_order=True)]
    if len({part.shape for part in parts}) > 1:
        raise BadInput("the groups should be of one size: a matrix over groups of several sizes has no one meaning")
    values = np.stack(parts, axis=1)  # [raters, groups, sentences]
    return {
        measure: pl.DataFrame(
            {"by": names, **dict(zip(names, agreement_matrix(values, measure).round(6), strict=True))}
        )
        for measure in ("kendall", "spearman")
    }
