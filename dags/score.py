"""Score the comments of the day for implicitness.

The DAG reads `comments` and the model of the day, and writes `scores`. The DAG `report` then starts automatically.
ImpScore is a measure for English: the signature marks scores of other languages as an extension. With *Explain* it also
writes `scores_explained`: the words that carry the highest and the lowest scores, which the report colours.

**Triage.**

- Until a model is promoted, the DAG scores with the model that ships with Undertone.
- *BadInput: the model was trained on encoder …*: UNDERTONE_ENCODER differs between the machines that train and score.
- A task that stays *scheduled* needs the pool `gpu`: `airflow pools set gpu 1 GPU`.
"""

from typing import Any

from airflow.sdk import PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import COMMENTS, MODELS, SCORES, TOKENS, Tag, build_daily, resolve_day
from dag_params import DAY, number, optional

_MODEL = "Empty: the newest model trained for the day or an earlier day"
PARAMS = {
    "day": DAY,
    "model_id": optional("string", "Model", _MODEL, pattern="^[0-9a-f]{64}$"),
    "rows_per_shard": number(
        10_000, "Texts per shard", "One mapped task for each shard; the import of torch takes four seconds per task"
    ),
    "explain": number(0, "Explain", "Comments of each end of a source; 0 for none", 0),
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

    @task(queue="gpu", pool="gpu", trigger_rule=TriggerRule.NONE_FAILED)
    def words(staged: Any, day: str, pinned: Any, params: Any = None) -> dict[str, Any]:
        from airflow.sdk.exceptions import AirflowSkipException

        from pipeline.tasks.daily import score

        if not params["explain"]:
            raise AirflowSkipException("the parameter explain is 0")
        return dict(score.stage_words(list(staged or []), day, pinned, params["explain"]))

    @task(inlets=[COMMENTS, MODELS], outlets=[SCORES], trigger_rule=TriggerRule.NONE_FAILED)
    def publish(
        staged: Any, explained: Any, day: str, pinned: Any, run_id: Any = None, outlet_events: Any = None
    ) -> int:
        from pipeline.tasks.daily import score

        rows = score.publish(list(staged or []), day, pinned, run_id, explained)
        outlet_events[SCORES].add_partitions([day])
        return rows

    day = resolve_day()
    pinned = pin(day)
    staged = implicitness.partial(pinned=pinned).expand(shard=shards(day, pinned))
    publish(staged, words(staged, day, pinned), day, pinned)


score()
