"""Check the day in the tables, then write the day's HTML report.

Reads all tables through `sql/checks/` and `sql/views/`; writes one self-contained page below the reports folder. Each
check is a mapped task of its own; if one fails there is no report of the day. `health` writes the page of the last
days' steps too (`health-<day>.html`), also if a check fails.

**Triage.** A failed check lists its first rows: the SQL file of its name states what should hold. The usual reason is a
day whose `tokenize` or `score` was paused: run `heal`.
"""

from airflow.sdk import PartitionedAssetTimetable, TriggerRule, dag, task

from dag_defaults import DAY, SCORES, Tag, build_daily, resolve_day


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
