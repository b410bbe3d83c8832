"""Collect the comments of one day, with one task for each source.

Each task reads the day's inbox (`<inbox>/<source>/<day>/`), a path, the shipped sample or, if you ask for it, a site.
The DAG writes `raw_pages`, `articles`, `comments`, `dropped` and `runs`. The DAG `tokenize` then starts automatically.

Users are pseudonymised with the password of the connection `undertone_user_key`. Without this password, user ids are
dropped. To send your own cookie to a site, store it as the password of the connection `undertone_<source>`.

**Triage.**

- *BadInput* names the file, the row, the field and the expected value. Correct the file and clear the task.
- *SchemaDrift*: the site has changed. The page is stored; update the adapter in `pipeline/collect/`.
- A *skipped* source refused the request (robots.txt, 403 or a login page). Do not retry. The pages fetched before are
  stored.
- *Retry*: another run wrote the same day. The retry resolves it.
"""

from typing import Any

from airflow.sdk import TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dag_assets import tables
from dag_defaults import DAY, Tag, build, optional_param, param, resolve_day, secret

SOURCES = "all, a site (weibo, netease, bilibili, zhihu, tencent_news), or a name for your own data"
FORMATS = "csv, tsv, txt, jsonl, json, parquet, xlsx or SQLite; `sample`: the shipped corpus; empty: the inbox"
MAPPING = "Our field=column of the file, as in text=content,like_count=likes. Empty: recognise known exports"
PARAMS = {
    "day": DAY,
    "source": param("all", "Source", SOURCES, pattern="^[a-z][a-z0-9_]{0,39}$"),
    "path": optional_param("string", "File or folder", FORMATS),
    "mapping": optional_param("string", "Columns", MAPPING),
    "encoding": param("utf-8-sig", "Encoding", "Encoding of text files, such as gb18030 or utf-16"),
    "skip_bad_rows": param(False, "Skip bad rows", "Drop unreadable rows, each with a reason, and go on"),
    "keep_duplicates": param(False, "Keep duplicates", "Keep equal and nearly equal texts of a thread"),
    "first_day": optional_param("string", "First day", "The first UTC day of comments; empty: no limit", format="date"),
    "last_day": optional_param("string", "Last day", "The last UTC day of comments; empty: no limit", format="date"),
    "live": param(False, "Fetch from the site", "Fetch `threads` politely. Off by default"),
    "threads": param([], "Threads", "Ids of posts, songs or articles to fetch from the site", items={"type": "string"}),
}


@dag(**build("collect", Tag.COLLECT, __doc__, PARAMS, is_daily=True))
def collect() -> None:
    @task
    def sources(day: str, params: Any = None) -> list[str | None]:
        from pipeline.tasks.daily import collect

        return collect.list_sources(**{name: params[name] for name in ("source", "path", "live", "threads")})

    @task(map_index_template="{{ source }}")
    def collect_source(source: str | None, day: str, params: Any = None, run_id: Any = None) -> list[dict[str, Any]]:
        from pipeline.errors import Refused
        from pipeline.tasks.daily import collect

        key, cookie = secret("undertone_user_key"), secret(f"undertone_{source}") if params["live"] else None
        options = {name: params[name] for name in ("path", "mapping", "encoding", "skip_bad_rows", "live", "threads")}
        try:
            selection = {name: params[name] for name in ("keep_duplicates", "first_day", "last_day")}
            collected = collect.run(source, day, key=key, cookie=cookie, run_id=run_id, selection=selection, **options)
        except Refused as error:
            raise AirflowSkipException(str(error)) from error
        return [{**part, "bad_rows": []} for part in collected]  # these have texts, which Airflow must not keep

    @task(outlets=tables("raw_pages articles comments dropped runs"), trigger_rule=TriggerRule.NONE_FAILED)
    def publish(collected: list[Any], day: str) -> dict[str, int]:
        from pipeline.tasks.daily import collect

        total = collect.sum_counts(collected)
        if not total["read"]:
            raise AirflowSkipException(f"no comments were collected for {day}")
        return total

    day = resolve_day()
    publish(collect_source.partial(day=day).expand(source=sources(day)), day)


collect()
