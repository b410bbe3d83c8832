"""Score the comments of the day for implicitness.

The DAG reads `comments` and the model of the day, and writes `scores`. The DAG `report` then starts automatically.
ImpScore is a measure for English: the signature marks scores of other languages as an extension. With *Explain* it also
writes `scores_explained`: the words that carry the highest and the lowest scores, which the report colours. With *Map*
it writes `projections`: the places of texts on the map of `undertone browse`. With UNDERTONE_KEEP_EMBEDDINGS it keeps
the embeddings of texts in `embeddings`, and encodes only new texts.

**Triage.**

- Until a model is promoted, the DAG scores with the model that ships with Undertone.
- *BadInput: the model was trained on encoder …*: UNDERTONE_ENCODER differs between the machines that train and score.
"""

from typing import Any

from airflow.sdk import TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dag_assets import tables
from dag_defaults import DAY, GPU, Tag, build, optional_param, param, resolve_day

MODEL = "Empty: the newest model trained for the day or an earlier day"
SHARDS = "One mapped task for each shard; to start and to import torch takes six seconds per task"
PARAMS = {
    "day": DAY,
    "model_id": optional_param("string", "Model", MODEL, pattern="^[0-9a-f]{64}$"),
    "rows_per_shard": param(50_000, "Texts per shard", SHARDS, minimum=1),
    "explain": param(0, "Explain", "Comments of each end of a source; 0 for none", minimum=0),
    "map": param(False, "Map", "Place the texts of the day on the map of `undertone browse`; a minute or two"),
}


@dag(**build("score", Tag.SCORE, __doc__, PARAMS, is_daily=True))
def score() -> None:
    @task(**GPU)  # it chooses the precision for the machines that score
    def pin(day: str, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.daily import score

        return dict(score.pin(day, params["model_id"]))

    @task
    def shards(day: str, pinned: Any, params: Any = None) -> list[Any]:
        from pipeline.tasks.daily import score

        return list(score.plan_shards(day, pinned, params["rows_per_shard"]))

    @task(inlets=tables("embeddings"), outlets=tables("embeddings"), **GPU)
    def implicitness(shard: Any, pinned: Any, run_id: Any = None) -> dict[str, Any]:
        from pipeline.tasks.daily import score

        return dict(score.score_shard(shard, pinned, run_id=run_id))

    @task(**GPU, trigger_rule=TriggerRule.NONE_FAILED)
    def words(staged: Any, day: str, pinned: Any, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.daily import score

        if not params["explain"]:
            raise AirflowSkipException("the parameter explain is 0")
        return dict(score.stage_words(list(staged or []), day, pinned, params["explain"]))

    @task(inlets=tables("comments models"), outlets=tables("projections runs"), **GPU)
    def places(day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.daily import score

        if not params["map"]:
            raise AirflowSkipException("the parameter map is off")
        return score.place_texts(day, run_id)

    @task(
        inlets=tables("comments models"),
        outlets=tables("scores scores_explained runs"),
        trigger_rule=TriggerRule.NONE_FAILED,
    )
    def publish(staged: Any, explained: Any, day: str, pinned: Any, run_id: Any = None) -> int:
        from pipeline.tasks.daily import score

        return score.publish(list(staged or []), day, pinned, run_id, explained)

    day = resolve_day()
    pinned = pin(day)
    staged = implicitness.partial(pinned=pinned).expand(shard=shards(day, pinned))
    publish(staged, words(staged, day, pinned), day, pinned)
    places(day)


score()
