"""Find days that a paused DAG missed, and announce them again.

A paused DAG loses its asset events permanently. This DAG compares the tables (view `holes`) and posts the events again.
The DAGs `tokenize` and `score` then create the missing rows. `undertone heal` does the same work without Airflow.

**Triage.** If the runs of a day succeeded and the day is still in `holes`, it is a bug. If its runs failed, read their
logs.
"""

from typing import Any

from airflow.sdk import dag, task

from dag_assets import TABLES
from dag_defaults import Tag, build


@dag(**build("heal", Tag.UPKEEP, __doc__))
def heal() -> None:
    @task
    def holes(dag_run: Any = None, dag: Any = None) -> dict[str, list[str]]:
        from pipeline import slices
        from pipeline.tasks.daily import heal

        slices.check_params(dag_run.conf, dag.params)
        return heal.find_holes()

    @task(outlets=[TABLES["comments"], TABLES["tokens"]])
    def announce(missing_days: dict[str, list[str]], outlet_events: Any = None) -> dict[str, list[str]]:
        from airflow.sdk.exceptions import AirflowSkipException

        if not any(missing_days.values()):
            raise AirflowSkipException("no day is missing")
        untokenized = missing_days["tokens"]
        unscored = [
            day for day in missing_days["scores"] if day not in untokenized
        ]  # tokenize announces the others itself
        for asset, days in ((TABLES["comments"], untokenized), (TABLES["tokens"], unscored)):
            if days:
                outlet_events[asset].add_partitions(days)
        return missing_days

    announce(holes())


heal()
