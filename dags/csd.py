"""Label comments for subtext in two stages, request approval of the result, and publish it (CSD).

1. Select comments of a day into a labelling project.
2. Three raters label the comments, and an adjudicator decides disagreements.
3. Comments that the adjudicator sends back are labelled and decided once more.
4. A person approves the result, and the DAG publishes the data set.

The DAG reads `comments`. It writes `label_tasks`, `labels`, `annotations`, `annotated_comments`,
`<home>/reports/labels-*.html` and `<home>/releases/`. If you ask for a model, it also writes `models`, `evaluations`
and `scores`. A waiting task occupies no worker: Airflow reschedules it until the labels are complete. Every
UNDERTONE_REMIND_DAYS (3) an alert reports that the run waits.

Tools for labels:

- `files` writes tasks to `<home>/labelling/<project>/round1_stage1/` and reads labels from `labels/` in this folder.
- `label_studio` needs the connection `undertone_label_studio` (host; password: the token).
- `simulated` uses simulated raters, who answer at once, for demonstrations. The data card states this.

**Triage.**

- *BadInput* in `collect`: a label is not in the schema. The message names the file, the row and the field. Correct the
  file and clear the task.
- *Refused*: Label Studio rejected the token.
- A run that waits in `collect` waits for people. `undertone label status` shows the progress.
- If a person rejects the result in `approve`, nothing is published.
- *BadInput* in `publish`: labels changed after the review. Clear `summary` and review again.
- `score` is skipped if the trained model is not promoted and no other recogniser is in force. The log of `train` states
  why; `undertone models promote` promotes it by request.
"""

from typing import Any

from airflow.sdk import Param, PokeReturnValue, chain, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from dag_assets import MODELS, PAGES, tables
from dag_defaults import DAY, GPU, Approval, Tag, build, check_due, find_studio, remind, resolve_day, skip_missing

NAME = "^[a-z][a-z0-9_]{0,39}$"
TOOLS = ["files", "label_studio", "simulated"]
TEXT = {"type": "string"}
LIMIT = ["null", "integer"]
REQUIRED = "Fields without which a comment is not published"
TRAIN = "Train the recogniser on the data set, then score the day's comments with the one in force"
PARAMS = {
    "day": DAY,
    "project": Param("csd", type="string", pattern=NAME, title="Project", description="Name of the labelling project"),
    "tool": Param("files", enum=TOOLS, title="Tool", description="How the labels are collected"),
    "langs": Param(["zh"], type="array", items=TEXT, title="Languages", description="Languages of the comments"),
    "is_hot": Param(False, type="boolean", title="Hot only", description="Only comments that the site listed as hot"),
    "least_chars": Param(4, type="integer", minimum=1, title="Minimum characters", description="Of a comment"),
    "most_chars": Param(200, type="integer", minimum=1, title="Maximum characters", description="Of a comment"),
    "least_likes": Param(0, type="integer", minimum=0, title="Minimum likes", description="Of a comment"),
    "has_context": Param(True, type="boolean", title="With context", description="Drop comments without context"),
    "per_thread": Param(None, type=LIMIT, minimum=1, title="Comments per thread", description="Maximum"),
    "limit": Param(None, type=LIMIT, minimum=1, title="Comments per source", description="Maximum"),
    "required": Param(["subtext"], type="array", items=TEXT, title="Required", description=REQUIRED),
    "train": Param(False, type="boolean", title="Train", description=TRAIN),
    "licence": Param("not stated", **TEXT, title="Licence", description="Of the annotations, for the data card"),
}
WAIT: Any = {"mode": "reschedule", "poke_interval": 60, "timeout": 90 * 24 * 3600}
STEPS = {"raters": [1, 1], "adjudicator": [1, 2], "raters_again": [2, 1], "adjudicator_again": [2, 2]}


@dag(**build("csd", Tag.LABEL, __doc__, PARAMS))
def csd() -> None:
    @task(inlets=tables("comments"), outlets=tables("label_tasks dropped runs"))
    def select(day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.label.schema import check_fields
        from pipeline.tasks.labelling import csd

        check_fields(params["required"])  # early: a release that requires an unknown field would fail at its end
        rules = csd.Rules(**{name: params[name] for name in csd.Rules._fields})
        return csd.select(params["project"], day, rules, run_id)

    @task
    def push(step: list[int], params: Any = None) -> int:
        from pipeline.tasks.labelling import csd

        return csd.push(params["project"], tuple(step), params["tool"], find_studio())

    @task.sensor(**WAIT, outlets=tables("labels annotations dropped runs"))
    def collect(step: list[int], params: Any = None, run_id: Any = None) -> PokeReturnValue:
        from pipeline.tasks.labelling import csd

        status = csd.collect(params["project"], tuple(step), params["tool"], find_studio(), run_id)
        remind(status["waiting"])
        return PokeReturnValue(is_done=status["waiting"] == 0, xcom_value=status)

    @task(inlets=tables("annotations"), outlets=[PAGES["labels"]])
    def summary(day: str, params: Any = None) -> dict[str, str]:
        from pipeline.tasks.labelling import release

        page = str(release.write_page(params["project"], day))
        card = release.render_card(params["project"], day, params["required"], params["licence"])
        return {"page": page, "card": card}

    @task(outlets=tables("annotated_comments runs"))
    def publish(day: str, approved: Any, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks.labelling import release

        values = (params["required"], params["licence"], day, run_id, approved["card"])
        return str(release.release(params["project"], None, *values))

    @task(**GPU, inlets=tables("annotated_comments"), outlets=MODELS)
    def train(day: str, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks.subtext import recogniser

        if not params["train"]:
            raise AirflowSkipException("no model was requested")
        return recogniser.train(day, params["project"], run_id=run_id)

    @task(**GPU, inlets=tables("comments models"), outlets=tables("scores runs"))
    def score(day: str, run_id: Any = None) -> int:
        from pipeline.tasks.subtext import recogniser

        with skip_missing("the trained model is not promoted, and {}"):
            recogniser.load_model(None, day)
        return recogniser.score_day(day, None, run_id)

    day = resolve_day()
    steps = [check_due(day), select(day)]
    for name, step in STEPS.items():

        @task_group(group_id=name)
        def step_group(step: list[int]) -> None:
            push(step) >> collect(step)

        steps.append(step_group(step))
    summary_text = summary(day)
    approve = Approval(
        task_id="approve",
        subject="Publish the labels of project {{ params.project }}?",
        body="Page: `{{ ti.xcom_pull(task_ids='summary').page }}`\n\n{{ ti.xcom_pull(task_ids='summary').card }}",
    )
    model = train(day)
    chain(*steps, summary_text, approve, publish(day, summary_text), model)
    model >> score(day)


csd()
