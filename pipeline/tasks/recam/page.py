"""The page about cloze items and their readers, from the tables."""

import polars as pl

from pipeline import warehouse
from pipeline.examples.recam import building
from pipeline.metrics.recam import audit
from pipeline.report.recam import page
from pipeline.slices import parse_day
from pipeline.tasks.recam import options, readers
from pipeline.tasks.record import pages

SAMPLE_SIZE = 6  # items shown in full, of each subtask
_FLAGS = """
    select subtask, flag, sum(value::int)::bigint as count, count(*) as n
    from (select subtask, is_unanswerable, is_ambiguous from cloze_items)
    unpivot (value for flag in (is_unanswerable, is_ambiguous))
    group by subtask, flag order by subtask, flag
"""


def write(day: str) -> str:
    """Write the page of the current tables, with the readers trained for a day; return its path."""
    evaluations = read_evaluations(day)
    models = evaluations.select("trained_on", "model_id").unique().sort(pl.all()).iter_rows()
    items_of = {subtask: readers.read_all_items(subtask) for subtask in building.SUBTASKS}
    audits = (audit.audit(items).with_columns(subtask=pl.lit(subtask)) for subtask, items in items_of.items())
    samples = (items.head(SAMPLE_SIZE) for items in items_of.values())
    intervals = ("accuracy", "low", "high")
    overall = evaluations.filter("is_all").select("trained_on", "tested_on", *intervals, "n", "profile")
    html = page.render(
        day,
        items=warehouse.query("select subtask, split, count(*) as count from cloze_items group by subtask, split"),
        dropped=warehouse.query(
            "select origin as subtask, reason, count(*) as count from dropped where step = ? group by origin, reason",
            [options.STEP],
        ),
        funnel=warehouse.query(
            "select subtask, reason, sum(row_count)::bigint as count from cloze_funnel group by subtask, reason"
        ),
        retrieval=_read_retrieval(day),
        audit=pl.concat(audits),
        readers=overall.rename({"profile": "reader"}),
        matrix=overall.drop("profile"),
        breakdown=evaluations.filter(~pl.col("is_all")).select("trained_on", "by", "group", "n", *intervals),
        quality=warehouse.query(_FLAGS),
        sample=pl.concat(samples).select("subtask", "question", "options", "label", "article"),
        signatures=[f"reader of {subtask}: {model_id}" for subtask, model_id in models],
    )
    return pages.write_page(f"cloze-{day}.html", html)


def read_evaluations(day: str) -> pl.DataFrame:
    """Read the accuracies of a day's readers, those promoted if there are any, a row for each set of items."""
    kinds = {readers.get_kind(subtask): subtask for subtask in building.SUBTASKS}
    is_reader = (pl.col("day") == parse_day(day)) & pl.col("kind").is_in(list(kinds))
    models = warehouse.scan("models", is_reader).sort("is_promoted", "model_id").unique("kind", keep="last")
    models = models.select("kind", "model_id", "config")
    rows = warehouse.scan("evaluations", is_reader & (pl.col("split") == "test"))
    accuracies = rows.join(models, on=["kind", "model_id"], how="inner").collect()
    metrics = {"accuracy": "accuracy", "low": "accuracy_low", "high": "accuracy_high"}
    numbers = {name: pl.col("value").filter(metric=metric).first() for name, metric in metrics.items()}
    index = ["kind", "model_id", "config", "subset", "pair_count"]
    wide = accuracies.group_by(index, maintain_order=True).agg(**numbers)
    parts = pl.col("subset").str.splitn(":", 2).struct
    home = pl.col("kind").replace_strict(kinds, return_dtype=pl.String)
    evaluations = wide.select(
        "model_id",
        "subset",
        *numbers,
        trained_on=home,
        n="pair_count",
        is_all=pl.col("subset").is_in([readers.HOME, *building.SUBTASKS]),
        tested_on=pl.when(subset=readers.HOME).then(home).otherwise("subset"),
        by=parts.field("field_0"),
        group=parts.field("field_1"),
        profile=pl.col("config").str.json_path_match("$.profile"),
    )
    return evaluations.filter(pl.col("subset") != pl.col("trained_on"))


def _read_retrieval(day: str) -> pl.DataFrame:
    kinds = {options.get_kind(subtask): subtask for subtask in building.SUBTASKS}
    condition = (pl.col("day") == parse_day(day)) & pl.col("kind").is_in(list(kinds))
    subtask = pl.col("kind").replace_strict(kinds, return_dtype=pl.String)
    rows = warehouse.scan("evaluations", condition).collect()
    rows = rows.select("metric", "value", subtask=subtask, reader="subset", n="pair_count")
    return rows.pivot("metric", index=["subtask", "reader", "n"], values="value")
