"""Measure every scorer on every graded, paired or labelled set at hand, into `studies` (study `validation`)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import __version__, left_out, sample, warehouse
from pipeline.collect.clean import hash_text
from pipeline.errors import BadInput
from pipeline.examples.impscore import groups as graded
from pipeline.examples.impscore import pairs as paired
from pipeline.examples.impscore.clusters import cluster_near_duplicates
from pipeline.examples.sources.files import parse_numbers, read_table
from pipeline.io.rows import number_rows
from pipeline.io.visible import BLANK
from pipeline.metrics.impscore import artefacts
from pipeline.metrics.impscore.artefacts import AUC, SHARE, TAU, TRANSFER
from pipeline.progress import OnProgress
from pipeline.tasks.impscore import pairs, rank, scoring
from pipeline.tasks.impscore.train import read_shipped_groups
from pipeline.tasks.record import promotion, runs
from pipeline.tasks.studies import rows as studies
from pipeline.text.language import detect_language
from pipeline.training import registry

STUDY = "validation"
SHIPPED, OWN = "shipped groups", "shipped model"
MISSING = "missing"  # the metric of a set that is not at hand
SCHEMA = {
    **dict.fromkeys(("set", "lang", "by", "metric"), pl.String), **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "n": pl.Int64, **dict.fromkeys(("data", "signature", "version"), pl.String),
}  # fmt: skip
LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
VALUES = ("implicitness_judged", "value", "score", "implicitness")  # names of the column of a file of values
Paths = Sequence[Path] | None


class Benchmark(NamedTuple):
    """A set of texts in one language, and the rows that surface baselines learn from, if not from the set itself."""

    name: str
    lang: str
    metric: str
    rows: pl.DataFrame  # group, item, level, text: of `metrics.impscore.artefacts`
    training_rows: pl.DataFrame | None = None
    training: str = "crosswise"  # what these rows are


def measure(
    day: str, models: Sequence[str] = (), values: Paths = None, on_progress: OnProgress = lambda _: None, **files: Any
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Measure every scorer on every set of `list_benchmarks`: rows of SCHEMA, and how to get what is not at hand."""
    benchmarks, missing = list_benchmarks(**files)
    judged = warehouse.scan("scores", pl.col("metric") == "implicitness_judged").rename({"model_id": "by"})
    judged_values = _average(judged.select("by", "text_hash", "value", "signature").collect())
    refs, tables = list_models(models, day), [judged_values, *map(read_values, values or ())]
    names = [name for table in tables for name in table["by"].unique()]
    _refuse_repeats([*refs, *artefacts.BASELINE_SCORERS, *names], "scorers")
    rows = [row for benchmark in benchmarks for row in _measure(benchmark, refs, tables, on_progress)]
    numbers = pl.DataFrame(rows, schema=SCHEMA).with_columns(pl.col(pl.Float64).round(studies.DECIMALS))
    if numbers["by"].is_in([*refs, *artefacts.BASELINE_SCORERS]).all():
        missing["judged values"] = "`undertone validate --texts`, `undertone judge`, then --values FILE"
    return numbers, missing


def list_benchmarks(
    groups: Paths = None, pair_files: Paths = None, labelled: Paths = None, columns: tuple[str, str] = ("text", "label")
) -> tuple[list[Benchmark], dict[str, str]]:
    """List the sets at hand, and how to get the others, by name. The columns are those of labelled texts."""
    read_groups = ((path.stem, graded.read(path).with_columns(item="group")) for path in groups or ())
    own_groups = (Benchmark(name, _find_language(rows), TAU, rows) for name, rows in read_groups)
    own_pairs = (part for path in pair_files or () for part in _list_pairs(paired.read_rows(path), path.stem))
    kinds: dict[str, tuple[Iterable[Benchmark], str]] = {
        "pairs of the tables": (_list_pairs(pairs.load_all_pairs(), "pairs"), "`undertone pairs import`"),
        "graded groups of yours": (own_groups, "--groups FILE"),
        "pairs of yours": (own_pairs, "--pairs FILE"),
        "labelled texts": ((_read_labelled(path, columns) for path in labelled or ()), "--labelled FILE"),
    }
    benchmarks = list(_list_shipped())
    missing = {f"obvious_{lang}": "install Undertone again" for lang, p in sample.OBVIOUS.items() if not p.is_file()}
    for kind, (sets, advice) in kinds.items():
        if not (part := list(sets)):
            missing[kind] = advice
        benchmarks += part
    _refuse_repeats([f"{benchmark.name} ({benchmark.lang})" for benchmark in benchmarks], "sets")
    return benchmarks, missing


