"""Erase everything that derives from the comments of some people, in every store, and verify it by a search.

Start this DAG by hand only, and let few people trigger it: an erasure cannot be undone. Name the people in a **file**
that a worker can read (csv, tsv, jsonl or xlsx). Its columns are `user_id`, `comment_id` or `thread_id`, and `source`.
Do not use the parameters of the run for ids: Airflow keeps them in its database. The DAG removes the file
at the end. Instead of a file, you can give an `origin`, the name of an imported file. Logs, XCom and rendered templates
contain only counts and days. The DAG hashes raw user ids with the password of the connection `undertone_user_key`.

The DAG removes models that contain words of an erased comment. The table `model_erasures` lists them. The return value
of the task has the commands that train them again; the parameter `retrain` runs these commands. Models that contain
only numbers are flagged in the view `models_flagged`.

**Triage.**

- *BadInput* names the file, the row and the field. Nothing was erased.
- *Retry*: another writer won the race, or some data remain; the message names the place. Clear the task. The comments
  are erased last, so a new attempt finds the rest again.
- An unreferenced file may belong to an active run. Clear the task a day later, or run
  `undertone forget --grace-hours 0` while nothing else runs.
- Wait for active runs first: they may write data that they read before the erasure.
- *Missing: no such file*: the erasure of this file is complete.
"""

from typing import Any

from airflow.sdk import dag, task

from dag_assets import tables
from dag_defaults import GPU, Tag, build, optional_param, param, secret

PARAMS = {
    "path": optional_param("string", "File of ids", "A path that the worker can read; the DAG removes it at the end"),
    "origin": optional_param("string", "Imported file", "Erase all rows from this imported file, such as comments.csv"),
    "source": optional_param("string", "Source", "Source of ids without one in the file; source of the imported file",
                             pattern="^[a-z][a-z0-9_]{0,39}$"),
    "retrain": param(False, "Train again", "Train removed models in force again; by default, do it by hand"),
    "dry_run": param(False, "Only count", "Count rows and files; change nothing"),
}  # fmt: skip


@dag(**build("forget", Tag.UPKEEP, __doc__, PARAMS), max_active_runs=1)
def forget() -> None:
    @task(**GPU, outlets=tables("erasures model_erasures"))  # it reads models with torch, and may train them again
    def erase(params: Any = None, dag_run: Any = None, dag: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline import slices
        from pipeline.tasks.erasure import run

        slices.check_params(dag_run.conf, dag.params)
        return run.forget_file(params, secret("undertone_user_key"), run_id)

    erase()


forget()
