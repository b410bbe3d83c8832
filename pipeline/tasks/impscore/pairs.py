"""Import data sets into `sentences` and answers into `completions`, and build `pairs` of both."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput
from pipeline.examples import sources
from pipeline.examples.impscore import pairs as examples
from pipeline.examples.splits import SEED
from pipeline.llm import prompt, request
from pipeline.tables import empty
from pipeline.tasks.record import runs
from pipeline.tasks.record.replace import replace_rows

ORIGIN = "pairs"
OTHER_QUESTIONS = "^(problematic_|graded_|recover_|choose_meaning_|judge_|moderation$)"  # prompts for other answers


def import_sentences(source: str, path: str, day: str, run_id: str = "cli", *, is_own: bool = False) -> int:
    """Import a data set of table 6, or the user's own, into `sentences` in place of its earlier rows; count them."""
    started, file = runs.start(), Path(path).expanduser()
    dataset = sources.read_own(file) if is_own else sources.read(source, file)
    rows = dataset.rows.with_columns(source=pl.lit(source)).select(empty("sentences").columns)
    kept_count = warehouse.overwrite("sentences", warehouse.make_slice(source=source), rows, run_id)
    dropped = dataset.dropped.select("reason", "row_key", source=pl.lit(source))
    config = {"path": file.name}
    runs.record_step(source, day, ORIGIN, "sentences", rows.height, dropped, config, run_id, started)
    return kept_count


def scan_questions() -> pl.LazyFrame:
    """Scan the sentences whose explicit forms a model may write; LUDWIG's are alternatives to labels."""
    is_alternative = pl.col("prompt").is_null() & (pl.col("source") == "ludwig")
    alternative = pl.when(is_alternative).then(pl.lit(sources.LUDWIG_ALTERNATIVE))
    rows = warehouse.scan("sentences").with_columns(pl.coalesce("prompt", alternative), is_alternative=is_alternative)
    return rows.filter(pl.col("prompt").is_not_null())


def compare_with_table_6() -> pl.DataFrame:
    """Compare prompts and pairs of the thirteen data sets, expected and found, with table 6 (IMP-12, IMP-15)."""
    records = [(name, data_set.writer, data_set.prompt, data_set.table6) for name, data_set in sources.SOURCES.items()]
    rows = pl.DataFrame(records, schema=["source", "writer", "prompt", "pairs_expected"], orient="row")
    is_asked = pl.col("writer") != sources.LABELS
    asked_prompt = pl.when(is_asked).then(pl.col("prompt").fill_null(sources.LUDWIG_ALTERNATIVE))
    rows = rows.with_columns(prompt=asked_prompt, prompts_expected=pl.col("pairs_expected") * is_asked)
    questions = scan_questions().group_by("source").agg(prompts_found=pl.col("text").n_unique().cast(pl.Int64))
    pair_counts = warehouse.scan("pairs").group_by("source").agg(pairs_found=pl.len().cast(pl.Int64))
    for counts in (questions, pair_counts):
        rows = rows.join(counts.collect(), on="source", how="left", maintain_order="left")
    columns = ("prompts_expected", "prompts_found", "pairs_expected", "pairs_found")
    rows = rows.select("source", "writer", "prompt", pl.col(columns).fill_null(0))
    return pl.concat([rows, rows.select(pl.col(columns).sum(), source=pl.lit("all"))], how="diagonal")


def find_data_sets(folder: str) -> dict[str, str]:
    """Find the data sets below a folder, each in a folder of its name: source -> path."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise BadInput(f"{root}: there is no such folder; it should hold a folder for each data set, such as toxigen/")
    return {name: str(root / name) for name in sorted(sources.READERS) if (root / name).exists()}


def check_files(path: str | None, prompts: str | None) -> None:
    """Raise BadInput if a cassette cannot be read, or there is no folder of prompts."""
    if path not in (None, "sample"):
        request.read_cassette(Path(str(path)).expanduser())
    if prompts:
        prompt.check_sources(Path(prompts).expanduser(), ())


def replay_cassette(path: str | None = None, run_id: str = "cli") -> list[str]:
    """Add the answers of a cassette, by default the sample's, to `completions`; return its sources."""
    rows = request.read_cassette(sample.COMPLETIONS if path in (None, "sample") else Path(str(path)).expanduser())
    cassette_sources = sorted(rows["source"].unique())
    for source in cassette_sources:
        add_completions(source, rows.filter(pl.col("source") == source), run_id)
    return cassette_sources


def add_completions(source: str, rows: pl.DataFrame, run_id: str) -> None:
    """Add answers to a source's `completions`; the others stay, since an answer that was paid for is kept."""
    replace_rows("completions", warehouse.make_slice(source=source), rows, ["completion_id"], run_id)


def list_sources() -> list[str]:
    """List the sources of completions or sentences, of which pairs can be built."""
    scans = [warehouse.scan(name).select("source") for name in ("completions", "sentences")]
    return pl.concat(scans).unique().sort("source").collect()["source"].to_list()


def build(source: str, day: str, profile: str = "paper", seed: int | None = None, run_id: str = "cli") -> int:
    """Build the pairs of a source from its sentences and completions; return their count."""
    started, seed = runs.start(), SEED if seed is None else seed
    partition = pl.col("source") == source
    sentences = warehouse.scan("sentences", partition).sort("item_id").collect()
    is_rewriting = ~pl.col("prompt").str.contains(OTHER_QUESTIONS)
    completions = warehouse.scan("completions", partition).filter(is_rewriting).sort("completion_id").collect()
    prompts = completions["prompt"].unique().to_list()
    versions = {name: prompt.load(name, settings.llm_prompts(), source).version for name in prompts}
    rows, dropped = examples.build(sentences, completions, profile, seed, versions)
    kept_count = warehouse.overwrite("pairs", warehouse.make_slice(source=source), rows, run_id)
    config = {"split": profile, "seed": seed}
    runs.record_step(source, day, ORIGIN, "pairs", rows.height, dropped, config, run_id, started)
    return kept_count


def load_pairs(sources: Sequence[str]) -> pl.DataFrame:
    """Load all pairs of some sources, sorted by id."""
    return warehouse.scan("pairs", pl.col("source").is_in(list(sources))).sort("pair_id").collect()


def load_all_pairs() -> pl.DataFrame:
    """Load all pairs, sorted by id, without the sample's as soon as there are others."""
    rows = warehouse.scan("pairs").sort("pair_id").collect()
    own_rows = rows.filter(~pl.col("source").is_in(sample.PAIRS))
    return own_rows if own_rows.height else rows
