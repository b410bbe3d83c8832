"""Tokenize the day's comments: jieba for Chinese, nltk for English.

Reads `comments`, writes `tokens`; tokenizes only texts without tokens. (The file is not called tokenize.py because that
would hide Python's own module of the name.)

**Triage.** *Missing* names the tokenizer that is not installed. *Retry: tokens of n texts are missing*: a shard's
scratch file was swept; clear the shards as well.
"""

from typing import Any

from airflow.sdk import Param, PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import COMMENTS, DAY, TOKENS, Tag, build_daily, resolve_day

PARAMS = {
    "day": DAY,
    "chinese": Param(
        "jieba", enum=["jieba", "rjieba"], title="Chinese tokenizer", description="rjieba: faster, differs"
    ),
    "english": Param("nltk", enum=["nltk", "stanza"], title="English tokenizer", description="stanza needs its models"),
    "rows_per_shard": Param(20_000, type="integer", minimum=1, title="Texts a shard", description="A mapped task each"),
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
