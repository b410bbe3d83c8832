"""The corpus that `undertone browse` reads: comments, their scores and articles in one DuckDB file below the home.

It is made once for each state of the tables, without user ids. Texts are not compressed in it, so that a search for
erased texts finds them; an erasure removes all scratch files, this one among them.
"""

import secrets
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import settings
from pipeline.errors import Missing
from pipeline.io.hashes import hash_file, hash_text
from pipeline.private import make_folder
from pipeline.warehouse import catalog
from pipeline.warehouse.erase import lock_erasures
from pipeline.warehouse.query import connect

if TYPE_CHECKING:
    import duckdb

_VERSION = 1  # of the tables below: another one makes every corpus again
_READ = ("comments", "articles", "scores", "scores_explained", "models")
_KEY = "source, day, thread_id, comment_id"
# columns of scores, those with the most values: a name that SQL takes; implicitness of a single model is that in force
_SCORES = """with named as (select metric, model_id, count(*) as count,
        if(regexp_full_match(model_id, '[0-9a-f]{64}'), left(model_id, 8), model_id) as model from scores group by all)
    select regexp_replace(lower(metric || '_' || model), '[^a-z0-9]+', '_', 'g'), metric || ' by ' || model,
        metric, model_id from named
    where metric <> 'implicitness' or (select count(*) from named where metric = 'implicitness') > 1
    order by count desc, metric, model_id limit 24"""


@lock_erasures()  # so that no erasure misses it
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
            con.execute("pragma force_compression = 'uncompressed'; set default_null_order = 'nulls_last'")
            con.execute(f"attach '{address}' as corpus")
            _fill(con)
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
    scores = {name: row for name, *row in con.execute(_SCORES).fetchall()}
    pivots = "".join(f", max(value) filter (where metric = ? and model_id = ?) as {name}" for name in scores)
    values = [value for _, *pair in scores.values() for value in pair]
    words = "list({'word': word, 'change': change} order by position) as words"
    explained = f"(select *, dense_rank() over (partition by {_KEY} order by model_id) as place from scores_explained)"
    for name, sql in {
        "scored": f"{_KEY}, implicitness, percentile, band, weakness from comments_scored",
        "explained": f"{_KEY}, {words} from {explained} where place = 1 group by all",
        "pivoted": f"{_KEY}{pivots} from scores group by all",
        "corpus.threads": """(row_number() over (order by source, day, thread_id))::int as thread,
            source, day, thread_id, coalesce(title, left(text, 40)) as title, left(text, 2000) as text
            from (select distinct source, day, thread_id from comments)
            left join articles_distinct using (source, day, thread_id)""",
        "corpus.notes": "distinct weakness as note from scored where weakness is not null",
    }.items():
        con.execute(f"create table {name} as select {sql}", values if name == "pivoted" else [])
    if not con.execute("from corpus.threads limit 1").fetchall():
        raise Missing("there are no comments to browse; run `undertone import FILE` or `undertone collect`")
    con.execute(
        f"""create table numbered as
        select (row_number() over (order by implicitness desc, like_count desc, {_KEY}) - 1)::int as n, {_KEY}, thread,
            parent_id, created_at, lang, c.text, t.title, like_count as likes, length(c.text)::int as length,
            implicitness, percentile, band, words{"".join(f", {name}" for name in scores)}
        from comments as c join corpus.threads as t using (source, day, thread_id)
        left join scored using ({_KEY}) left join pivoted using ({_KEY}) left join explained using ({_KEY})"""
    )
    labels = {"implicitness": "implicitness", **{name: label for name, (label, *_) in scores.items()}}
    middle = (
        ", case when c.{0} is not null then 50 * (percent_rank() over w_{0} + cume_dist() over w_{0}) end as rank_{0}"
    )
    window = (
        "w_{0} as (partition by c.{0} is null order by c.{0})"  # the rank is the middle of those with the same value
    )
    con.execute(
        f"""create table corpus.comments as
        select c.* exclude (parent_id), lower(c.text) as folded, p.n as parent{"".join(map(middle.format, labels))}
        from numbered as c left join numbered as p on p.thread = c.thread and p.comment_id = c.parent_id
        window {", ".join(map(window.format, labels))} order by c.n"""
    )
    con.execute("create table corpus.scores (name varchar, label varchar)")
    con.executemany("insert into corpus.scores values (?, ?)", [*labels.items()])
