"""Collect comments: one day, one task for each source.

Reads the day's inbox (`<inbox>/<source>/<day>/`), a path, the shipped sample, or, if asked, a site. Writes `raw_pages`,
`articles`, `comments`, `dropped`, `runs`; then `tokenize` starts by itself.

**Triage.** *BadInput* names file, row, field and what was expected: correct the file, clear the task. *SchemaDrift*:
the site changed; the page is kept, the adapter in `pipeline/collect/` needs an update. A *skipped* source refused to be
read (robots.txt, 403, a log-in page): leave it alone; the pages fetched before are written. *Retry*: another run wrote
the same day; the retry resolves it. Users are pseudonymised with the password of the connection `undertone_user_key`,
or dropped without one; a cookie of your own for a site goes into the password of `undertone_<source>`.
"""

from typing import Any

from airflow.sdk import Param, TriggerRule, dag, task

from dag_defaults import COMMENTS, DAY, Tag, build_daily, optional_param, partition_cron, resolve_day, secret

PARAMS = {
    "day": DAY,
    "source": Param(
        "all",
        type="string",
        pattern="^[a-z][a-z0-9_]{0,39}$",
        title="Source",
        description="all, a site (weibo, netease, bilibili, zhihu, tencent_news), or a name for data of your own",
    ),
    "path": optional_param(
        "string",
        "File or folder",
        "csv, tsv, txt, jsonl, json, parquet, xlsx, SQLite; `sample`: the shipped corpus; empty: the inbox",
    ),
    "mapping": optional_param(
        "string",
        "Columns",
        "Our field=their column, as in text=content,like_count=likes. Empty: known exports are recognised",
    ),
    "encoding": Param("utf-8-sig", type="string", title="Encoding", description="Of text files, such as gb18030"),
    "skip_bad_rows": Param(
        False,
        type="boolean",
        title="Skip bad rows",
        description="Drop rows that cannot be read, each with a reason, instead of stopping at the first",
    ),
    "live": Param(False, type="boolean", title="Ask the site", description="Fetch `threads` politely. Off by default"),
    "threads": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Threads",
        description="Ids of posts, songs or articles to fetch when asking the site",
    ),
}


@dag("collect", schedule=partition_cron("0 0 * * *"), params=PARAMS, **build_daily(Tag.COLLECT, __doc__))
def collect() -> None:
    @task
    def sources(day: str, params: Any = None) -> list[str | None]:
        from pipeline.tasks.daily import collect

        return collect.list_sources(params["source"], params["path"])

    @task(map_index_template="{{ source }}")
    def collect_source(source: str | None, day: str, params: Any = None, run_id: Any = None) -> list[dict[str, Any]]:
        from airflow.sdk.exceptions import AirflowSkipException

        from pipeline.errors import Refused
        from pipeline.tasks.daily import collect

        key, cookie = secret("undertone_user_key"), secret(f"undertone_{source}") if params["live"] else None
        options = {name: params[name] for name in ("path", "mapping", "encoding", "skip_bad_rows", "live", "threads")}
        try:
            collected = collect.run(source, day, key=key, cookie=cookie, run_id=run_id, **options)
        except Refused as error:
            raise AirflowSkipException(str(error)) from error
        return [{**part, "bad_rows": []} for part in collected]  # these have texts, which Airflow must not keep

    @task(outlets=[COMMENTS], trigger_rule=TriggerRule.NONE_FAILED)
    def publish(collected: list[Any], day: str, outlet_events: Any = None) -> dict[str, int]:
        from airflow.sdk.exceptions import AirflowSkipException

        from pipeline.tasks.daily import collect

        total = collect.sum_counts(collected)
        if not total["read"]:
            raise AirflowSkipException(f"no comments were collected for {day}")
        outlet_events[COMMENTS].add_partitions([day])
        return total

    day = resolve_day()
    publish(collect_source.partial(day=day).expand(source=sources(day)), day)


collect()
