"""Study the ablation and sensitivity grid (section 5.3), describe data sets by a model (7), and ask people (6.2)."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.errors import BadInput, Missing, Refused, check_name
from pipeline.examples.impscore.clusters import cluster_near_duplicates
from pipeline.examples.splits import SEED
from pipeline.label import simulated
from pipeline.metrics.impscore import artefacts, studies
from pipeline.metrics.impscore.studies import QUANTILES, compute_quantiles, tabulate_figure_3
from pipeline.papers.impscore import BENCHMARKS
from pipeline.progress import OnProgress, track
from pipeline.report.impscore import page
from pipeline.report.impscore.study_rows import find_paper_count
from pipeline.slices import Staged, parse_day
from pipeline.tables import empty
from pipeline.tasks import asking
from pipeline.tasks.impscore import pairs, rank, references, scoring, train, user_study
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Assignment, Studio, Tool
from pipeline.tasks.record import runs
from pipeline.tasks.record.encoders import load_encoder
from pipeline.tasks.record.pages import write_page
from pipeline.tasks.record.replace import replace_rows

GRID = {  # section 5.3 and appendix A.4
    "gamma_implicitness": (0.1, 0.3, 0.5, 0.7, 1.0, 1.5),
    "gamma_pragmatics": (0.5, 0.7, 1.0, 1.5, 2.0),
    "alpha": (0.5, 1.0, 1.5, 2.0),
}
STUDIES = ("ablation", "sensitivity")
DECIMALS = 6
Cell = dict[str, Any]  # one training of a grid: setting, run


def list_cells(study: str, run_count: int) -> list[Cell]:
    """List the trainings of a study: 12 designs, or 120 settings of margins and weight, each `run_count` times."""
    if check_name("study of trainings", study, STUDIES) == "ablation":
        from pipeline.models.impscore import DESIGNS

        cell_settings = [design._asdict() for design in DESIGNS]
    else:
        cell_settings = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    return [{"setting": setting, "run": run} for setting in cell_settings for run in range(run_count)]


def plan(study: str, run_count: int, cells_per_task: int) -> list[list[Cell]]:
    """Split the trainings of a study into mapped tasks; importing torch costs each task four seconds."""
    cells = list_cells(study, run_count)
    return [cells[start : start + cells_per_task] for start in range(0, len(cells), cells_per_task)]


def stage_cells(
    study: str, cells: Sequence[Cell], day: str, epochs: int | None = None, on_progress: OnProgress = lambda _: None
) -> Staged:
    """Train cells with the paper's profile on all pairs, with shared embeddings; stage both test accuracies of each."""
    from pipeline.training.impscore import fit, heads

    started, rows = runs.start(), pairs.load_all_pairs()
    if not rows.height:
        raise Missing("the table pairs is empty; `undertone pairs build`")
    encoder = load_encoder()
    study_rows = []
    for cell in cells:
        recipe = fit.make_recipe("paper", **cell["setting"], seed=42 + cell["run"], epochs=epochs)
        head = heads.fit(rows, None, recipe, encoder, settings.scratch("embeddings"))
        accuracies = tabulate_figure_3(head.triples.filter(pl.col("split") == "test")).head(2)
        for metric, value, count in accuracies.iter_rows():
            study_rows.append(build_row(study, day, metric, "test", value, count, **cell))
        on_progress(1)
    return _stage(study_rows, started)


def _stage(study_rows: list[dict[str, Any]], started: runs.Start) -> Staged:
    return runs.time_shard(started, warehouse.stage("studies", build_frame(study_rows)))


def list_sources() -> list[str]:
    """List the sources of the table `sentences`."""
    return warehouse.scan("sentences").select(pl.col("source").unique().sort()).collect()["source"].to_list()


