"""Pairs as tasks: published data sets into `sentences`, answers into `completions`, both into `pairs`."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput
from pipeline.examples import sources
from pipeline.examples.impscore import pairs as examples
from pipeline.examples.splits import SEED
from pipeline.llm import cassette, prompt
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.record import runs

ORIGIN = "pairs"
OTHER_QUESTIONS = (
    "^(problematic_|graded_|recover_|choose_meaning_|moderation$)"  # prompts that ask for no explicit form
)


def bring(source: str, path: str, day: str, run_id: str = "cli", *, own: bool = False) -> int:
    """Read a data set of table 6, or sentences of one's own, into `sentences`; return the rows kept.

    Bringing a source again replaces it. What cannot be used is in `dropped` with its reason.
    """
    began, where = runs.start(), Path(path).expanduser()
    found = sources.read_own(where) if own else sources.read(source, where)
    rows = found.sentences.with_columns(source=pl.lit(source)).select(empty("sentences").columns)
    kept = warehouse.overwrite("sentences", warehouse.slice_of(source=source), rows, run_id)
    runs.record_step(
        source,
        day,
        ORIGIN,
        "sentences",
        rows.height,
        found.dropped.select(pl.lit(source).alias("source"), "reason", "row_key"),
        {"path": where.name},
        run_id,
        began,
    )
    return kept


def published(folder: str) -> dict[str, str]:
    """Data sets that lie below a folder, each in a folder of its name: source -> path."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise BadInput(f"{root}: there is no such folder; it should hold a folder for each data set, such as toxigen/")
    return {name: str(root / name) for name in sorted(sources.SOURCES) if (root / name).exists()}


def play(day: str, path: str | None = None, run_id: str = "cli") -> list[str]:
    """Add a cassette's answers to `completions`; return its sources. The shipped sample's by default."""
    parse_day(day)
    rows = cassette.read(sample.COMPLETIONS if path in (None, "sample") else Path(str(path)).expanduser())
    for source in (found := sorted(rows["source"].unique())):
        add(source, rows.filter(pl.col("source") == source), run_id)
    return found


def add(source: str, rows: pl.DataFrame, run_id: str) -> None:
    """Add answers to a source's `completions`; those that are there stay: an answer paid for is kept."""

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        others = present.join(rows.lazy(), on="completion_id", how="anti")
        return pl.concat([others.select(rows.columns), rows.lazy()])

    warehouse.replace("completions", warehouse.slice_of(source=source), with_others, run_id)


def ready() -> list[str]:
    """Sources that have completions or sentences, of which pairs can be built."""
    scans = [warehouse.scan(name).select("source") for name in ("completions", "sentences")]
    return pl.concat(scans).unique().sort("source").collect()["source"].to_list()


def build(source: str, day: str, profile: str = "paper", seed: int | None = None, run_id: str = "cli") -> int:
    """Pairs of one source from its sentences and completions; what gives none is in `dropped`."""
    began, seed = runs.start(), SEED if seed is None else seed
    mine = pl.col("source") == source
    sentences = warehouse.scan("sentences", mine).sort("item_id").collect()
    rewritten = ~pl.col("prompt").str.contains(OTHER_QUESTIONS)
    completions = warehouse.scan("completions", mine).filter(rewritten).sort("completion_id").collect()
    names = completions["prompt"].unique().to_list()
    current = {name: prompt.load(name, settings.llm_prompts()).version for name in names}
    rows, gone = examples.build(sentences, completions, profile, seed, current)
    kept = warehouse.overwrite("pairs", warehouse.slice_of(source=source), rows, run_id)
    runs.record_step(source, day, ORIGIN, "pairs", rows.height, gone, {"split": profile, "seed": seed}, run_id, began)
    return kept


def of(sources: Sequence[str]) -> pl.DataFrame:
    """All pairs of some sources, in the order of their ids."""
    return warehouse.scan("pairs", pl.col("source").is_in(list(sources))).sort("pair_id").collect()


def every() -> pl.DataFrame:
    """All pairs, in the order of their ids; the sample's are left out as soon as there are others."""
    rows = warehouse.scan("pairs").sort("pair_id").collect()
    own = rows.filter(~pl.col("source").is_in(sample.PAIRS))
    return own if own.height else rows
