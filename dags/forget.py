"""Erase everything that derives from some people's comments, in every store, and verify it by a search.

Started only by hand. The people are named in a **file** that a worker can read (csv, tsv, jsonl, xlsx with the columns
`user_id`, `comment_id` or `thread_id`, and `source`), never in the run's parameters: these stay in Airflow's database.
The file is removed at the end. An `origin`, the name of an imported file, may be given instead. Logs, XCom and rendered
templates have only counts and days. Raw ids of users are hashed with the password of the connection
`undertone_user_key`. Let few people trigger it: it cannot be undone.

**Triage.** *BadInput* names file, row and field; nothing was erased. *Retry*: another writer won the race, or something
remains, and the message says where: clear the task; the comments are erased last and lead to the rest again. An
unreferenced file may be of a run in flight, so clear the task a day later (or run `undertone forget --grace-hours 0`
while nothing else runs). Let runs in flight end first: they may write what they read before. *Missing: no such file*:
its erasure has ended already. Models that contain words of it are removed (`model_erasures`; the task's return value
has the commands that train them again, `retrain` runs them); models of numbers alone are flagged in the view
`models_flagged`.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_defaults import DEFAULTS, Tag, secret

PARAMS = {
    "path": Param(None, type=["null", "string"], title="File of ids",
                  description="A path that the worker can read; removed when everything is erased"),
    "origin": Param(None, type=["null", "string"], title="Imported file",
                    description="Everything imported under this name, such as comments.csv"),
    "source": Param(None, type=["null", "string"], pattern="^[a-z][a-z0-9_]{0,39}$", title="Source",
                    description="Of the ids where the file names none; of the origin"),
    "retrain": Param(False, type="boolean", title="Train again",
                     description="Train the removed models again that were in force; else do it by hand"),
    "dry_run": Param(False, type="boolean", title="Only count", description="Count what would go; change nothing"),
}  # fmt: skip


@dag(dag_id="forget", schedule=None, params=PARAMS, tags=[Tag.UPKEEP], doc_md=__doc__,
     **{**DEFAULTS, "max_active_runs": 1})  # fmt: skip
def forget() -> None:
    @task(queue="gpu", pool="gpu")  # it reads models with torch, and may train them again
    def erase(params: Any = None, dag_run: Any = None, dag: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline import slices
        from pipeline.tasks.erasure import run

        slices.check_params(dag_run.conf, dag.params)
        return run.forget_file(params, secret("undertone_user_key"), run_id)

    erase()


forget()
