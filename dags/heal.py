"""Find days that were lost while a DAG was paused, and announce them again.

A paused consumer loses its asset events for good. This DAG compares the tables (view `holes`) and posts the events
anew: `tokenize` and `score` then make what is missing. `undertone heal` does the same work without Airflow.

**Triage.** A day that stays in `holes` after its runs succeeded is a bug; a day whose runs failed is theirs to tell.
"""

from typing import Any

from airflow.sdk import dag, task

from dag_defaults import COMMENTS, DEFAULTS, TOKENS, Tag, plain_cron


@dag(dag_id="heal", schedule=plain_cron("0 6 * * *"), tags=[Tag.UPKEEP], doc_md=__doc__, **DEFAULTS)
def heal() -> None:
    @task
    def holes() -> dict[str, list[str]]:
        from pipeline.tasks.daily import heal

        return heal.find_holes()

    @task(outlets=[COMMENTS, TOKENS])
    def announce(found: dict[str, list[str]], outlet_events: Any = None) -> dict[str, list[str]]:
        from airflow.sdk.exceptions import AirflowSkipException

        if not any(found.values()):
            raise AirflowSkipException("no day is missing")
        untokenized = found["tokens"]
        unscored = [day for day in found["scores"] if day not in untokenized]  # tokenize announces the others itself
        for asset, days in ((COMMENTS, untokenized), (TOKENS, unscored)):
            if days:
                outlet_events[asset].add_partitions(days)
        return found

    announce(holes())


heal()
