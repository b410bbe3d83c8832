"""Studies: the ablation and the sensitivity grid (section 5.3), what a model says of data sets (section 7).

Cells of a grid and sources are mapped tasks that stage rows of `studies`; `publish` puts a study's rows of a day in
place, all or none.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypedDict

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.errors import BadInput, Missing, Refused
from pipeline.metrics.impscore import detection, diversity
from pipeline.metrics.impscore.implicitness import QUANTILES, compute_quantiles, tabulate_figure_3
from pipeline.slices import Staged, parse_day
from pipeline.tables import empty
from pipeline.tasks import asking
from pipeline.tasks.asking import Options
from pipeline.tasks.impscore import in_force, pairs, scoring
from pipeline.tasks.record import runs as funnel

log = logging.getLogger(__name__)

Done = Callable[[int], None]

RUNS = 3  # of each cell (section 5.3)
CELLS_PER_TASK = 15  # importing torch costs a task four seconds
GRID = {  # section 5.3 and appendix A.4
    "gamma_implicitness": (0.1, 0.3, 0.5, 0.7, 1.0, 1.5),
    "gamma_pragmatics": (0.5, 0.7, 1.0, 1.5, 2.0),
    "alpha": (0.5, 1.0, 1.5, 2.0),
}
STUDIES = ("ablation", "sensitivity")


class Cell(TypedDict):
    """One training of a grid."""

    setting: dict[str, Any]
    run: int


def cells(study: str, runs: int = RUNS) -> list[Cell]:
    """Trainings of a study: 12 designs, or 120 settings of margins and weight, each `runs` times."""
    if study not in STUDIES:
        raise BadInput(f"no study {study!r} of trainings; there are {', '.join(STUDIES)}")
    if study == "ablation":
        from pipeline.models.impscore import DESIGNS

        varied = [design._asdict() for design in DESIGNS]
    else:
        varied = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    return [Cell(setting=setting, run=run) for setting in varied for run in range(runs)]


def plan(study: str, runs: int = RUNS, cells_per_task: int = CELLS_PER_TASK) -> list[list[Cell]]:
    """The trainings of a study, cut into mapped tasks."""
    every = cells(study, runs)
    return [every[at : at + cells_per_task] for at in range(0, len(every), cells_per_task)]


def train(study: str, some: Sequence[Cell], day: str, epochs: int | None = None, done: Done = lambda _: None) -> Staged:
    """Train some cells with the paper's profile on all pairs, and stage both test accuracies of each."""
    began = funnel.start()
    return funnel.time_shard(began, warehouse.stage("studies", trained(study, some, pairs.every(), day, epochs, done)))


def trained(
    study: str,
    some: Sequence[Cell],
    rows: pl.DataFrame,
    day: str,
    epochs: int | None = None,
    done: Done = lambda _: None,
) -> pl.DataFrame:
    """Rows of `studies` of some cells on rows of `pairs`; embeddings are made once and shared by all."""
    from pipeline.models import encoder as encoders
    from pipeline.training.impscore import fit as impscore
    from pipeline.training.impscore import heads

    if not rows.height:
        raise Missing("the table pairs is empty; `undertone pairs build`")
    encoder = encoders.load(settings.encoder(), settings.precision(), settings.threads())
    found = []
    for cell in some:
        recipe = impscore.recipe_of("paper", **cell["setting"], seed=42 + cell["run"], epochs=epochs)
        head = heads.fit(rows, None, recipe, encoder, settings.scratch("embeddings"))
        numbers = tabulate_figure_3(head.triples.filter(pl.col("split") == "test"))
        for metric, value, count in numbers.head(2).iter_rows():
            found.append(row(study, day, metric, "test", value, count, setting=cell["setting"], run=cell["run"]))
        done(1)
    return framed(found)


def sources() -> list[str]:
    """Sources of the table `sentences`."""
    rows = warehouse.scan("sentences").select(pl.col("source").unique().sort()).collect()
    return [str(source) for source in rows["source"]]


def data_set(source: str, day: str, model: str | None = None, done: Done = lambda _: None) -> Staged:
    """Stage what a model says of a data set: implicitness with its implicit part apart, and pragmatic diversity."""
    began = funnel.start()
    return funnel.time_shard(began, warehouse.stage("studies", described(_sentences(source), source, day, model, done)))


