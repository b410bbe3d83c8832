"""Rank and choose: does implicitness rise with the level, does pragmatic distance find what is meant?"""

import logging

import numpy as np
import polars as pl

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.examples.impscore import groups as graded
from pipeline.io.visible import BLANK
from pipeline.metrics.impscore.artefacts import audit_groups
from pipeline.metrics.impscore.studies import agreement_matrix, average_correlations, kendall_w
from pipeline.progress import OnProgress
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.impscore import scoring
from pipeline.text.language import detect_language

log = logging.getLogger(__name__)


def warn_of_training(rows: pl.DataFrame, ref: str | None = None, what: str = "groups") -> None:
    """Warn of groups (level, text) whose most explicit sentence is that of a group that the model learned from."""
    choice = scoring.choose_model(ref)
    if choice.is_shipped:
        shipped = (graded.add_split(graded.read(path)) for path in sample.GROUPS.values())
        learned = graded.hash_groups(*(groups.filter(pl.col("split") != "test") for groups in shipped))
    else:
        learned = choice.load().config.get("groups", [])
    hashes = graded.hash_groups(rows)
    if count := len([name for name in hashes if name in learned]):
        place = f"the training of model {choice.model_id[:12]}"
        log.warning("%d of %d %s were in %s; the result is no test", count, len(hashes), what, place)


def rank(
    sentences: pl.DataFrame,
    model: str | None = None,
    on_progress: OnProgress = lambda _: None,
    training_groups: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Measure mean rank correlations over groups, of the model and of baselines fitted on the training groups."""
    scored = score_groups(sentences, model, on_progress)
    correlations = average_correlations(scored.with_columns(value="implicitness"))
    model_row = pl.DataFrame([{"by": "implicitness", **correlations._asdict()}])
    baselines = audit_groups(sentences, training_groups).rename({"baseline": "by"})
    return pl.concat([model_row, baselines.select(model_row.columns)])


def score_groups(
    sentences: pl.DataFrame, model: str | None = None, on_progress: OnProgress = lambda _: None
) -> pl.DataFrame:
    """Add `implicitness` to the sentences of graded groups; the language of most of a group chooses its head."""
    return scoring.add_scores(sentences, "text", model, on_progress, graded.find_language())


def choose(questions: pl.DataFrame, model: str | None = None, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Answer choice questions by the least distance to the reference (section 6.2): chosen, distances, is_right."""
    options = questions.with_row_index("_question").explode("options")
    options = add_distances(options, "reference", "options", model, on_progress)
    distances = options.group_by("_question", maintain_order=True).agg("pragmatic_distance")["pragmatic_distance"]
    answered = questions.with_columns(chosen=distances.list.arg_min().cast(pl.Int64), distances=distances)
    return answered.with_columns(is_right=pl.col("chosen") == pl.col("answer"))


def measure_accuracy(answered: pl.DataFrame) -> pl.DataFrame:
    """Measure the share of right answers, and what guessing would reach: by, question_count, accuracy."""
    chance = (1 / answered["options"].list.len()).mean()
    shares = {"pragmatic_distance": answered["is_right"].mean(), "chance": chance}
    rows = pl.DataFrame({"by": [*shares], "accuracy": pl.Series([*shares.values()], dtype=pl.Float64)})
    return rows.select("by", question_count=pl.lit(answered.height, pl.Int64), accuracy=pl.col("accuracy").round(6))


def add_distances(
    rows: pl.DataFrame,
    first_column: str,
    second_column: str,
    model: str | None = None,
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:
    """Add `pragmatic_distance` of two text columns (equation 6) by the head of the first; null where one is empty."""
    from pipeline.score import implicitness

    drop_earlier_scores(rows, "distance", ["pragmatic_distance"])
    heads = scoring.load_heads(model)
    texts = rows.select(first=first_column, second=second_column).with_columns(pl.all().str.strip_chars())
    texts = texts.with_row_index("row").filter(~pl.any_horizontal(pl.col("first", "second").str.contains(BLANK)))
    texts = texts.with_columns(lang=detect_language("first"))
    distances = np.full(rows.height, np.nan)
    for (lang,), part in texts.partition_by("lang", as_dict=True).items():
        head = heads.choose_head(str(lang))
        values = implicitness.measure_distances(part["first"].to_list(), part["second"].to_list(), head, on_progress)
        distances[part["row"].to_numpy()] = values
    return rows.with_columns(pragmatic_distance=pl.Series(distances).fill_nan(None))


def measure_agreement(
    sentences: pl.DataFrame, ratings: pl.DataFrame, model: str | None = None, on_progress: OnProgress = lambda _: None
) -> dict[str, pl.DataFrame]:
    """Measure how far raters, the groups' own order (`gold`) and a model agree, in pairs (table 4, figure 9; IMP-35).

    Returns a frame for kendall and one for spearman: by, and a column for each rater; and one for concordance: raters,
    groups, kendall_w of the raters alone. Where ratings have a column `set`, raters of a set are compared.
    """
    if "set" in ratings.columns:
        sets: dict[str, list[pl.DataFrame]] = {}
        for part in ratings.partition_by("set", maintain_order=True):
            for name, frame in measure_agreement(sentences, part.drop("set"), model, on_progress).items():
                sets.setdefault(name, []).append(frame.select(pl.lit(part["set"][0]).alias("set"), pl.all()))
        return {name: pl.concat(parts, how="diagonal") for name, parts in sets.items()}
    if conflicts := {"group", "level", "model", "gold"} & set(ratings["rater"]):
        raise BadInput(f"rater {min(conflicts)!r}: the table of agreement has a column of this name; rename the rater")
    rated = sentences.join(ratings.select("group").unique(), on="group", how="semi").sort("group", "level")
    scored = score_groups(rated, model, on_progress)
    ranks = ratings.pivot("rater", index=["group", "level"], values="rank")
    rows = scored.select("group", "level", model="implicitness", gold=pl.col("level").cast(pl.Float64))
    rows = rows.join(ranks, on=["group", "level"], how="left", maintain_order="left")
    raters = [name for name in rows.columns if name not in {"group", "level"}]
    groups = [group.select(raters).to_numpy().T for group in rows.partition_by("group", maintain_order=True)]
    if len({group.shape for group in groups}) > 1:
        raise BadInput("the groups should be of one size: a matrix over groups of several sizes has no one meaning")
    values = np.stack(groups, axis=1)  # [raters, groups, sentences]
    frames = {}
    for measure in ("kendall", "spearman"):
        matrix = agreement_matrix(values, measure).round(6)
        frames[measure] = pl.DataFrame({"by": raters, **dict(zip(raters, matrix, strict=True))})
    concordance = kendall_w(values[2:]) if len(raters) > 3 else None  # after the model and gold
    counts = {"raters": [len(raters) - 2], "groups": [len(groups)]}
    frames["concordance"] = pl.DataFrame({**counts, "kendall_w": pl.Series([concordance], dtype=pl.Float64).round(6)})
    return frames
