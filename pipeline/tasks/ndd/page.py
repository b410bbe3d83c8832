"""The page about NDD, out of the tables."""

from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.metrics.ndd import compression as measures
from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.similarity import CASES
from pipeline.report.ndd import page, sentences
from pipeline.slices import parse_day
from pipeline.tasks.ndd import compressions, masked_lm
from pipeline.tasks.record import pages

STUDIES = ("compression", "similarity", "pruning", "predicates", "context_shift")
_SETTING = {"system": pl.String, "against": pl.String, "threshold": pl.Float64, "longest": pl.Int64, "test": pl.String,
            "measure": pl.String, "edit": pl.String, "other": pl.String, "model": pl.String}  # fmt: skip
_NONE, _ALL = -1.0, 1.0  # overlap of pairs without a common word, and of those of which one has all words of the other


def write(day: str, ref: str | None = None) -> str:
    """Write the page of what the tables have of a day; its path.

    Raises:
        Missing: they have nothing of it.
    """
    told = inputs(day, ref)
    if all(part is None for name, part in told._asdict().items() if name not in ("explained", "signatures")):
        raise Missing(f"there is nothing of NDD on {day}: `undertone ndd measure --day {day}`")
    return pages.write_page(f"ndd-{day}.html", page.page(day, told))


def inputs(day: str, ref: str | None = None) -> page.Ndd:
    """What the page shows; what is not there yet is None."""
    rows = _studies(day)
    of = {name: rows.filter(pl.col("study") == name) for name in STUDIES}
    systems = of["compression"].filter(pl.col("threshold").is_null(), pl.col("against").is_null())
    is_human, is_kept = pl.col("lang").is_in(["human", "simulated"]), pl.col("metric").str.starts_with("kept_")
    made = warehouse.scan("compressions", pl.col("day") == parse_day(day)).collect()
    return page.Ndd(
        compressions=_some(
            systems.filter(~is_human, ~is_kept).select("source", "lang", "metric", *_NUMBERS, by="system")
        ),
        significance=_some(_significance(of["compression"])),
        positions=_some(
            systems.filter(is_kept, ~pl.col("system").is_in(list(measures.BASELINES))).select(
                "system", "value", "n", source=pl.concat_str("source", "lang", separator=", "),
                bin=pl.col("metric").str.strip_prefix("kept_").cast(pl.Int64),
            )
        ),
        ratios=_some(
            of["compression"].filter(pl.col("threshold").is_not_null()).select(
                "threshold", "longest", "metric", "value", source=pl.concat_str("source", "lang", separator=", ")
            )
        ),
        tests=_some(
            of["similarity"].filter(pl.col("subset") == pl.col("test")).select("test", "measure", "metric", *_NUMBERS)
        ),
        overlap=_some(_overlap(of["similarity"])),
        distributions=_some(_distributions(of["similarity"])),
        pruning=_some(
            of["pruning"]
            .filter(pl.col("subset") == "one", pl.col("system") != "random_like_ppl_deleter")
            .with_columns(pl.col("system").replace({"random_like_ndd": "random"}))
            .select("system", "threshold", "metric", *_NUMBERS)
        ),
        predicates=_some(of["predicates"].select("measure", "edit", "metric", *_NUMBERS)),
        shift=_some(
            of["context_shift"].filter(pl.col("metric").is_in(["spearman", "partial"]))
            .select("other", "metric", *_NUMBERS, source="subset")
        ),
        shift_values=_some(
            of["context_shift"].filter(pl.col("metric").str.contains(r"^q\d{3}$"))
            .select("value", source="subset", quantile=pl.col("metric").str.slice(1).cast(pl.Int64))
        ),
        human=_some(  # made-up raters' are not shown, and of several data sets the first
            systems.filter(pl.col("lang") == "human", pl.col("metric").is_in(["syntax", "semantics"]))
            .filter(pl.col("source") == pl.col("source").min())
            .select("system", "metric", "low", "high", "n", mean="value")
        ),
        examples=_examples(made),
        explained=_explained(day, ref),
        signatures=sorted({*made["signature"], *rows["model"].drop_nulls()} - {*measures.BASELINES, compressions.GOLD}),
    )  # fmt: skip


