"""Measure every scorer on every graded, paired or labelled set at hand, into `studies` (study `validation`).

Sets are the shipped graded groups and obvious pairs, the pairs of the tables by source, and files. Scorers are models,
judged values of the tables and values of files, next to length, punctuation, words and chance.
"""

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
from pipeline.examples.sources.files import read_table
from pipeline.metrics.impscore import validation
from pipeline.metrics.impscore.validation import AUC, SHARE, TAU
from pipeline.progress import OnProgress
from pipeline.tasks.impscore import in_force, pairs, scoring
from pipeline.tasks.impscore.train import read_shipped_groups
from pipeline.tasks.record import promotion, runs
from pipeline.tasks.studies import rows as studies
from pipeline.text.language import detect_language

STUDY = "validation"
MISSING = "missing"  # the metric of a set that is not at hand
SCHEMA = {
    **dict.fromkeys(("set", "lang", "by", "metric"), pl.String), **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "n": pl.Int64, **dict.fromkeys(("data", "signature", "version"), pl.String),
}  # fmt: skip
LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
VALUES = ("implicitness_judged", "value", "score", "implicitness")  # names of the column of a file of values


class Files(NamedTuple):
    """Files with sets of a user."""

    groups: Sequence[Path] = ()
    pairs: Sequence[Path] = ()
    labelled: Sequence[Path] = ()
    columns: tuple[str, str] = ("text", "label")  # of labelled texts


class Benchmark(NamedTuple):
    """A set of texts in one language, and the rows that surface baselines learn from, if not from the set itself."""

    name: str
    lang: str
    metric: str
    rows: pl.DataFrame  # group, item, level, text: of `metrics.impscore.validation`
    training_rows: pl.DataFrame | None = None

    @property
    def data(self) -> str:
        """The beginning of a hash of the texts and their levels."""
        lines = self.rows.select(pl.concat_str("item", "level", "text", separator="\t")).to_series().sort()
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=6).hexdigest()


