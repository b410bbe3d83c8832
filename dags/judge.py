"""Let a language model judge a sample of the week's comments, and train the scorer on all judged comments.

The DAG reads `comments` of the seven days that end with its day, and draws some of each source at random. It asks the
model and writes `scores` with the metric `implicitness_judged`. It is off until you unpause it, and then runs on
Mondays. It costs at most the limit on cost a week. With *Distil* it then trains the scorer on all comments that this
judge has rated. The scorer is promoted if it is not worse than its rivals: by the judge, and on shipped graded groups.

**Triage.**

- *BadInput: name the language model*: set UNDERTONE_JUDGE, or the parameter of a run by hand.
- *Refused: the judge is of no use*: its answers do not come from the texts of a language. No score of
  it is written. Try another model.
- *Retry*: some requests failed temporarily. A retry sends only those.
- The answers cost money (connection `undertone_llm`) unless the ledger has them.
"""

from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dag_assets import MODELS, tables
from dag_defaults import DAY, GPU, Tag, build, optional_param, param, resolve_day, service, skip_missing

RUBRICS = "What is judged; quality is the commenting paper's 1 to 5, subtext CSD's eight kinds"
COST = {"type": ["null", "number"], "minimum": 0}
PARAMS = {
    "day": DAY,
    "llm": optional_param("string", "Judge", "Language model that judges. Empty: UNDERTONE_JUDGE"),
    "mode": Param("scale", enum=["scale", "pairwise"], title="Mode", description="Each text by itself, or two by two"),
    "rubric": param("implicitness", "Rubric", RUBRICS, enum=["implicitness", "quality", "subtext"]),
    "days": Param(7, type="integer", minimum=1, title="Days", description="That end with the day of the run"),
    "limit": Param(300, type="integer", minimum=1, title="Comments", description="Of each source at most"),
    "params": optional_param("object", "Sampling", "Parameters, such as {}. Empty: log probabilities on a scale"),
    "distil": Param(False, type="boolean", title="Distil", description="Train the scorer on the judged comments"),
    "max_cost": Param(1.0, **COST, title="Cost limit", description="Requests stop at this cost in USD"),
}


@dag(**build("judge", Tag.SCORE, __doc__, PARAMS), is_paused_upon_creation=True)
def judge() -> None:
    @task(inlets=tables("comments"), outlets=tables("scores completions dropped runs"))
    def scores(day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline.tasks import asking
        from pipeline.tasks.judging import judge
        from pipeline.tasks.judging.modes import Plan

        endpoint = asking.find_endpoint(*service("undertone_llm"))
        options = asking.Options(params["llm"] or "", max_cost=params["max_cost"], endpoint=endpoint, run_id=run_id)
        plan = Plan(params["rubric"], params["mode"])
        return judge.run(day, plan, options, params["days"], params["limit"], params["params"])

    @task(**GPU, outlets=MODELS)
    def model(judged: Any, day: str, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks.calibration import distillation

        if not params["distil"] or params["rubric"] != "implicitness":
            raise AirflowSkipException("the parameter distil is off, or the rubric is not implicitness")
        judge_name = f"{judged['model']}:{params['mode']}"
        with skip_missing():
            rows = distillation.load_judged(judge_name)
        return distillation.train(rows, day, judge_name, run_id=run_id)

    day = resolve_day()
    model(scores(day), day)


judge()
