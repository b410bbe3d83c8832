"""Maintain the tables: check, compact small files, expire replaced snapshots, sweep unreferenced files.

One mapped task for each table, two at a time, each safe to clear or to kill. Nothing of a write or run in flight is
removed: files are listed before the references are read, no file younger than a day by the store's clock is removed,
and a replaced snapshot stays for a week. Shorter limits are refused unless forced.

**Triage.** *BadInput: … is damaged* names partition and file: nothing was changed; restore the file from a copy, or
collect that partition again (`undertone backfill`). *The catalog … is damaged*: `undertone recover-catalog`. *BadInput:
grace of …*: the limits are too short. *Retry*: another writer won the race; the retry resolves it. A partition that
another writer changed is counted as lost and maintained the next time.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_defaults import DEFAULTS, Tag, plain_cron

PARAMS = {
    "tables": Param([], type="array", items={"type": "string"}, title="Tables", description="Empty: all"),
    "keep_days": Param(7, type="number", minimum=0, title="Days to keep",
                       description="How long a snapshot stays after another took its place; 7 or more unless forced"),
    "grace_hours": Param(24, type="number", minimum=0, title="Hours of grace",
                         description="No younger file is removed; longer than the longest task, 24 unless forced"),
    "quiet_hours": Param(1, type="number", minimum=0, title="Hours at rest",
                         description="A partition written since then is not compacted"),
    "small_files": Param(4, type="integer", minimum=1, title="Small files",
                         description="A partition with more of them is compacted"),
    "target_megabytes": Param(256, type="integer", minimum=1, title="Megabytes a file",
                              description="Size of a compacted file; one under a quarter of it is small"),
    "gigabytes": Param(20, type="number", minimum=0, title="Gigabytes a run",
                       description="Rewritten at most, a table; the rest the next time"),
    "footers": Param(True, type="boolean", title="Open files", description="The check opens every data file"),
    "verify_weeks": Param(4, type="integer", minimum=0, title="Weeks to verify",
                          description="Checksums of all files are compared once in so many weeks; 1 all now, 0 none"),
    "force": Param(False, type="boolean", title="Force", description="Take shorter limits, while nothing else runs"),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Check and count, change nothing"),
}  # fmt: skip


@dag(dag_id="maintain", schedule=plain_cron("0 4 * * 0"), params=PARAMS, tags=[Tag.UPKEEP], doc_md=__doc__,
     **{**DEFAULTS, "max_active_runs": 1})  # fmt: skip
def maintain() -> None:
    @task
    def tables(params: Any = None, dag_run: Any = None, dag: Any = None) -> list[str]:
        from pipeline import slices
        from pipeline.tasks import upkeep

        slices.check_params(dag_run.conf, dag.params)
        return upkeep.list_tables(params["tables"], params)

    @task(max_active_tis_per_dag=2, map_index_template="{{ table }}")
    def tidy(table: str, params: Any = None) -> dict[str, int]:
        from pipeline.tasks import upkeep

        return upkeep.maintain_table(table, params)

    @task
    def scratch(table_names: list[str], params: Any = None) -> dict[str, int]:
        from pipeline.tasks import upkeep

        return upkeep.maintain_scratch(params)

    table_names = tables()
    tidy.expand(table=table_names)
    scratch(table_names)


maintain()