def run(
    day: str,
    models: Sequence[str] = (),
    files: Files | None = None,
    values: Sequence[Path] = (),
    run_id: str = "cli",
    on_progress: OnProgress = lambda _: None,
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Measure every scorer on every set, and write the numbers into `studies`.

    Returns rows of SCHEMA, and how to get what is not at hand, by its name.
    """
    started = runs.start()
    benchmarks, missing = list_benchmarks(files or Files())
    refs, tables = list_models(models, day), [_load_judged(), *map(read_values, values)]
    names = [*refs, *validation.SURFACE, *(name for table in tables for name in table["by"].unique())]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two scorers have the name {repeated[0]!r}; rename the file of --values or the model's folder")
    rows = [row for benchmark in benchmarks for row in _measure(benchmark, refs, tables, on_progress)]
    numbers = pl.DataFrame(rows, schema=SCHEMA).with_columns(pl.col(pl.Float64).round(studies.DECIMALS))
    if numbers["by"].is_in([*refs, *validation.SURFACE, "chance"]).all():
        missing["judged values"] = "`undertone validate --texts`, `undertone judge`, then --values FILE"
    _write_study(numbers, missing, day, run_id)
    runs.record_step(STUDY, day, "sets", "study", numbers.height, None, {"models": [*refs.values()]}, run_id, started)
    return numbers, missing


def list_benchmarks(files: Files) -> tuple[list[Benchmark], dict[str, str]]:
    """List the sets at hand, and how to get the others, by name."""
    kinds: dict[str, tuple[Iterable[Benchmark], str]] = {
        "shipped sets": (_list_shipped(), "install Undertone again"),
        "pairs of the tables": (_list_pairs(pairs.load_all_pairs(), "pairs"), "`undertone pairs import`"),
        "graded groups of yours": (map(_read_groups, files.groups), "--groups FILE"),
        "pairs of yours": (_read_pairs(files.pairs), "--pairs FILE"),
        "labelled texts": ((_read_labelled(path, files.columns) for path in files.labelled), "--labelled FILE"),
    }
    benchmarks, missing = [], {}
    for kind, (sets, advice) in kinds.items():
        if not (part := list(sets)):
            missing[kind] = advice
        benchmarks += part
    names = [(benchmark.name, benchmark.lang) for benchmark in benchmarks]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two sets have the name {repeated[0][0]!r}; rename one of the files")
    for name in (f"{kind}_{lang}" for kind in ("groups", "obvious") for lang in sample.GROUPS):
        if name not in dict(names):
            missing[name] = "install Undertone again"
    return benchmarks, missing


def _list_shipped() -> Iterator[Benchmark]:
    for lang, path in sample.OBVIOUS.items():
        groups = read_shipped_groups(lang).with_columns(item="group")
        training_rows = groups.filter(pl.col("split") != "test")
        yield Benchmark(f"groups_{lang}", lang, TAU, groups.filter(pl.col("split") == "test"), training_rows)
        if path.is_file():
            yield Benchmark(f"obvious_{lang}", lang, SHARE, _list_sides(paired.read_rows(path)), training_rows)


def _read_pairs(paths: Sequence[Path]) -> Iterator[Benchmark]:
    for path in paths:
        yield from _list_pairs(paired.read_rows(path), path.stem)


def _list_pairs(rows: pl.DataFrame, name: str) -> Iterator[Benchmark]:
    """List the pairs of each source: those held out, without any all; the others of the source are learned from."""
    for (source, lang), part in rows.partition_by("source", "lang", as_dict=True, maintain_order=True).items():
        held_out = promotion.select_held_out(part)
        training = part.filter(pl.col("split") == "train").join(held_out, on="cluster_id", how="anti")
        held_out, training = (held_out, training) if held_out.height else (part, part.clear())
        sides = _list_sides(held_out), _list_sides(training)
        yield Benchmark(name if source == "own" else f"{name}:{source}", str(lang), SHARE, *sides)


def _list_sides(rows: pl.DataFrame) -> pl.DataFrame:
    sides = enumerate(("explicit", "implicit"))
    columns = {"group": "cluster_id", "item": "pair_id"}
    return pl.concat([rows.select(**columns, level=pl.lit(n, pl.Int64), text=side) for n, side in sides])


def _read_groups(path: Path) -> Benchmark:
    rows = graded.read(path).with_columns(item="group")
    return Benchmark(path.stem, _find_language(rows), TAU, rows)


def _read_labelled(path: Path, columns: tuple[str, str]) -> Benchmark:
    """Read texts labelled 1 (ironic, figurative, …) or 0; near duplicates are drawn together."""
    text, label = columns
    cells = []
    for number, row in paired.number_rows(path):
        value = str(row.get(label)).strip().lower()
        if text not in row or value not in LABELS:
            name, expected = (label, "0 or 1") if text in row else (text, "a text")
            raise BadInput(f"{path}, row {number}, field {name!r}: expected {expected}, found {row.get(name)!r:.40}")
        cells.append((str(row[text] or "").strip(), LABELS[value]))
    rows = pl.DataFrame(cells, schema={"text": pl.String, "level": pl.Int64}, orient="row")
    left_out.record_rows("validate", {"no_text": rows.filter(pl.col("text") == "").height}, path.name)
    rows = rows.filter(pl.col("text") != "")
    if rows["level"].n_unique() < 2:
        raise BadInput(f"{path}, field {label!r}: expected texts labelled 0 and texts labelled 1, found one kind")
    rows = rows.with_columns(group=pl.Series(cluster_near_duplicates(rows["text"])), item=pl.lit(0))
    return Benchmark(path.stem, _find_language(rows), AUC, rows)


def _find_language(rows: pl.DataFrame) -> str:
    """Find the language of most texts: one head scores the whole set, as heads do not compare."""
    return "zh" if rows.select(detect_language().mode().sort().first()).item() == "zh" else "en"


def list_models(models: Sequence[str], day: str | None = None) -> dict[str, str]:
    """List the models at hand by name: the one in force, the shipped one, and those that are named, each once."""
    from pipeline.training import registry

    choices = [
        ("model in force", None, in_force.choose_model(None, day)),
        ("shipped model", None, in_force.choose_model(registry.read(in_force.SHIPPED).model_id)),
        *((f"model {Path(ref).name:.12}", ref, in_force.choose_model(ref)) for ref in models),
    ]
    refs: dict[str, str] = {}
    ids = set()
    for name, ref, choice in choices:
        label = "shipped model" if choice.is_shipped else f"model {choice.model_id[:12]}" if name in refs else name
        if choice.model_id not in ids:
            refs[label] = ref or choice.model_id
        ids.add(choice.model_id)
    return refs


def read_values(path: Path) -> pl.DataFrame:
    """Read values of texts by a judge or another scorer, which has the name of the file: by, text_hash, value."""
    rows = read_table([path], {"text": ("text",), "value": VALUES}, {"signature": ("signature",)})
    numbers = rows["value"].replace("", None).cast(pl.Float64, strict=False).fill_nan(None)
    wrong = rows.filter(numbers.is_null() & (rows["value"] != "")).select("line", "value")
    if wrong.height:
        line, value = wrong.row(0)
        raise BadInput(f"{path}, line {line}: expected a number, found {value!r:.40}")
    rows = rows.with_columns(value=numbers, text_hash=hash_text(rows["text"].fill_null("").str.strip_chars()))
    return _average(rows.with_columns(by=pl.lit(path.stem), signature=pl.col("signature").fill_null(path.stem)))


def _load_judged() -> pl.DataFrame:
    scores = warehouse.scan("scores", pl.col("metric") == "implicitness_judged").rename({"model_id": "by"})
    return _average(scores.select("by", "text_hash", "value", "signature").collect())


def _average(rows: pl.DataFrame) -> pl.DataFrame:
    """Average the values of a text: by, text_hash, value, signature."""
    rows = rows.drop_nulls("value")
    return rows.group_by("by", "text_hash").agg(pl.col("value").mean(), pl.col("signature").sort().first())


def _measure(
    benchmark: Benchmark, refs: Mapping[str, str], tables: Sequence[pl.DataFrame], on_progress: OnProgress
) -> Iterator[dict[str, Any]]:
    """Measure all scorers on a set: rows of SCHEMA."""
    columns = {"set": benchmark.name, "lang": benchmark.lang, "version": __version__, "data": benchmark.data}
    for name, values, signature in _score(benchmark, refs, tables, on_progress):
        if numbers := validation.measure(benchmark.rows, values, benchmark.metric):
            yield {**columns, "by": name, "signature": signature, **numbers}


def _score(
    benchmark: Benchmark, refs: Mapping[str, str], tables: Sequence[pl.DataFrame], on_progress: OnProgress
) -> Iterator[tuple[str, pl.Series, str]]:
    """Score the texts of a set by all scorers: name, values and signature."""
    rows = benchmark.rows.with_columns(lang=pl.lit(benchmark.lang), text_hash=hash_text(benchmark.rows["text"]))
    for name, ref in refs.items():
        scored = scoring.add_scores(rows, "text", ref, on_progress, pl.col("lang"))
        yield name, scored["implicitness"], scored["signature"].drop_nulls()[0]
    for table in tables:
        for part in table.partition_by("by"):
            values = rows.join(part, on="text_hash", how="left", maintain_order="left")
            yield part["by"][0], values["value"], part["signature"].sort()[0]
    has_training = benchmark.training_rows is not None and benchmark.training_rows.height
    fit = f"fitted:{'training part' if has_training else 'crosswise'}|undertone:{__version__}"
    for name, predictions in validation.predict_surface(benchmark.rows, benchmark.training_rows).items():
        yield name, predictions, f"{name}|{fit}"


def _write_study(numbers: pl.DataFrame, missing: Mapping[str, str], day: str, run_id: str) -> int:
    """Write rows into `studies`, in place of those of the same sets and day, and of what was not at hand."""
    study_rows = []
    for row in numbers.to_dicts():
        setting = {name: row[name] for name in ("by", "lang", "data", "signature")}
        study_rows += studies.build_rows(STUDY, day, row["set"], setting, [row])
    for name, advice in missing.items():
        study_rows.append(studies.build_row(STUDY, day, MISSING, name, None, 0, setting={"by": advice}))
    is_same = pl.col("subset").is_in([row["subset"] for row in study_rows]) | (pl.col("metric") == MISSING)
    return studies.replace_study(STUDY, studies.build_frame(study_rows), day, run_id, is_same)
