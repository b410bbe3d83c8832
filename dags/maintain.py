"""Maintain the tables: check them, compact small files, expire old snapshots, and delete unreferenced files.

Each table has one mapped task, and two tasks run at a time. You can clear or kill any task safely. The DAG removes no
data of an active write or run: it lists the files before it reads the references, and it keeps every file that is
younger than a day by the store's clock. A replaced snapshot stays for a week. The DAG refuses shorter limits unless you
force them.

**Triage.**

- *BadInput: … is damaged* names the partition and the file. Nothing was changed. Restore the file from a copy, or
  collect the partition again (`undertone backfill`).
- *The catalog … is damaged*: run `undertone recover-catalog`.
- *BadInput: keep_days: expected …*: the limit is too short.
- *Retry*: another writer won the race. The retry resolves it. If another writer changed a partition, the task counts it
  as lost and maintains it next time.
"""

from typing import Any

from airflow.sdk import dag, task

from dag_defaults import Tag, build, param

_NUMBER = {"type": "number", "minimum": 0, "maximum": 36_500}
PARAMS = {
    "tables": param([], "Tables", "Empty: all", items={"type": "string"}),
    "keep_days": param(7, "Days to keep", "How long a replaced snapshot stays; at least 7 unless forced", **_NUMBER),
    "grace_hours": param(24, "Hours of grace", **_NUMBER,
                         description="Younger files stay; longer than the longest task; at least 24 unless forced"),
    "quiet_hours": param(1, "Hours at rest", "A partition with a newer write is not compacted", **_NUMBER),
    "small_files": param(4, "Small files", "A partition with more small files is compacted", minimum=1),
    "target_megabytes": param(256, "Megabytes per file", minimum=1,
                              description="Size of a compacted file; a file below a quarter of it is small"),
    "gigabytes": param(20, "Gigabytes per run", "Maximum for each table; the next run compacts the rest", **_NUMBER),
    "footers": param(True, "Open files", "The check opens every data file"),
    "verify_weeks": param(4, "Weeks to verify", minimum=0,
                          description="All checksums are compared once in this number of weeks; 1: all now; 0: none"),
    "force": param(False, "Force", "Allow shorter limits while nothing else runs"),
    "dry_run": param(False, "Dry run", "Check and count, change nothing"),
}  # fmt: skip


@dag(**build("maintain", Tag.UPKEEP, __doc__, PARAMS), max_active_runs=1)
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
