"""Train ImpScore: completions to pairs, pairs to a model, the model into the registry.

Reads `completions`, and a cassette to add to them if one is named; writes `completions`, `pairs`, `models`,
`evaluations`. The same pairs and numbers give the same model id. `score` uses the newest model trained for the day
it scores or before.

**Triage.** The accuracies and, beside them, the length baseline are in `evaluations`. *BadInput* on the encoder: its
files are not the pinned ones. A task that waits in *scheduled* wants the pool `gpu`: `airflow pools set gpu 1 GPU`.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from house import DAY, HOUSE, MODELS, Tag, every, the_day

PARAMS = {
    "day": DAY,
    "cassette": Param(
        None,
        type=["null", "string"],
        title="Completions",
        description="A .jsonl cassette to add first, or `sample` for the shipped one; empty: what is in the table",
    ),
    "epochs": Param(None, type=["null", "integer"], minimum=1, title="Epochs", description="Empty: the paper's 30"),
    "seed": Param(None, type=["null", "integer"], title="Seed", description="Empty: the released code's 42"),
}


@dag(dag_id="impscore", schedule=every("0 2 * * 1"), params=PARAMS, tags=[Tag.TRAIN], doc_md=__doc__, **HOUSE)
def impscore() -> None:
    @task
    def completions(day: str, params: Any = None, run_id: Any = None) -> list[str]:
        from pipeline.tasks import impscore

        return impscore.play(day, params["cassette"], run_id) if params["cassette"] else impscore.answered()

    @task(map_index_template="{{ source }}")
    def pairs(source: str, day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks import impscore

        return impscore.build_pairs(source, day, params["seed"], run_id)

    @task(queue="gpu", pool="gpu", outlets=[MODELS])  # skipped where there are no completions
    def train(built: Any, day: str, params: Any = None, run_id: Any = None, outlet_events: Any = None) -> str:
        from pipeline.tasks import impscore

        model_id = impscore.train(day, epochs=params["epochs"], seed=params["seed"], run_id=run_id)
        outlet_events[MODELS].add_partitions([day])
        return model_id

    day = the_day()
    train(pairs.partial(day=day).expand(source=completions(day)), day)


impscore()
