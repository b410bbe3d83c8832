"""Write the HTML report of the day, after checks of its tables.

The DAG reads all tables through `sql/checks/` and `sql/views/`, and writes one self-contained page to the reports
folder. Each check is a mapped task. If a check fails, the DAG writes no report of the day. The task `health` also
writes the page of the steps of recent days (`health-<day>.html`), even if a check fails.

**Triage.** A failed check lists its first rows. The SQL file with the name of the check states the rule. The usual
cause is a paused `tokenize` or `score`: run `heal`.
"""

from typing import Any

from airflow.sdk import TriggerRule, dag, task

from dag_assets import PAGES, tables
from dag_defaults import DAY, Tag, build, resolve_day, skip_missing


@dag(**build("report", Tag.REPORT, __doc__, {"day": DAY}, is_daily=True))
def report() -> None:
    @task
    def checks(day: str) -> list[str]:
        from pipeline import warehouse

        return warehouse.list_checks()

    @task(map_index_template="{{ name }}")
    def check(name: str, day: str) -> None:
        from pipeline.tasks.daily import report

        report.check(name, day)

    @task(
        inlets=tables("scores scores_explained comments"),
        outlets=[PAGES["report"]],
        trigger_rule=TriggerRule.NONE_FAILED,
    )
    def page(day: str, dag_run: Any = None) -> str:
        from pipeline.tasks.daily import report

        with skip_missing("scores of another metric started this run: {}", dag_run):
            return report.write(day)

    @task(inlets=tables("runs dropped"), outlets=[PAGES["health"]])
    def health(day: str) -> str:
        from pipeline.tasks.daily import report

        return report.write_health(day)

    day = resolve_day()
    health(day)
    check.partial(day=day).expand(name=checks(day)) >> page(day)


report()
