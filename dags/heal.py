"""Find days that a paused DAG missed, and announce them again.

A paused DAG loses its asset events permanently. This DAG compares the tables (view `holes`, and `runs` for the DAGs of
papers that follow a table) and posts the events again. The DAGs `tokenize`, `score`, `ndd`, `commenting` and `recam`
then create the missing rows. `undertone heal` does the same work without Airflow, also for DAGs on a clock.

**Triage.** If the runs of a day succeeded and the day is still found, it is a bug. If its runs failed, read their logs.
"""

from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dag_assets import TABLES, tables
from dag_defaults import Tag, build
from pipeline import settings

FOLLOWED = {  # the table whose new days start a DAG, by what it makes
    "tokens": "comments", "scores": "tokens",
    **{name: table for name in ("ndd", "commenting", "recam") if (table := settings.schedule(name)) in TABLES},
}  # fmt: skip


@dag(**build("heal", Tag.UPKEEP, __doc__))
def heal() -> None:
    @task
    def holes(dag_run: Any = None, dag: Any = None) -> dict[str, list[str]]:
        from pipeline import slices
        from pipeline.tasks.operate import backfill

        slices.check_params(dag_run.conf, dag.params)
        return backfill.find_holes()

    @task(outlets=tables(" ".join(sorted({*FOLLOWED.values()}))))
    def announce(missing_days: dict[str, list[str]], outlet_events: Any = None) -> dict[str, list[str]]:
        if not any(missing_days.values()):
            raise AirflowSkipException("no day is missing")
        for table in {*FOLLOWED.values()}:
            days = {day for name in FOLLOWED if FOLLOWED[name] == table for day in missing_days.get(name, [])}
            if table == "tokens":  # tokenize announces the others itself
                days -= {*missing_days["tokens"]}
            if days:
                outlet_events[TABLES[table]].add_partitions(sorted(days))
        return missing_days

    announce(holes())


heal()