def _refuse_repeats(names: Sequence[str], kind: str) -> None:
    if repeated := next((name for name in names if names.count(name) > 1), ""):
        raise BadInput(f"two {kind} have the name {repeated!r}; rename a file or folder")


def _list_shipped() -> Iterator[Benchmark]:
    for lang, path in sample.OBVIOUS.items():
        training_rows = _load_groups(lang, is_test=False)
        yield Benchmark(f"groups_{lang}", lang, TAU, _load_groups(lang), training_rows, SHIPPED)
        if path.is_file():
            sides = _list_sides(paired.read_rows(path))
            yield Benchmark(f"obvious_{lang}", lang, SHARE, sides, training_rows, SHIPPED)


def _load_groups(lang: str, *, is_test: bool = True) -> pl.DataFrame:
    return read_shipped_groups(lang).filter((pl.col("split") == "test") == is_test).with_columns(item="group")


def _list_pairs(rows: pl.DataFrame, name: str) -> Iterator[Benchmark]:
    """List the pairs of each source: those held out, without any all; the others of the source are learned from."""
    for (source, lang), part in rows.partition_by("source", "lang", as_dict=True, maintain_order=True).items():
        held_out = promotion.select_held_out(part)
        held_out = held_out if held_out.height else part
        training = part.filter(pl.col("split") == "train").join(held_out, on="cluster_id", how="anti")
        rest = (_list_sides(training), "training part") if training.height else ()
        set_name = name if source == "own" else f"{name}:{source}"
        yield Benchmark(set_name, str(lang), SHARE, _list_sides(held_out), *rest)


def _list_sides(rows: pl.DataFrame) -> pl.DataFrame:
    sides = enumerate(("explicit", "implicit"))
    columns = {"group": "cluster_id", "item": "pair_id"}
    return pl.concat([rows.select(**columns, level=pl.lit(n, pl.Int64), text=side) for n, side in sides])


def _read_labelled(path: Path, columns: tuple[str, str]) -> Benchmark:
    """Read texts labelled 1 (ironic, figurative, …) or 0; near duplicates are drawn together."""
    text, label = columns
    cells = []
    for number, row in number_rows(path):
        if text not in row or (level := LABELS.get(str(row.get(label)).strip().lower())) is None:
            expected = f"{text!r} with a text and {label!r} with 0 or 1"
            raise BadInput(f"{path}, row {number}: expected the fields {expected}, found {row!s:.80}; see --columns")
        cells.append((str(row[text] or "").strip(), level))
    rows = pl.DataFrame(cells, schema={"text": pl.String, "level": pl.Int64}, orient="row")
    is_blank = pl.col("text").str.contains(BLANK)
    left_out.record_rows("validate", {"no_text": rows.filter(is_blank).height}, path.name)
    rows = rows.filter(~is_blank)
    if rows["level"].n_unique() < 2:
        raise BadInput(f"{path}, field {label!r}: expected texts labelled 0 and texts labelled 1, found one kind")
    rows = rows.with_columns(group=pl.Series(cluster_near_duplicates(rows["text"])), item=pl.lit(0))
    return Benchmark(path.stem, _find_language(rows), AUC, rows)


def _find_language(rows: pl.DataFrame) -> str:
    """Find the language of most texts: one head scores the whole set, as heads do not compare."""
    return "zh" if rows.select(detect_language().mode().sort().first()).item() == "zh" else "en"


def list_models(models: Sequence[str], day: str | None = None) -> dict[str, str]:
    """List the models at hand by name: the one in force, the shipped one, and those that are named, each once."""
    in_force, shipped = scoring.choose_model(None, day).model_id, registry.read(scoring.SHIPPED).model_id
    named_refs = {"model in force": in_force, OWN: shipped} | {f"model {Path(ref).name:.24}": ref for ref in models}
    _refuse_repeats([Path(ref).name for ref in {*models}], "models")
    refs: dict[str, str] = {}
    for name, ref in named_refs.items():
        choice = scoring.choose_model(ref)
        refs.setdefault(choice.model_id, OWN if choice.is_shipped else name)
    return {name: named_refs[name] for name in refs.values()}


