"""Tokenize the comments of the day: jieba for Chinese, nltk for English.

The DAG reads `comments` and writes `tokens`. It tokenizes only texts without tokens. (The name of this file is not
tokenize.py, because that name would hide the standard module of Python.)

**Triage.**

- *Missing* names the tokenizer that is not installed.
- *Retry: tokens of n texts are missing*: the scratch file of a shard was deleted. Clear the shards as well.
"""

from typing import Any

from airflow.sdk import Param, TriggerRule, dag, task

from dag_assets import tables
from dag_defaults import DAY, Tag, build, param, resolve_day

PARAMS = {
    "day": DAY,
    "chinese": param("jieba", "Chinese tokenizer", "rjieba is faster; its tokens differ", enum=["jieba", "rjieba"]),
    "english": Param("nltk", enum=["nltk", "stanza"], title="English tokenizer", description="stanza needs its models"),
    "rows_per_shard": param(250_000, "Texts per shard", "One mapped task each", minimum=1),
}


@dag(**build("tokenize", Tag.TEXT, __doc__, PARAMS, is_daily=True))
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

    @task(inlets=tables("comments"), outlets=tables("tokens runs"), trigger_rule=TriggerRule.NONE_FAILED)
    def publish(staged: Any, day: str, pinned: Any, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.daily import tokenize

        return tokenize.publish(list(staged or []), day, pinned, params["chinese"], params["english"], run_id)

    day = resolve_day()
    pinned = pins(day)
    publish(cut.expand(shard=shards(day, pinned)), day, pinned)


tokenize()
