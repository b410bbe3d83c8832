"""The corpus that `undertone browse` reads: comments, their scores and articles in one DuckDB file below the home.

It is made once for each state of the tables, without user ids. Texts are not compressed in it, so that a search for
erased texts finds them; an erasure removes all scratch files, this one among them.
"""

import secrets
from contextlib import closing
from pathlib import Path

from pipeline import settings
from pipeline.errors import Missing
from pipeline.io.hashes import hash_file, hash_text
from pipeline.private import make_folder
from pipeline.warehouse import catalog
from pipeline.warehouse.erase import lock_erasures
from pipeline.warehouse.query import connect

_SQL = Path(__file__).with_suffix(".sql")
_READ = ("comments", "articles", "scores", "scores_explained", "models")


@lock_erasures()  # so that no erasure misses it
def make_corpus() -> Path:
    """Make the corpus of the tables as they are now, if it is not there; return its file. Older ones are removed."""
    hashes = [hash_file(path) for path in (_SQL, *sorted(settings.references().glob("*/*.json")))]
    state = (hashes, [catalog.get_snapshot_id(name) for name in _READ])
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
            con.execute(_SQL.read_text(encoding="utf-8"))
            if not con.execute("from corpus.comments limit 1").fetchall():
                raise Missing("there are no comments to browse; run `undertone import FILE` or `undertone collect`")
        draft.chmod(0o600)
        for old in folder.glob("[!.]*"):
            old.unlink(missing_ok=True)
        draft.rename(path)
    finally:
        for rest in folder.glob(f"{draft.name}*"):
            rest.unlink(missing_ok=True)
    return path