def read_numbers(path: Path) -> pl.DataFrame:
    """Read a table of benchmarks that an earlier run or others wrote: rows of SCHEMA."""
    rows = read_table([path], {name: (name,) for name in SCHEMA})
    for name in ("value", "low", "high", "n"):
        rows = parse_numbers(rows, name)
    return rows.select(*SCHEMA).cast(SCHEMA)  # type: ignore[arg-type]


def read_values(path: Path) -> pl.DataFrame:
    """Read values of texts by a judge or another scorer, which has the name of the file: by, text_hash, value."""
    rows = read_table([path], {"text": ("text", "comment"), "value": VALUES}, {"signature": ("signature",)})
    hashes = hash_text(rows["text"].fill_null("").str.strip_chars())
    signature = pl.col("signature").fill_null(path.stem)
    return _average(parse_numbers(rows, "value").select("value", signature, by=pl.lit(path.stem), text_hash=hashes))


def _average(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.drop_nulls("value")
    return rows.group_by("by", "text_hash").agg(pl.col("value").mean(), pl.col("signature").sort().first())


def _measure(
    benchmark: Benchmark, refs: Mapping[str, str], tables: Sequence[pl.DataFrame], on_progress: OnProgress
) -> Iterator[dict[str, Any]]:
    rows = benchmark.rows.with_columns(lang=pl.lit(benchmark.lang), text_hash=hash_text(benchmark.rows["text"]))
    scores: dict[str, tuple[pl.Series, str]] = {}  # by scorer: values and signature
    for name, ref in refs.items():
        if benchmark.metric == TAU:
            rank.warn_of_training(rows, ref, f"groups of {benchmark.name}")
        scored = scoring.add_scores(rows, "text", ref, on_progress, pl.col("lang"))
        scores[name] = scored["implicitness"], scored["signature"].drop_nulls()[0]
    for part in (part for table in tables for part in table.partition_by("by")):
        values = rows.join(part, on="text_hash", how="left", maintain_order="left")["value"]
        scores[part["by"][0]] = values, part["signature"].sort()[0]
    surface = artefacts.predict_surface(rows, benchmark.training_rows)
    if benchmark.training != SHIPPED and benchmark.lang in sample.GROUPS:
        surface[TRANSFER] = artefacts.predict_surface(rows, _load_groups(benchmark.lang, is_test=False))["words"]
    for name, values in surface.items():
        fit = SHIPPED if name == TRANSFER else benchmark.training
        scores[name] = values, f"{name}|fitted:{fit}|undertone:{__version__}"
    lines = rows.select(pl.concat_str("item", "level", "text", separator="\t")).to_series().sort()
    data = hashlib.blake2b("\n".join(lines).encode(), digest_size=6).hexdigest()
    columns = {"set": benchmark.name, "lang": benchmark.lang, "version": __version__, "data": data}
    for name, (values, signature) in scores.items():
        if numbers := artefacts.measure(benchmark.rows, values, benchmark.metric):
            yield {**columns, "by": name, "signature": signature, **numbers}


def write_study(numbers: pl.DataFrame, missing: Mapping[str, str], day: str, run_id: str = "cli") -> int:
    """Write rows into `studies`, in place of those of the same sets and day, and of what was not at hand."""
    started, study_rows = runs.start(), []
    for row in numbers.to_dicts():
        setting = {name: row[name] for name in ("by", "lang", "data", "signature")}
        study_rows += studies.build_rows(STUDY, day, row["set"], setting, [row])
    for name, advice in missing.items():
        study_rows.append(studies.build_row(STUDY, day, MISSING, name, None, 0, setting={"by": advice}))
    is_same = pl.col("subset").is_in([row["subset"] for row in study_rows]) | (pl.col("metric") == MISSING)
    count = studies.replace_study(STUDY, studies.build_frame(study_rows), day, run_id, is_same)
    runs.record_step(STUDY, day, "sets", "study", len(study_rows), None, {}, run_id, started)
    return count
