"""Score the day's comments for implicitness.

Reads `comments` and the model of the day, writes `scores`; then `report` starts by itself. ImpScore is English: scores
of other languages are marked as an extension in their signature.

**Triage.** Until a model is promoted, the one shipped with Undertone scores. *BadInput: the model was trained on
encoder …*: UNDERTONE_ENCODER differs between the training and the scoring machine. A task that waits in *scheduled*
needs the pool `gpu`: `airflow pools set gpu 1 GPU`.
"""

from typing import Any

from airflow.sdk import Param, PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import COMMENTS, DAY, DEFAULTS, MODELS, SCORES, TOKENS, Tag, deadline, resolve_day

PARAMS = {
    "day": DAY,
    "model_id": Param(None, type=["null", "string"], pattern="^[0-9a-f]{64}$", title="Model",
                      description="Empty: the newest model trained for the day or before"),
    "rows_per_shard": Param(10_000, type="integer", minimum=1, title="Texts a shard",
                            description="One mapped task each; importing torch costs a task four seconds"),
}  # fmt: skip


@dag(dag_id="score", schedule=PartitionedAssetTimetable(assets=TOKENS), params=PARAMS, tags=[Tag.SCORE], doc_md=__doc__,
     deadline=deadline(), **DEFAULTS)  # fmt: skip
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
