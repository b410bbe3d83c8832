"""Keep the tables in order: compact small files, expire old snapshots, sweep what nobody refers to.

Nothing younger than a day is swept and no snapshot younger than a week expires, so no file of a run in flight goes.

**Triage.** Safe to clear at any time. *Retry*: a writer was faster; it settles by itself.
"""

from airflow.sdk import dag, task

from house import HOUSE, Tag


@dag(dag_id="maintain", schedule="0 4 * * 0", tags=[Tag.UPKEEP], doc_md=__doc__, **HOUSE)
def maintain() -> None:
    @task
    def tidy() -> dict[str, dict[str, int]]:
        from pipeline import warehouse

        return warehouse.maintain()

    tidy()


maintain()
