"""Erase everything that comes from some people's comments, everywhere, and prove by a search that it is gone.

Started by hand alone. Whom it is about stands in a **file** that a worker can read (csv, tsv, jsonl, xlsx with the
columns `user_id`, `comment_id` or `thread_id`, and `source`), never in the run's parameters: these stay in Airflow's
database, and would remember what is to be forgotten. The file is removed at the end. An `origin`, the name of an
imported file, may be given instead. Logs, XCom and rendered templates get counts and days alone. Raw ids of users are
hashed with the password of the connection `undertone_user_key`. Give the right to trigger it to few: it cannot be
undone.

**Triage.** *BadInput* names file, row and field; nothing was erased. *Retry*: another writer was faster, or something
is left, and where is told: clear the task, the comments go last and lead to the rest again; a file that no state of a
table refers to may be of a run in flight, so clear it a day later (or `undertone forget --grace-hours 0` while nothing
else runs). Let runs in flight end first: they may write what they read before. *Missing: no such file*: it
was erased by already. Models that held words of it are removed (`model_erasures`; the task's return value has the
commands that train them again, `retrain` does it); models of numbers alone are flagged in the view `models_flagged`.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_defaults import DEFAULTS, Tag, secret

PARAMS = {
    "path": Param(None, type=["null", "string"], title="File of ids",
                  description="A path that the worker can read; the file is removed when all of it is erased"),
    "origin": Param(None, type=["null", "string"], title="Imported file",
                    description="Everything that an import of this name brought, such as comments.csv"),
    "source": Param(None, type=["null", "string"], pattern="^[a-z][a-z0-9_]{0,39}$", title="Source",
                    description="Of the ids where the file names none; of the origin"),
    "retrain": Param(False, type="boolean", title="Train again",
                     description="Train the models again that were in force and had to go; else do it by hand"),
    "dry_run": Param(False, type="boolean", title="Only count", description="Count what would go and change nothing"),
}  # fmt: skip


@dag(dag_id="forget", schedule=None, params=PARAMS, tags=[Tag.UPKEEP], doc_md=__doc__,
     **{**DEFAULTS, "max_active_runs": 1})  # fmt: skip
def forget() -> None:
    @task(queue="gpu", pool="gpu")  # what a model was trained by is read with torch, and it may be trained again
    def erase(params: Any = None, dag_run: Any = None, dag: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline import slices
        from pipeline.tasks.erasure import run as forget

        slices.known_params(dag_run.conf, dag.params)
        given = (params["path"], params["origin"], params["source"])
        return forget.forget_file(
            *given, secret("undertone_user_key"), run_id, dry_run=params["dry_run"], retrain=params["retrain"]
        )

    erase()


forget()
