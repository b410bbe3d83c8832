"""The corpus that `undertone browse` reads: comments, their scores and articles in one DuckDB file below the home.

It is made once for each state of the tables, without user ids. Texts are not compressed in it, so that a search for
erased texts finds them; an erasure removes all scratch files, this one among them.
"""

import re
import secrets
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import settings
from pipeline.errors import Missing
from pipeline.io.hashes import hash_file, hash_text
from pipeline.private import make_folder
from pipeline.warehouse import catalog
from pipeline.warehouse.query import connect

if TYPE_CHECKING:
    import duckdb

_VERSION = 1  # of the tables below: another one makes every corpus again
_READ = ("comments", "articles", "scores", "scores_explained", "models")
_MOST_SCORES = 24  # columns of scores; those with the most values
_HEX = re.compile(r"[0-9a-f]{64}")
_KEY = "source, day, thread_id, comment_id"


def make_corpus() -> Path:
    """Make the corpus of the tables as they are now, if it is not there; return its file. Older ones are removed."""
    references = sorted(settings.references().glob("*/*.json"))
    state = (_VERSION, [catalog.get_snapshot_id(name) for name in _READ], [hash_file(path) for path in references])
    folder = make_folder(settings.scratch("browse"))
    path = folder / f"{hash_text(repr(state))[:16]}.duckdb"
    if path.exists():
        path.touch()  # a sweep removes what nobody opened
        return path
    draft = folder / f".draft-{secrets.token_hex(4)}.duckdb"
    address = str(draft).replace("'", "''")
    try:
        with closing(connect(" ".join((*_READ, "comments_scored")), unsafe=True)) as con:
            con.execute("pragma force_compression = 'uncompressed'")
            con.execute("set default_null_order = 'nulls_last'")
            con.execute(f"attach '{address}' as corpus")
            _fill(con)
            con.execute("detach corpus")
        draft.chmod(0o600)
        for old in folder.glob("[!.]*"):
            old.unlink(missing_ok=True)
        draft.rename(path)
    finally:
        for rest in folder.glob(f"{draft.name}*"):
            rest.unlink(missing_ok=True)
    return path


def _fill(con: "duckdb.DuckDBPyConnection") -> None:
    """Fill the tables `comments`, `threads`, `scores` (name and label of the columns of scores) and `notes`."""
    scores = _list_scores(con)
    pivots = "".join(f", max(value) filter (where metric = ? and model_id = ?) as {name}" for name in scores)
    values = [value for _, *pair in scores.values() for value in pair]
    con.execute(f"create temp table pivoted as select {_KEY}{pivots} from scores group by all", values)
    con.execute(
        f"create temp table scored as select {_KEY}, implicitness, percentile, band, weakness from comments_scored"
    )
    words = "list({'word': word, 'change': change} order by position) as words"
    explained = f"(select *, dense_rank() over (partition by {_KEY} order by model_id) as place from scores_explained)"
    con.execute(f"create temp table explained as select {_KEY}, {words} from {explained} where place = 1 group by all")
    con.execute(
        """create table corpus.threads as select (row_number() over (order by source, day, thread_id))::int as thread,
            source, day, thread_id, coalesce(title, left(text, 40)) as title, left(text, 2000) as text
        from (select distinct source, day, thread_id from comments) left join articles_distinct
        using (source, day, thread_id)"""
    )
    if not con.execute("from corpus.threads limit 1").fetchall():
        raise Missing("there are no comments to browse; run `undertone import FILE` or `undertone collect`")
    con.execute(
        f"""create temp table numbered as
        select (row_number() over (order by implicitness desc, like_count desc, {_KEY}) - 1)::int as n, {_KEY}, thread,
            parent_id, created_at, lang, c.text, t.title, like_count as likes, length(c.text)::int as length,
            implicitness, percentile, band, words{"".join(f", {name}" for name in scores)}
        from comments as c join corpus.threads as t using (source, day, thread_id)
        left join scored using ({_KEY}) left join pivoted using ({_KEY}) left join explained using ({_KEY})"""
    )
    labels = {"implicitness": "implicitness", **{name: label for name, (label, *_) in scores.items()}}
    ranks = "".join(  # the middle of those with the same value
        f""", case when c.{name} is not null then 50 * (percent_rank() over by_{name} + cume_dist() over by_{name})
        end::float as rank_{name}"""
        for name in labels
    )
    windows = ", ".join(f"by_{name} as (partition by c.{name} is null order by c.{name})" for name in labels)
    con.execute(
        f"""create table corpus.comments as
        select c.* exclude (parent_id), lower(c.text) as folded, p.n as parent{ranks} from numbered as c
        left join numbered as p on p.thread = c.thread and p.comment_id = c.parent_id window {windows} order by c.n"""
    )
    con.execute("create table corpus.scores (name varchar, label varchar)")
    con.executemany("insert into corpus.scores values (?, ?)", [*labels.items()])
    con.execute("create table corpus.notes as select distinct weakness as note from scored where weakness is not null")


def _list_scores(con: "duckdb.DuckDBPyConnection") -> dict[str, tuple[str, str, str]]:
    """List label, metric and model of `scores` by a name that SQL takes; a single model's implicitness is in force."""
    rows = con.execute(
        "select metric, model_id from scores group by all order by count(*) desc, metric, model_id"
    ).fetchall()
    is_single = sum(metric == "implicitness" for metric, _ in rows) == 1
    scores = {}
    for metric, model_id in rows[:_MOST_SCORES]:
        model = model_id[:8] if _HEX.fullmatch(model_id) else model_id
        if metric != "implicitness" or not is_single:
            name = re.sub(r"\W+", "_", f"{metric}_{model}".lower(), flags=re.ASCII)
            scores[name] = (f"{metric} by {model}", metric, model_id)
    return scores
