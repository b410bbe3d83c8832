"""Label comments for subtext in two stages, request approval of the result, and publish it (CSD).

1. Select comments of a day into a labelling project.
2. Three raters label the comments, and an adjudicator decides disagreements.
3. Comments that the adjudicator sends back are labelled and decided once more.
4. A person approves the result, and the DAG publishes the data set.

The DAG reads `comments`. It writes `label_tasks`, `labels`, `annotations`, `annotated_comments`,
`<home>/reports/labels-*.html` and `<home>/releases/`. If you ask for a model, it also writes `models`, `evaluations`
and `scores`. A waiting task occupies no worker: Airflow reschedules it until the labels are complete.

Tools for labels:

- `files` writes tasks to `<home>/labelling/<project>/round1_stage1/` and reads labels from `labels/` in this folder.
- `label_studio` needs the connection `undertone_label_studio` (host; password: the token).
- `simulated` uses simulated raters, who answer at once, for demonstrations. The data card states this.

**Triage.**

- *BadInput* in `collect`: a label is not in the schema. The message names the file, the row and the field. Correct the
  file and clear the task.
- *Refused*: Label Studio rejected the token.
- A run that waits in `collect` waits for people. `undertone label status` shows the progress.
- `approve` waits in the UI under *Required actions*. If a person rejects the result, nothing is published.
- *BadInput* in `publish`: labels changed after the review. Clear `summary` and review again.
- `score` is skipped if the trained model is not promoted and no other recogniser is in force. The log of `train` states
  why; `undertone models promote` promotes it by request.
"""

from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, PokeReturnValue, chain, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from dag_defaults import LABELS, Tag, build_options, resolve_day, service
from dag_params import DAY, choice, number, optional, switch

_NAME = "^[a-z][a-z0-9_]{0,39}$"
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_REQUIRED = "Fields without which a comment is not published"
_TRAIN = "Train the recogniser on the data set, then score the day's comments with the one in force"
_LICENCE = "Licence of the annotations, for the data card"
PARAMS = {
    "day": DAY,
    "project": Param("csd", type="string", pattern=_NAME, title="Project", description="Name of the labelling project"),
    "tool": choice(["files", "label_studio", "simulated"], "Tool", "How the labels are collected"),
    "langs": Param(["zh"], **_TEXTS, title="Languages", description="Languages of the comments"),
    "is_hot": switch(False, "Hot only", "Only comments that the site listed as hot"),
    "least_chars": number(4, "Minimum characters", "Of a comment"),
    "most_chars": number(200, "Maximum characters", "Of a comment"),
    "least_likes": number(0, "Minimum likes", "Of a comment", 0),
    "has_context": switch(True, "With context", "Drop comments without context"),
    "per_thread": optional("integer", "Comments per thread", "Maximum", minimum=1),
    "limit": optional("integer", "Comments per source", "Maximum", minimum=1),
    "required": Param(["subtext"], **_TEXTS, title="Required", description=_REQUIRED),
    "train": switch(False, "Train", _TRAIN),
    "licence": Param("not stated", type="string", title="Licence", description=_LICENCE),
}
STEPS = {"raters": [1, 1], "adjudicator": [1, 2], "raters_again": [2, 1], "adjudicator_again": [2, 2]}


@dag("csd", schedule=None, params=PARAMS, **build_options(Tag.LABEL, __doc__))
def csd() -> None:
    @task
    def select(day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.label.schema import check_fields
        from pipeline.tasks.labelling import csd

        check_fields(params["required"])  # early: a release that requires an unknown field would fail at its end
        rules = csd.Rules(**{name: params[name] for name in csd.Rules._fields})
        return csd.select(params["project"], day, rules, run_id)

    @task
    def push(step: list[int], params: Any = None) -> int:
        from pipeline.tasks.labelling import csd, projects

        studio = projects.find_studio(*service("undertone_label_studio", ""))
        return csd.push(params["project"], tuple(step), params["tool"], studio)

    @task.sensor(mode="reschedule", poke_interval=60, timeout=90 * 24 * 3600)
    def collect(step: list[int], params: Any = None, run_id: Any = None) -> PokeReturnValue:
        from pipeline.tasks.labelling import csd, projects

        studio = projects.find_studio(*service("undertone_label_studio", ""))
        status = csd.collect(params["project"], tuple(step), params["tool"], studio, run_id)
        return PokeReturnValue(is_done=status["waiting"] == 0, xcom_value=status)

    @task
    def summary(day: str, params: Any = None) -> str:
        from pipeline.tasks.labelling import release

        release.write_page(params["project"], day)
        return release.render_card(params["project"], day, params["required"], params["licence"])

    @task(outlets=[LABELS])
    def publish(
        day: str, approved_summary: str, params: Any = None, run_id: Any = None, outlet_events: Any = None
    ) -> str:
        from pipeline.tasks.labelling import release

        folder = release.release(
            params["project"], None, params["required"], params["licence"], day, run_id, approved_summary
        )
        outlet_events[LABELS].add_partitions(day)
        return str(folder)

    @task(queue="gpu", pool="gpu")
    def train(day: str, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks.subtext import recogniser

        if not params["train"]:
            raise AirflowSkipException("no model was requested")
        return recogniser.train(day, params["project"], run_id=run_id)

    @task(queue="gpu", pool="gpu")
    def score(day: str, run_id: Any = None) -> int:
        from pipeline.errors import Missing
        from pipeline.tasks.subtext import recogniser

        try:
            recogniser.load_model(None, day)
        except Missing as error:
            raise AirflowSkipException(f"the trained model is not promoted, and {error}") from error
        return recogniser.score_day(day, None, run_id)

    day = resolve_day()
    steps = [select(day)]
    for name, step in STEPS.items():

        @task_group(group_id=name)
        def step_group(step: list[int]) -> None:
            push(step) >> collect(step)

        steps.append(step_group(step))
    summary_text = summary(day)
    approve = ApprovalOperator(
        task_id="approve",
        subject="Publish the labels of project {{ params.project }}?",
        body="{{ ti.xcom_pull(task_ids='summary') }}",
    )
    model = train(day)
    chain(*steps, summary_text, approve, publish(day, summary_text), model)
    model >> score(day)


csd()
