"""The page about cloze items and their readers, out of the tables."""

import json

import polars as pl

from pipeline import warehouse
from pipeline.examples.recam import building
from pipeline.metrics.recam import audit
from pipeline.report.recam import page
from pipeline.slices import parse_day
from pipeline.tasks.recam import options, readers
from pipeline.tasks.record import pages

SHOWN = 6  # items in full, of each subtask


def write(day: str) -> str:
    """Write the page of the tables as they are, with the readers trained for a day; its path."""
    parse_day(day)
    return pages.write_page(f"cloze-{day}.html", page.render(read_inputs(day)))


def read_inputs(day: str) -> page.Inputs:
    """What the page shows."""
    found = read_evaluations(day)
    by = found.select("trained_on", "model_id").unique().iter_rows()
    return page.Inputs(
        day=day,
        items=warehouse.query("select subtask, split, count(*) as count from cloze_items group by subtask, split"),
        dropped=warehouse.query(
            "select origin as subtask, reason, count(*) as count from dropped where step = ? group by origin, reason",
            [options.STEP],
        ),
        funnel=warehouse.query(
            "select subtask, reason, sum(row_count)::bigint as count from cloze_funnel group by subtask, reason"
        ),
        retrieval=_read_retrieval(day),
        audit=_audit_items(),
        readers=found.filter(pl.col("is_all")).select(
            "trained_on", "tested_on", "accuracy", "low", "high", "n", reader="profile", profile="profile"
        ),
        matrix=found.filter(pl.col("is_all")).select("trained_on", "tested_on", "accuracy", "low", "high", "n"),
        breakdown=found.filter(~pl.col("is_all")).select(
            "trained_on", "by", "group", "n", "accuracy", "low", "high"
        ),
        quality=_count_flags(),
        sample=_sample_items(),
        signatures=[f"reader of {name}: {model_id}" for name, model_id in sorted(by)],
    )  # fmt: skip


def read_evaluations(day: str) -> pl.DataFrame:
    """Accuracies of the readers in force of a day, a row a set of items.

    Returns:
        trained_on, model_id, profile, subset, accuracy, low, high, n, is_all (of all items of tested_on), tested_on,
        by, group.
    """
    kinds = {readers.get_kind(subtask): subtask for subtask in building.SUBTASKS}
    of_day = pl.col("day") == parse_day(day)
    models = warehouse.scan("models", of_day & pl.col("kind").is_in(list(kinds)) & pl.col("is_promoted"))
    rows = warehouse.scan("evaluations", of_day & (pl.col("split") == "test") & pl.col("kind").is_in(list(kinds)))
    mine = rows.join(models.select("kind", "model_id", "config"), on=["kind", "model_id"], how="inner").collect()
    names = {"accuracy": "accuracy", "accuracy_low": "low", "accuracy_high": "high"}
    wide = pl.DataFrame(
        {name: [] for name in names.values()}, schema={name: pl.Float64() for name in names.values()}
    )  # columns that a pivot of no rows lacks
    told = mine.with_columns(pl.col("metric").replace(names)).pivot(
        "metric", index=["kind", "model_id", "config", "subset", "pair_count"], values="value"
    )
    told = pl.concat([told, wide], how="diagonal")
    profiles = [json.loads(config)["profile"] for config in told["config"]]
    parts = pl.col("subset").str.splitn(":", 2).struct
    is_all = pl.col("subset").is_in([readers.HOME, *building.SUBTASKS])
    home = pl.col("kind").replace_strict(kinds, return_dtype=pl.String)
    return told.select(
        "model_id", "subset", *names.values(), trained_on=home, n="pair_count", is_all=is_all,
        tested_on=pl.when(subset=readers.HOME).then(home).otherwise("subset"), by=parts.field("field_0"),
        group=parts.field("field_1"), profile=pl.Series(profiles, dtype=pl.String),
    ).filter(pl.col("subset") != pl.col("trained_on"))  # fmt: skip


def _read_retrieval(day: str) -> pl.DataFrame:
    kinds = {options.get_kind(subtask): subtask for subtask in building.SUBTASKS}
    where = (pl.col("day") == parse_day(day)) & pl.col("kind").is_in(list(kinds))
    rows = warehouse.scan("evaluations", where).collect()
    named = rows.select(
        "metric", "value", subtask=pl.col("kind").replace_strict(kinds, return_dtype=pl.String), reader="subset",
        n="pair_count",
    )  # fmt: skip
    return named.pivot("metric", index=["subtask", "reader", "n"], values="value")


def _audit_items() -> pl.DataFrame:
    found = []
    for subtask in building.SUBTASKS:
        rows = readers.read_all_items(subtask)
        if rows.height:
            found.append(audit.audit(rows).with_columns(subtask=pl.lit(subtask)))
    return pl.concat(found) if found else pl.DataFrame()


def _count_flags() -> pl.DataFrame:
    flags = ["is_unanswerable", "is_ambiguous"]
    rows = warehouse.scan("cloze_items").select("subtask", *flags).collect()
    told = rows.unpivot(flags, index="subtask", variable_name="flag").drop_nulls("value")
    counts = told.group_by("subtask", "flag").agg(count=pl.col("value").sum().cast(pl.Int64), n=pl.len().cast(pl.Int64))
    return counts.sort("subtask", "flag")


def _sample_items() -> pl.DataFrame:
    return pl.concat([
        readers.read_all_items(subtask).head(SHOWN).select("subtask", "question", "options", "label", "article")
        for subtask in building.SUBTASKS
    ])  # fmt: skip
