"""Write the page about NDD from the tables."""

from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.metrics.ndd import compression as measures
from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.similarity import CASES
from pipeline.report.ndd import page
from pipeline.slices import parse_day
from pipeline.tasks.ndd import compressions, masked_lm
from pipeline.tasks.record import pages

STUDIES = ("compression", "similarity", "pruning", "predicates", "context_shift")
_NAMES = ("system", "against", "test", "measure", "edit", "other", "model")
_SETTING = pl.Struct({"threshold": pl.Float64, "longest": pl.Int64, **dict.fromkeys(_NAMES, pl.String)})
_NO_OVERLAP, _FULL_OVERLAP = -1.0, 1.0  # no common word; one sentence has all words of the other
_EXAMPLES = 12  # sentences that the page shows
_EXAMPLE_SYSTEMS = ("ndd_sc", "ndd", "fast_ndd_sc", "fast_ndd")  # the first that ran is shown
_NUMBERS = ("value", "low", "high", "n")
_SOURCE = pl.concat_str("source", "lang", separator=", ")
_COMMON_SOURCE = pl.when(part=compressions.COMMON).then(pl.col("source") + page.COMMON).otherwise("source")
_QUANTILE = pl.col("metric").str.slice(1).cast(pl.Int64)


def write(day: str, ref: str | None = None) -> str:
    """Write the page of a day and return its path; raise Missing if the tables have nothing of the day."""
    inputs = load_inputs(day, ref)
    if all(part is None for name, part in inputs.items() if name not in ("explained", "signatures")):
        raise Missing(f"there is nothing of NDD on {day}: `undertone ndd measure --day {day}`")
    return pages.write_page(f"ndd-{day}.html", page.render(day, **inputs))


def load_inputs(day: str, ref: str | None = None) -> dict[str, Any]:
    """Load what the page shows; a part without rows is None."""
    is_shown = (pl.col("day") == parse_day(day)) & pl.col("study").is_in(list(STUDIES))
    rows = warehouse.scan("studies", is_shown).collect().rename({"row_count": "n"})
    rows = rows.with_columns(pl.col("setting").str.json_decode(_SETTING)).unnest("setting")
    parts = pl.col("subset").str.splitn(":", 3).struct.rename_fields(["source", "lang", "part"])
    rows = rows.with_columns(parts.alias("parts")).unnest("parts").sort("subset", "metric")
    compression, similarity, pruning, predicates, context_shift = (rows.filter(study=study) for study in STUDIES)
    systems = compression.filter(pl.col("threshold").is_null(), pl.col("against").is_null())
    is_grade, is_position = pl.col("lang").is_in(["human", "simulated"]), pl.col("metric").str.starts_with("kept_")
    is_quantile = pl.col("metric").str.contains(r"^q\d{3}$")
    grades = systems.filter(pl.col("lang") == "human", pl.col("metric").is_in(["syntax", "semantics"]))
    grades = grades.filter(pl.col("source") == pl.col("source").min())  # of several data sets the first
    positions = systems.filter(is_position, ~pl.col("system").is_in(list(measures.BASELINES)))
    thresholds = compression.filter(pl.col("threshold").is_not_null())
    prunings = pruning.filter(pl.col("subset") == "one", pl.col("system") != "random_like_ppl_deleter")
    prunings = prunings.with_columns(pl.col("system").replace({"random_like_ndd": "random"}))
    shifts = context_shift.filter(pl.col("metric").is_in(["spearman", "partial"]))
    tests = similarity.filter(pl.col("subset") == pl.col("test"))
    day_compressions = warehouse.scan("compressions", pl.col("day") == parse_day(day)).collect()
    signatures = {*day_compressions["signature"], *rows["model"].drop_nulls()}
    place = pl.col("metric").str.strip_prefix("kept_").cast(pl.Int64)
    systems, quantiles = systems.filter(~is_grade, ~is_position), similarity.filter(is_quantile)
    tables = {
        "compressions": systems.select("lang", "metric", *_NUMBERS, by="system", source=_COMMON_SOURCE),
        "significance": _select_significance(compression),
        "positions": positions.select("system", "value", "n", source=_SOURCE, bin=place),
        "ratios": thresholds.select("threshold", "longest", "metric", "value", source=_SOURCE),
        "tests": tests.select("test", "measure", "metric", *_NUMBERS),
        "overlap": _select_overlap(similarity),
        "distributions": quantiles.select("test", "measure", "value", "n", label="lang", quantile=_QUANTILE),
        "pruning": prunings.select("system", "threshold", "metric", *_NUMBERS),
        "predicates": predicates.select("measure", "edit", "metric", *_NUMBERS),
        "shift": shifts.select("other", "metric", *_NUMBERS, source="subset"),
        "shift_values": context_shift.filter(is_quantile).select("value", source="subset", quantile=_QUANTILE),
        "human": grades.select("system", "metric", "low", "high", "n", mean="value"),
    }
    return {
        **{name: table if table.height else None for name, table in tables.items()},
        "examples": _select_examples(day_compressions),
        "explained": _explain_cases(day, ref),
        "signatures": sorted(signatures - {*measures.BASELINES, compressions.GOLD}),
    }