def stage_data_set(
    source: str, day: str, model: str | None = None, on_progress: OnProgress = lambda _: None, seed: int = SEED
) -> Staged:
    """Stage the description of a data set's distinct sentences by a model; of the paper's six the problematic ones.

    The rows are of the studies `data_sets` (figure 6), of all sentences and the implicit ones, and `diversity`
    (IMP-41), of 2,000 random distinct pairs or all pairs if there are fewer.
    """
    started = runs.start()
    rows = _load_problematic(source) if source in BENCHMARKS else _load_sentences(source)
    model_id = scoring.load_model(model, day).model_id
    model = model or model_id
    scored = references.add_readings(rows, "text", model, references.load_reference(model), on_progress)
    study_rows = []
    for subset, part in ((source, scored), (f"{source}:implicit", scored.filter(pl.col("label") == "implicit"))):
        for column in ("implicitness", "percentile"):
            if part[column].count():
                study_rows += _summarize_values("data_sets", day, subset, part[column], model_id)
    count = min(studies.PAIRS, possible := rows.height * (rows.height - 1) // 2)
    if possible < studies.PAIRS:
        counts = f"{rows.height:,} sentences have {possible:,} pairs, fewer than the paper's {studies.PAIRS:,}"
        left_out.record_note(f"{source}: {counts}; diversity is measured over all of them")
    indices = studies.sample_pairs(rows.height, count, seed)
    if len(indices):
        texts = rows["text"].to_numpy()
        sampled = pl.DataFrame({"first": texts[indices[:, 0]], "second": texts[indices[:, 1]]})
        distances = rank.add_distances(sampled, "first", "second", model)["pragmatic_distance"]
        study_rows += _summarize_values("diversity", day, source, distances, model_id)
    return _stage(study_rows, started)


def load_spreads(day: str) -> pl.DataFrame:
    """Load what is staged of data sets on a day: study, subset, mean, percentile_mean, sd, row_count, paper_count."""
    is_spread = pl.col("study").is_in(["data_sets", "diversity"]) & (pl.col("day") == parse_day(day))
    rows = warehouse.scan("studies", is_spread & pl.col("metric").is_in(["mean", "percentile_mean", "sd"])).collect()
    spreads = rows.pivot("metric", index=["study", "subset", "row_count"], values="value")
    spreads = spreads.with_columns(paper_count=pl.when(study="data_sets").then(find_paper_count()))
    spreads = spreads.select("study", "subset", pl.col("^(percentile_)?(mean|sd)$"), "row_count", "paper_count")
    return spreads.sort("study", "mean", descending=[False, True])


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadInput or Missing for a model or data sets of studies that there are not."""
    if params["model_id"] and {"data_sets", "detection", "validation"} & {*params["studies"]}:
        scoring.load_model(params["model_id"])
    sources = list_detection_sources(params["ask"], params["detect"]) if "detection" in params["studies"] else []
    if sources and (unknown := {*sources} - {*list_sources()}):
        raise BadInput(f"no sentences of {', '.join(sorted(unknown))}; there are {', '.join(list_sources())}")


def list_detection_sources(model: str | None, sources: Sequence[str]) -> list[str]:
    """List the sources to detect in; raise BadInput without a language model or sources."""
    if not model or not sources:
        raise BadInput("detection needs a language model to ask and sources to ask about")
    return list(sources)


def ask(source: str, options: asking.Options, limit: int | None, day: str) -> int:
    """Ask a language model about a data set's problematic sentences, for the ledger; return the number of answers."""
    texts = _load_problematic(source, limit)["text"].to_list()
    return sum(verdict is not None for verdict in asking.ask_verdicts(source, texts, options, day))


def stage_detection(
    source: str, day: str, options: asking.Options, model: str | None = None, limit: int | None = None
) -> Staged:
    """Ask a language model whether a data set's problematic sentences are problematic; stage its accuracy by bin."""
    started, rows = runs.start(), _load_problematic(source, limit)
    model_id = scoring.load_model(model, day).model_id
    model = model or model_id
    with track("scoring", rows.height) as on_progress:  # no part of what is asked
        scored = references.add_readings(rows, "text", model, references.load_reference(model), on_progress)
    scored = scored.with_columns(bin=studies.label_bins(scored["implicitness"]))  # its fault comes before a payment
    verdicts = pl.Series(asking.ask_verdicts(source, rows["text"].to_list(), options), dtype=pl.String)
    is_detected = verdicts.replace_strict({"yes": True, "no": False}, default=None, return_dtype=pl.Boolean)
    answered = scored.with_columns(is_detected=is_detected).filter(verdicts.is_not_null())
    if rows.height and not answered.height:
        raise Refused(f"no answer about any sentence of {source}")
    if verdicts.null_count():
        left_out.record_rows("study detection", {"no_answer": verdicts.null_count()}, source)
    columns: dict[str, Any] = {"model_id": model_id, "setting": {"by": options.model, "source": source}}
    study_rows = []
    percentiles = dict(answered.group_by("bin").agg(pl.col("percentile").mean()).iter_rows())
    clustered = answered.with_columns(cluster=pl.Series(cluster_near_duplicates(answered["text"])))
    for part in studies.measure_bins(clustered).to_dicts():
        columns |= {name: part[name] for name in ("subset", "effective_count")} | {"count": part["row_count"]}
        bounds = {"low": part["low"], "high": part["high"]}
        study_rows.append(build_row("detection", day, "accuracy", value=part["accuracy"], **columns, **bounds))
        study_rows.append(build_row("detection", day, "other_answers", value=part["other_count"], **columns))
        if (percentile := percentiles.get(part["subset"])) is not None:
            study_rows.append(build_row("detection", day, "percentile", value=percentile, **columns))
    return _stage(study_rows, started)


def _load_problematic(source: str, limit: int | None = None) -> pl.DataFrame:
    """Load the first of a data set's distinct sentences that are labelled implicit or explicit (section 7.2)."""
    rows = _load_sentences(source)
    is_problematic = rows["label"] != "neither"
    left_out.record_rows("study", {"not_problematic": rows.height - int(is_problematic.sum())}, source, "label")
    return rows.filter(is_problematic)[:limit]


def publish(staged: Sequence[Staged], day: str, run_id: str = "cli") -> int:
    """Publish the staged rows of every study, in place of those of the same setting and subset; return how many."""
    total, files = 0, [(file, warehouse.scan_staged("studies", [file]).collect()) for file in staged]
    for study in sorted({study for _, rows in files for study in rows["study"].unique()}):
        parts = [(file, rows) for file, rows in files if study in rows["study"]]
        started = runs.start([file for file, _ in parts])
        count = replace_study(study, pl.concat([rows for _, rows in parts]), day, run_id)
        runs.record_step(study, day, "studies", "study", count, None, {}, run_id, started)
        total += count
    return total


def replace_study(
    study: str,
    rows: pl.DataFrame,
    day: str,
    run_id: str = "cli",
    replaced: pl.Expr | Sequence[str] = ("setting", "subset"),
) -> int:
    """Replace rows of a study and day: those that are `replaced`, by default those of the same setting and subset."""
    partition = warehouse.make_slice(study=study, day=day)
    return replace_rows("studies", partition, rows.filter(study=study), replaced, run_id)


def _load_sentences(source: str) -> pl.DataFrame:
    rows = warehouse.scan("sentences", pl.col("source") == source).sort("item_id").select("text", "label").collect()
    if not rows.height:
        raise Missing(f"no sentences of {source}; `undertone pairs import {source} PATH`")
    distinct = rows.unique("text", keep="first", maintain_order=True)
    left_out.record_rows("study", {"repeated_text": rows.height - distinct.height}, source, "text")
    return distinct


def _summarize_values(study: str, day: str, subset: str, values: pl.Series, model_id: str) -> list[dict[str, Any]]:
    """Summarize values by mean, deviation and quantiles; those of percentiles are `percentile_mean`, ...."""
    values = values.drop_nulls()
    numbers = {"mean": values.mean(), "sd": values.std() or 0.0}
    numbers |= {f"q{round(100 * q):02d}": v for q, v in zip(QUANTILES, compute_quantiles(values), strict=True)}
    prefix, count = "percentile_" * (values.name == "percentile"), len(values)
    return [build_row(study, day, prefix + name, subset, v, count, model_id=model_id) for name, v in numbers.items()]


def build_row(study: str, day: str, metric: str, subset: str, value: Any, count: int, **columns: Any) -> dict[str, Any]:
    """Build a row of `studies`; the setting becomes JSON, and the other columns go by their names."""
    row: dict[str, Any] = {"study": study, "day": parse_day(day), "metric": metric, "subset": subset, "run": 0}
    row |= {"row_count": count, "value": value, **columns}
    row["setting"] = json.dumps(columns.get("setting") or {}, sort_keys=True)
    for name in {"value", "low", "high"} & row.keys():
        row[name] = None if row[name] is None else round(float(row[name]), DECIMALS)
    return row


def build_rows(
    study: str, day: str, subset: str, setting: Mapping[str, Any], numbers: pl.DataFrame | Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Build rows of `studies` from numbers that have metric, value, n and perhaps low and high."""
    rows = []
    for row in numbers.to_dicts() if isinstance(numbers, pl.DataFrame) else numbers:
        columns = {"setting": setting, "low": row.get("low"), "high": row.get("high")}
        rows.append(build_row(study, day, row["metric"], subset, row["value"], row["n"], **columns))
    return rows


def build_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Build a frame of `studies`, in the schema of the table."""
    return pl.DataFrame(rows, schema=empty("studies").schema, orient="row")


def assign_tasks(kind: str, day: str, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> Assignment:
    """Give the shipped items of a kind to people through a tool, each once."""
    items = user_study.read_items(kind)
    user_study.select(kind, items, day, run_id=run_id)
    tasks, _, project = user_study.read_tasks(kind, items)
    return projects.assign(project, tasks, tool, studio, partial(user_study.export, kind, items))


def collect_answers(kind: str, day: str, tool: Tool, studio: Studio | None, run_id: str) -> int:
    """Collect what a tool has, and publish means of people and the model, without names; return the label count."""
    items, model_id = user_study.read_items(kind), scoring.load_model(None, day).model_id
    count = user_study.collect(kind, items, (), tool, studio, run_id)
    try:
        numbers = user_study.measure(kind, items, model_id, run_id)
    except Missing:  # no whole answer yet
        return count
    is_model, is_simulated = pl.col("by") == "model", pl.col("by").str.starts_with(f"{simulated.TOOL}_")
    rater = pl.when(is_model).then("by").when(is_simulated).then(pl.lit(simulated.TOOL)).otherwise(pl.lit("people"))
    metrics = [name for name in ("kendall_tau", "spearman_rho", "accuracy") if name in numbers.columns]
    values = numbers.with_columns(by=rater).unpivot(metrics, index=["set", "by", "n"], variable_name="metric")
    rows = []
    for (in_set, group, metric), part in values.group_by("set", "by", "metric", maintain_order=True):
        columns = {"setting": {"by": group, "set": in_set, "raters": part.height}, "model_id": model_id}
        rows.append(build_row("people", day, str(metric), kind, part["value"].mean(), int(part["n"].sum()), **columns))
    replace_study("people", build_frame(rows), day, run_id, pl.col("subset") == kind)
    return count


def write_report(day: str, model: str | None = None) -> str:
    """Write the page of the newest studies up to a day, about `model` or the one in force; return its path."""
    from pipeline.score import implicitness

    until, model_id = pl.col("day") <= parse_day(day), scoring.load_model(model, day).model_id
    model = model or model_id
    rows = pairs.load_all_pairs()
    contents: dict[str, Any] = {"studies": warehouse.scan("studies", until).collect()}
    reference = references.load_reference(model)
    contents["weakness"] = references.describe_weakness(reference)
    evaluations = warehouse.scan("evaluations", pl.col("model_id") == model_id).filter(pl.col("epoch") == 0).collect()
    if evaluations.height:
        contents["evaluations"] = evaluations.filter(pl.col("day") == pl.col("day").max())
    if rows.height:
        contents["triples"] = scoring.score_triples(rows, model)
        numbers = train.evaluate_triples(rows, contents["triples"])
        accuracies = numbers.filter((pl.col("metric") == "implicitness_accuracy") & (pl.col("split") == "test"))
        accuracies = accuracies.select("subset", model="value")
        triples = contents["triples"].join(rows.select("pair_id", "lang"), on="pair_id", how="left")
        for place in "123":
            triples = references.add_percentiles(triples, reference, f"i{place}", f"p{place}")
        contents["triples"] = triples
        contents["audit"] = artefacts.audit(rows).join(accuracies, on="subset", how="left")
    # the held-out English groups in both spaces (figures 11 to 13)
    sentences = train.read_shipped_groups("en").filter(pl.col("split") == "test")
    texts, groups = sentences["text"].to_list(), sentences["group"].to_list()
    meanings = implicitness.compute_meanings(texts, scoring.load_heads(model).choose_head("en"))
    vectors = meanings.pragmatic.numpy(), meanings.semantic.numpy()
    silhouettes = studies.silhouettes(*vectors, groups)
    contents["spaces"] = ([*map(studies.lay_out, vectors)], groups, silhouettes)
    if not contents["studies"].height and not rows.height:
        raise Missing("nothing to show yet; `undertone study data-sets` or the DAG studies")
    return write_page(f"studies-{parse_day(day)}.html", page.render(day, model_id, **contents))
