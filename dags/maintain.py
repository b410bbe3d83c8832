"""Maintain the tables: check them, compact small files, expire old snapshots, and delete unreferenced files.

Each table has one mapped task, and two tasks run at a time. You can clear or kill any task safely. The DAG removes no
data of an active write or run: it lists the files before it reads the references, and it keeps every file that is
younger than a day by the store's clock. A replaced snapshot stays for a week. The DAG refuses shorter limits unless you
force them.

**Triage.**

- *BadInput: … is damaged* names the partition and the file. Nothing was changed. Restore the file from a copy, or
  collect the partition again (`undertone backfill`).
- *The catalog … is damaged*: run `undertone recover-catalog`.
- *BadInput: grace of …*: the limits are too short.
- *Retry*: another writer won the race. The retry resolves it. If another writer changed a partition, the task counts it
  as lost and maintains it next time.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_defaults import Tag, build_options, plain_cron
from dag_params import number, switch

PARAMS = {
    "tables": Param([], type="array", items={"type": "string"}, title="Tables", description="Empty: all"),
    "keep_days": number(7, "Days to keep", "How long a replaced snapshot stays; at least 7 unless forced", 0, "number"),
    "grace_hours": number(
        24, "Hours of grace", "Younger files stay; longer than the longest task; at least 24 unless forced", 0, "number"
    ),
    "quiet_hours": number(1, "Hours at rest", "A partition with a newer write is not compacted", 0, "number"),
    "small_files": number(4, "Small files", "A partition with more small files is compacted"),
    "target_megabytes": number(
        256, "Megabytes per file", "Size of a compacted file; a file below a quarter of it is small"
    ),
    "gigabytes": number(20, "Gigabytes per run", "Maximum for each table; the next run compacts the rest", 0, "number"),
    "footers": switch(True, "Open files", "The check opens every data file"),
    "verify_weeks": number(
        4, "Weeks to verify", "All checksums are compared once in this number of weeks; 1: all now; 0: none", 0
    ),
    "force": switch(False, "Force", "Allow shorter limits while nothing else runs"),
    "dry_run": switch(False, "Dry run", "Check and count, change nothing"),
}


@dag(
    "maintain", schedule=plain_cron("0 4 * * 0"), params=PARAMS, **build_options(Tag.UPKEEP, __doc__, max_active_runs=1)
)
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
