"""Study the implicitness score, by hand or weekly if a model is new, and write a page of the results.

The studies are ablation, sensitivity, data sets, detection and validation.

The DAG reads `pairs`, `sentences` and the model in force. The ablation and the sensitivity study train on all pairs
with the profile of the paper. The studies of data sets and detection use the sentences and the model; validation uses
the shipped sets and the pairs. The DAG writes `studies` and `<home>/reports/studies-<day>.html`. If a study runs again,
it replaces its rows of the day.

If *People* names a tool, people rank ten shipped graded groups and choose ten paraphrases (section 6.2; `label_tasks`,
`labels`). Their means and those of the model are in `studies`, without names.

**Triage.**

- *BadInput* in `check` names the model or the data set. Nothing was trained.
- *Missing*: there are no pairs or sentences yet. Run `impscore` first.
- *Retry* in `ask`: some requests failed temporarily. A retry sends only those.
- Detection sends requests to a language model (connection `undertone_llm`). It costs money unless the ledger has the
  answers.
"""

from typing import Any

from airflow.sdk import Param, TriggerRule, dag, task

from dag_assets import PAGES, tables
from dag_defaults import DAY, GPU, Tag, ask_people, build, check_due, param, resolve_day, service, tool_param

STUDIES = "sensitivity trains 360 times; detection sends requests to a language model"
COST = "Requests stop at this cost in USD"
ITEMS = {"type": "string", "enum": ["ablation", "sensitivity", "data_sets", "detection", "validation"]}
PARAMS = {
    "day": DAY,
    "studies": param(["ablation", "data_sets"], "Studies", STUDIES, items=ITEMS),
    "runs": param(3, "Runs", "Number of trainings for each design or setting", minimum=1),
    "epochs": Param(None, type=["null", "integer"], minimum=1, title="Epochs", description="Empty: the paper's 30"),
    "cells_per_task": param(15, "Trainings per task", "For ablation and sensitivity", minimum=1),
    "model_id": Param(None, type=["null", "string"], title="Model", description="Empty: the one in force for the day"),
    "ask": Param(None, type=["null", "string"], title="Detector", description="Language model for detection"),
    "detect": param([], "Detection sources", "Sources of the sentences for detection", items={"type": "string"}),
    "limit": Param(None, type=["null", "integer"], minimum=1, title="Sentences", description="Maximum for each source"),
    "max_cost": Param(None, type=["null", "number"], minimum=0, title="Cost limit", description=COST),
    "tool": tool_param("files", "label_studio", "simulated"),
}


@task
def check(params: Any = None) -> None:
    """Check the model and the data sets before anything is trained."""
    from pipeline.tasks.studies import rows

    rows.check_params(params)


@dag(**build("studies", Tag.REPORT, __doc__, PARAMS))
def studies() -> None:
    @task
    def trainings(params: Any = None) -> list[Any]:
        from pipeline.tasks.studies import rows

        names = [study for study in rows.STUDIES if study in params["studies"]]
        plans = {study: rows.plan(study, params["runs"], params["cells_per_task"]) for study in names}
        return [{"study": study, "cells": part} for study, plan in plans.items() for part in plan]

    @task(**GPU, map_index_template="{{ part['study'] }}")
    def train(part: Any, day: str, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.studies import rows

        return dict(rows.stage_cells(part["study"], part["cells"], day, params["epochs"]))

    @task
    def data_sets(params: Any = None) -> list[str]:
        from pipeline.tasks.studies import rows

        return rows.list_sources() if "data_sets" in params["studies"] else []

    @task(**GPU, map_index_template="{{ source }}")
    def describe(source: str, day: str, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.studies import rows

        return dict(rows.stage_data_set(source, day, params["model_id"]))

    @task
    def detectors(params: Any = None) -> list[str]:
        from pipeline.tasks.studies import rows

        return rows.list_detection_sources(params["ask"], params["detect"]) if "detection" in params["studies"] else []

    @task(map_index_template="{{ source }}", outlets=tables("completions runs"))
    def ask(source: str, day: str, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks import asking
        from pipeline.tasks.studies import rows

        endpoint = asking.find_endpoint(*service("undertone_llm"))
        options = asking.Options(params["ask"], max_cost=params["max_cost"], endpoint=endpoint, run_id=run_id)
        rows.ask(source, options, params["limit"], day)
        return source

    @task(**GPU, map_index_template="{{ source }}")
    def detected(source: str, day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline.tasks import asking
        from pipeline.tasks.studies import rows

        options = asking.Options(params["ask"], mode="cache-only", run_id=run_id)
        return dict(rows.stage_detection(source, day, options, params["model_id"], params["limit"]))

    @task(inlets=tables("pairs sentences"), outlets=tables("studies runs"), trigger_rule=TriggerRule.NONE_FAILED)
    def publish(trainings: Any, descriptions: Any, detections: Any, day: str, run_id: Any = None) -> int:
        from pipeline.tasks.studies import rows

        return rows.publish([*(trainings or []), *(descriptions or []), *(detections or [])], day, run_id)

    @task(**GPU, outlets=tables("studies runs"))
    def validate(day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.studies import validation

        if "validation" not in params["studies"]:
            return 0
        models = [params["model_id"]] if params["model_id"] else []
        return validation.write_study(*validation.measure(day, models), day, run_id)

    # on the queue `gpu`, as it embeds the sentences that it shows; none_failed: people may not be asked
    @task(**GPU, inlets=tables("studies"), outlets=[PAGES["studies"]], trigger_rule=TriggerRule.NONE_FAILED)
    def page(row_count: Any, day: str) -> str:
        from pipeline.tasks.studies import rows

        return rows.write_report(day)

    day = resolve_day()
    is_due = check_due(day)
    check() >> day
    parts, described_sources, detected_sources = trainings(), data_sets(), detectors()
    is_due >> [parts, described_sources, detected_sources]
    trained = train.partial(day=day).expand(part=parts)
    described = describe.partial(day=day).expand(source=described_sources)
    sources = ask.partial(day=day).expand(source=detected_sources)
    row_count = publish(trained, described, detected.partial(day=day).expand(source=sources), day)
    people = ask_people("people", "studies.rows", ["ranking", "choice"], day, "studies", "studies", **GPU)
    is_due >> [validate(day), people] >> page(row_count, day)


studies()
