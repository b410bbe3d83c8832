"""Check the day in the tables, then write the HTML report of the day.

The DAG reads all tables through `sql/checks/` and `sql/views/`, and writes one self-contained page to the reports
folder. Each check is a mapped task. If a check fails, the DAG writes no report of the day. The task `health` also
writes the page of the steps of recent days (`health-<day>.html`), even if a check fails.

**Triage.** A failed check lists its first rows. The SQL file with the name of the check states the rule. The usual
cause is a paused `tokenize` or `score`: run `heal`.
"""

from airflow.sdk import PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import SCORES, Tag, build_daily, resolve_day
from dag_params import DAY


@dag(
    "report", schedule=PartitionedAssetTimetable(assets=SCORES), params={"day": DAY}, **build_daily(Tag.REPORT, __doc__)
)
def report() -> None:
    @task
    def checks(day: str) -> list[str]:
        from pipeline import warehouse

        return warehouse.list_checks()

    @task(map_index_template="{{ name }}")
    def check(name: str, day: str) -> None:
        from pipeline.tasks.daily import report

        report.check(name, day)

    @task(inlets=[SCORES], trigger_rule=TriggerRule.NONE_FAILED)
    def page(day: str) -> str:
        from pipeline.tasks.daily import report

        return report.write(day)

    @task
    def health(day: str) -> str:
        from pipeline.tasks.daily import health

        return health.write_page(day)

    day = resolve_day()
    health(day)
    check.partial(day=day).expand(name=checks(day)) >> page(day)


report()