def described(
    rows: pl.DataFrame, source: str, day: str, model: str | None = None, done: Done = lambda _: None
) -> pl.DataFrame:
    """Rows of the studies `data_sets` (figure 6) and `diversity` (IMP-41) of one data set's distinct sentences.

    The distances are of 2,000 random distinct pairs, or of all pairs there are if they are fewer.
    """
    model_id = in_force.load_model(model).model_id
    scored = scoring.add_scores(rows, "text", model, done)
    found = []
    for subset, part in ((source, scored), (f"{source}:implicit", scored.filter(pl.col("label") == "implicit"))):
        if part.height:
            found += _summary("data_sets", day, subset, part["implicitness"], model_id)
    most = rows.height * (rows.height - 1) // 2
    drawn = diversity.sample_pairs(rows.height, min(diversity.PAIRS, most))
    if len(drawn):
        from pipeline.tasks.impscore import rank

        texts = rows["text"].to_numpy()
        sampled = pl.DataFrame({"one": texts[drawn[:, 0]], "other": texts[drawn[:, 1]]})
        far = rank.distances(sampled, "one", "other", model)["pragmatic_distance"]
        found += _summary("diversity", day, source, far, model_id)
    return framed(found)


def detectors(asked: str | None, among: Sequence[str]) -> list[str]:
    """The sources to detect in, if it is said whom to ask and where."""
    if not asked or not among:
        raise BadInput("detection needs a language model to ask and sources to ask about")
    return list(among)


def ask(
    source: str, how: Options, limit: int | None = None, done: Done = lambda _: None, run_id: str = "cli",
    day: str | None = None,
) -> int:  # fmt: skip
    """Ask a language model whether a data set's problematic sentences are problematic; return how many it answered.

    Its answers are in the ledger, from which `detected` takes them.
    """
    rows = _problematic(source, limit)
    seen = asking.ask_verdicts(source, rows["text"].to_list(), how, done, run_id, day)
    return sum(said is not None for said in seen)


def detected(
    source: str, day: str, how: Options, model: str | None = None, limit: int | None = None,
    done: Done = lambda _: None, run_id: str = "cli",
) -> Staged:  # fmt: skip
    """Ask a language model whether a data set's problematic sentences are problematic; stage its accuracy by bin.

    Sentences labelled implicit or explicit are the problematic ones (section 7.2).
    """
    began, rows = funnel.start(), _problematic(source, limit)
    scored = scoring.add_scores(rows, "text", model, done)
    seen = asking.ask_verdicts(source, rows["text"].to_list(), how, done, run_id)
    answered = scored.with_columns(said=pl.Series(seen, dtype=pl.String)).filter(pl.col("said").is_not_null())
    if rows.height and not answered.height:
        raise Refused(f"no answer about any sentence of {source}")
    if unanswered := scored.height - answered.height:
        left_out.record_rows("study detection", {"no_answer": unanswered}, source)
    is_detected = pl.col("said").replace_strict({"yes": True, "no": False}, default=None, return_dtype=pl.Boolean)
    told = by_bin(answered.with_columns(is_detected=is_detected))
    model_id = in_force.load_model(model).model_id
    setting = {"by": how.model, "source": source}
    found = []
    for each in told.iter_rows(named=True):
        others = {"model_id": model_id, "setting": setting, "effective_count": each["effective_count"]}
        counted = (each["subset"], each["row_count"])
        for metric, value in (("accuracy", each["accuracy"]), ("other_answers", each["other_count"])):
            ends = {"low": each["low"], "high": each["high"]} if metric == "accuracy" else {}
            found.append(row("detection", day, metric, counted[0], value, counted[1], **others, **ends))
    return funnel.time_shard(began, warehouse.stage("studies", framed(found)))


def _problematic(source: str, limit: int | None) -> pl.DataFrame:
    """The first of a data set's distinct problematic sentences."""
    rows = _sentences(source).filter(pl.col("label") != "neither")
    return rows.head(limit or rows.height)


def by_bin(scored: pl.DataFrame) -> pl.DataFrame:
    """Accuracy in eight bins, near duplicates counted once. Columns: text, implicitness, is_detected."""
    from pipeline.examples.impscore.clusters import near_duplicates

    return detection.measure_bins(scored.with_columns(cluster=pl.Series(near_duplicates(scored["text"]))))