def _select_significance(rows: pl.DataFrame) -> pl.DataFrame:
    """Select differences with their p: source, one, other, metric, difference, low, high, p."""
    key, kind = ["source", "lang", "system", "against", "metric"], pl.col("metric").str.split("_").list.last()
    rows = rows.filter(pl.col("against").is_not_null()).with_columns(kind=kind)
    rows = rows.with_columns(metric=pl.col("metric").str.replace("_(difference|p)$", ""))
    pairs = rows.filter(kind="difference").join(rows.filter(kind="p").select(*key, p="value"), on=key)
    names: dict[str, Any] = {"source": _SOURCE, "one": "system", "other": "against", "difference": "value"}
    return pairs.select("metric", "low", "high", "p", **names)


def _select_overlap(rows: pl.DataFrame) -> pl.DataFrame:
    """Select figure 3: measure, threshold, metric and numbers."""
    rows = rows.filter(pl.col("subset").str.starts_with("overlap"), pl.col("metric") == "pearson")
    share = pl.col("subset").str.strip_prefix("overlap")
    number = share.str.strip_prefix(">").cast(pl.Float64, strict=False)
    threshold = pl.when(share == "=0").then(_NO_OVERLAP).when(share == "=1").then(_FULL_OVERLAP).otherwise(number)
    return rows.select("measure", "metric", *_NUMBERS, threshold=threshold)


def _select_examples(rows: pl.DataFrame) -> list[dict[str, Any]] | None:
    """Select a few sentences of each data set and language, by the first of our systems, with what people kept."""
    gold = rows.filter(pl.col("system") == compressions.GOLD).select("source", "item_id", "lang", gold="rounds")
    rows = rows.filter(pl.col("system").is_in(_EXAMPLE_SYSTEMS)).join(gold, on=["source", "item_id", "lang"])
    rank = pl.col("system").cast(pl.Enum(_EXAMPLE_SYSTEMS)).to_physical()
    rows = rows.filter(rank == rank.min().over("source", "lang")).sort("source", "lang", "item_id")
    if not rows.height:
        return None
    count = max(_EXAMPLES // rows.select("source", "lang").n_unique(), 1)
    rows = rows.group_by("source", "lang", maintain_order=True).head(count)
    is_kept = pl.col("gold").list.eval(pl.element() == 0)
    return rows.select("source", "lang", "words", "rounds", "system", gold=is_kept).to_dicts()


def _explain_cases(day: str, ref: str | None) -> list[dict[str, Any]]:
    """Explain our cases in the spirit of table 10 (NDD-39): the share of each word in three edits."""
    model = masked_lm.load_model(ref, "en", day).model
    cases = []
    for words, edit in [(words, edit) for words, edits in CASES for edit in edits]:
        rows = distance.explain(model, words, edit)
        words_by_place = rows.select("word", "place", "divergence", "weight").to_dicts()
        total = float(rows["share"].sum())
        cases.append({"one": list(words), "other": list(edit), "value": total, "rows": words_by_place})
    return cases
