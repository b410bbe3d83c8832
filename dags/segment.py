"""Tokenize the comments of the day: jieba for Chinese, nltk for English.

The DAG reads `comments` and writes `tokens`. It tokenizes only texts without tokens. (The name of this file is not
tokenize.py, because that name would hide the standard module of Python.)

**Triage.**

- *Missing* names the tokenizer that is not installed.
- *Retry: tokens of n texts are missing*: the scratch file of a shard was deleted. Clear the shards as well.
"""

from typing import Any

from airflow.sdk import PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import COMMENTS, TOKENS, Tag, build_daily, resolve_day
from dag_params import DAY, choice, number

PARAMS = {
    "day": DAY,
    "chinese": choice(["jieba", "rjieba"], "Chinese tokenizer", "rjieba is faster; its tokens differ"),
    "english": choice(["nltk", "stanza"], "English tokenizer", "stanza needs its models"),
    "rows_per_shard": number(20_000, "Texts per shard", "One mapped task each"),
}


@dag("tokenize", schedule=PartitionedAssetTimetable(assets=COMMENTS), params=PARAMS, **build_daily(Tag.TEXT, __doc__))
def tokenize() -> None:
    @task
    def pins(day: str) -> dict[str, int | None]:
        from pipeline.tasks.daily import tokenize

        return tokenize.pin_snapshots()

    @task
    def shards(day: str, pinned: Any, params: Any = None) -> list[Any]:
        from pipeline.tasks.daily import tokenize

        return list(tokenize.plan_shards(day, pinned, params["chinese"], params["english"], params["rows_per_shard"]))

    @task
    def cut(shard: Any, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.daily import tokenize

        return dict(tokenize.tokenize_shard(shard, params["chinese"], params["english"]))

    @task(inlets=[COMMENTS], outlets=[TOKENS], trigger_rule=TriggerRule.NONE_FAILED)
    def publish(
        staged: Any, day: str, pinned: Any, params: Any = None, run_id: Any = None, outlet_events: Any = None
    ) -> int:
        from pipeline.tasks.daily import tokenize

        rows = tokenize.publish(list(staged or []), day, pinned, params["chinese"], params["english"], run_id)
        outlet_events[TOKENS].add_partitions([day])
        return rows

    day = resolve_day()
    pinned = pins(day)
    publish(cut.expand(shard=shards(day, pinned)), day, pinned)


tokenize()