def publish(study: str, staged: Sequence[Staged], day: str, run_id: str = "cli", seconds: float = 0.0) -> int:
    """Put a study's rows of a day in place of those about the same: setting and metric, and source or subset.

    Other studies, and what this run says nothing about, stay. `seconds` were taken before, by shards.
    """
    began = funnel.start()._replace(seconds=seconds)
    rows = warehouse.staged_rows("studies", staged) if staged else empty("studies").lazy()
    count = put(study, rows.collect(), day, run_id)
    funnel.record_step(study, day, "studies", "study", count, None, {}, run_id, began)
    return count


def put(
    study: str, rows: pl.DataFrame, day: str, run_id: str = "cli", replaced: pl.Expr | None = None
) -> int:  # fmt: skip
    """The same of rows at hand; what is `replaced` goes, by default the rows about the same setting and subset."""
    mine, about = rows.filter(pl.col("study") == study), ["setting", "subset"]

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        same = mine.lazy().select(about).unique()
        others = present.join(same, on=about, how="anti") if replaced is None else present.filter(~replaced)
        return pl.concat([others.select(mine.columns), mine.lazy()])

    return warehouse.replace("studies", warehouse.slice_of(study=study, day=day), with_others, run_id)


def publish_all(staged: Sequence[Any], day: str, run_id: str = "cli") -> int:
    """Put every study that has staged rows in place; return how many rows.

    Args:
        staged: of all tasks, each with its `study` beside; data sets and diversity come together.
        day: of the run.
        run_id: of Airflow.
    """
    count = 0
    for study in sorted({one["study"] for one in staged}):
        mine = [Staged(path=one["path"], rows=one["rows"]) for one in staged if one["study"] == study]
        took = [one.get("seconds", 0.0) for one in staged if one["study"] == study]
        for part in ("data_sets", "diversity") if study == "data_sets" else (study,):
            count += publish(part, mine, day, run_id, sum(took))
    return count


def model_for(day: str) -> str:
    """The model in force for a day."""
    return in_force.model_for(day)


def _sentences(source: str) -> pl.DataFrame:
    """A data set's distinct sentences: text, label."""
    rows = warehouse.scan("sentences", pl.col("source") == source).sort("item_id").select("text", "label").collect()
    if not rows.height:
        raise Missing(f"no sentences of {source}; `undertone pairs import {source} PATH`")
    return rows.unique("text", keep="first", maintain_order=True)


def _summary(study: str, day: str, subset: str, values: pl.Series, model_id: str) -> list[dict[str, Any]]:
    """Mean, deviation and quantiles."""
    numbers = {"mean": values.mean(), "sd": values.std() or 0.0}
    numbers |= {f"q{round(100 * q):02d}": v for q, v in zip(QUANTILES, compute_quantiles(values), strict=True)}
    return [row(study, day, metric, subset, v, len(values), model_id=model_id) for metric, v in numbers.items()]


def row(study: str, day: str, metric: str, subset: str, value: Any, count: int, **others: Any) -> dict[str, Any]:
    """A row of `studies`; what else it says goes by the names of the columns, the setting as what it is JSON of."""
    setting = json.dumps(others.pop("setting", {}), sort_keys=True)
    numbers: dict[str, Any] = {"value": value, **{name: others.pop(name) for name in ("low", "high") if name in others}}
    rounded = {name: None if each is None else round(float(each), 6) for name, each in numbers.items()}
    return {"study": study, "day": parse_day(day), "metric": metric, "subset": subset, "row_count": count,
            "setting": setting, "run": 0, **rounded, **others}  # fmt: skip


def rows_of(
    study: str, day: str, subset: str, about: Mapping[str, Any], numbers: pl.DataFrame | Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of `studies` of numbers that have metric, value, n and perhaps low and high."""
    rows = numbers.to_dicts() if isinstance(numbers, pl.DataFrame) else numbers
    return [
        row(study, day, each["metric"], subset, each["value"], each["n"], setting=dict(about), low=each.get("low"),
            high=each.get("high"))
        for each in rows
    ]  # fmt: skip


def framed(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as the table `studies` has them."""
    schema = empty("studies").schema
    return pl.DataFrame(rows, schema=schema, orient="row") if rows else empty("studies")