_NUMBERS = ("value", "low", "high", "n")


def _studies(day: str) -> pl.DataFrame:
    """Rows of our studies of a day, their settings as columns, with source and lang where the subset is of both."""
    where = (pl.col("day") == parse_day(day)) & pl.col("study").is_in(list(STUDIES))
    rows = warehouse.scan("studies", where).collect().rename({"row_count": "n"})
    told = rows.with_columns(pl.col("setting").str.json_decode(pl.Struct(_SETTING))).unnest("setting")
    parts = pl.col("subset").str.splitn(":", 3).struct.rename_fields(["source", "lang", "part"])
    return told.with_columns(parts.alias("_of")).unnest("_of").sort("subset", "metric")


def _some(rows: pl.DataFrame) -> pl.DataFrame | None:
    return rows if rows.height else None


def _significance(rows: pl.DataFrame) -> pl.DataFrame:
    """Differences with their p beside: source, one, other, metric, difference, low, high, p."""
    told = rows.filter(pl.col("against").is_not_null()).with_columns(
        kind=pl.col("metric").str.split("_").list.last(), metric=pl.col("metric").str.replace("_(difference|p)$", "")
    )
    key = ["source", "lang", "system", "against", "metric"]
    found = told.filter(pl.col("kind") == "difference")
    p = told.filter(pl.col("kind") == "p").select(*key, p="value")
    return found.join(p, on=key).select(
        "metric", "low", "high", "p", source=pl.concat_str("source", "lang", separator=", "), one="system",
        other="against", difference="value",
    )  # fmt: skip


def _overlap(rows: pl.DataFrame) -> pl.DataFrame:
    """Figure 3: measure, threshold, metric and numbers."""
    told = rows.filter(pl.col("subset").str.starts_with("overlap"), pl.col("metric") == "pearson")
    share = pl.col("subset").str.strip_prefix("overlap")
    at = pl.when(share == "=0").then(_NONE).when(share == "=1").then(_ALL).otherwise(
        share.str.strip_prefix(">").cast(pl.Float64, strict=False)
    )  # fmt: skip
    return told.select("measure", "metric", *_NUMBERS, threshold=at)


def _distributions(rows: pl.DataFrame) -> pl.DataFrame:
    """Figures 7 and 8: test, measure, label, quantile, value, n."""
    told = rows.filter(pl.col("metric").str.contains(r"^q\d{3}$"))
    return told.select(
        "test", "measure", "value", "n", label="lang", quantile=pl.col("metric").str.slice(1).cast(pl.Int64)
    )


def _examples(made: pl.DataFrame) -> list[dict[str, Any]] | None:
    """A few sentences of each data set and language, by the first of our systems, with what people kept."""
    order = {name: place for place, name in enumerate(("ndd_sc", "ndd", "fast_ndd_sc", "fast_ndd"))}
    gold = made.filter(pl.col("system") == compressions.GOLD).select("source", "item_id", "lang", people="rounds")
    ours = made.filter(pl.col("system").is_in(list(order))).join(gold, on=["source", "item_id", "lang"])
    rank = pl.col("system").replace_strict(order, default=None, return_dtype=pl.Int64)
    ours = ours.filter(rank == rank.min().over("source", "lang")).sort("source", "lang", "item_id")
    if not ours.height:
        return None
    each = max(sentences.EXAMPLES // ours.select("source", "lang").n_unique(), 1)
    return [
        {**{name: row[name] for name in ("source", "lang", "words", "rounds", "system")},
         "gold": [number == 0 for number in row["people"]]}
        for row in ours.group_by("source", "lang", maintain_order=True).head(each).to_dicts()
    ]  # fmt: skip


def _explained(day: str, ref: str | None) -> list[dict[str, Any]]:
    """Our cases in the spirit of table 10 (NDD-39): what each word says of three edits."""
    model = masked_lm.opened(ref, "en", day).model
    found = []
    for case in CASES:
        for edit in case.edits:
            rows = distance.explain(model, case.words, edit)
            found.append({"one": list(case.words), "other": list(edit), "value": float(rows["share"].sum()),
                          "rows": rows.select("word", "place", "divergence", "weight").to_dicts()})  # fmt: skip
    return found
