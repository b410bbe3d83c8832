"""Score the day's comments for implicitness.

Reads `comments` and the model of the day, writes `scores`; then `report` starts by itself. ImpScore is English: scores
of other languages are marked as an extension in their signature.

**Triage.** Until a model is promoted, the one shipped with Undertone scores. *BadInput: the model was trained on
encoder …*: UNDERTONE_ENCODER differs between the training and the scoring machine. A task that waits in *scheduled*
needs the pool `gpu`: `airflow pools set gpu 1 GPU`.
"""

from typing import Any

from airflow.sdk import Param, PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import COMMENTS, DAY, MODELS, SCORES, TOKENS, Tag, build_daily, optional_param, resolve_day

PARAMS = {
    "day": DAY,
    "model_id": optional_param(
        "string", "Model", "Empty: the newest model trained for the day or before", pattern="^[0-9a-f]{64}$"
    ),
    "rows_per_shard": Param(
        10_000,
        type="integer",
        minimum=1,
        title="Texts a shard",
        description="One mapped task each; importing torch costs a task four seconds",
    ),
}


@dag("score", schedule=PartitionedAssetTimetable(assets=TOKENS), params=PARAMS, **build_daily(Tag.SCORE, __doc__))
def score() -> None:
    @task
    def pin(day: str, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.daily import score

        return dict(score.pin(day, params["model_id"]))

    @task
    def shards(day: str, pinned: Any, params: Any = None) -> list[Any]:
        from pipeline.tasks.daily import score

        return list(score.plan_shards(day, pinned, params["rows_per_shard"]))

    @task(queue="gpu", pool="gpu")
    def implicitness(shard: Any, pinned: Any) -> dict[str, Any]:
        from pipeline.tasks.daily import score

        return dict(score.score_shard(shard, pinned["model_id"]))

    @task(inlets=[COMMENTS, MODELS], outlets=[SCORES], trigger_rule=TriggerRule.NONE_FAILED)
    def publish(staged: Any, day: str, pinned: Any, run_id: Any = None, outlet_events: Any = None) -> int:
        from pipeline.tasks.daily import score

        rows = score.publish(list(staged or []), day, pinned, run_id)
        outlet_events[SCORES].add_partitions([day])
        return rows

    day = resolve_day()
    pinned = pin(day)
    publish(implicitness.partial(pinned=pinned).expand(shard=shards(day, pinned)), day, pinned)


score()
