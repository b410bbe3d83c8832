"""The same page without a server: its files, and a selection of a corpus as one file of JSON beside them."""

import json
from pathlib import Path

import polars as pl

from pipeline.report.browse.corpus import Corpus, list_dicts, place_texts
from pipeline.report.browse.view import View

_FOLDER = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)


def read_page(*, is_site: bool) -> dict[str, bytes]:
    """Read the files of the page by name; that of a site reads its rows from data.json, not from a server."""
    files = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in TYPES}
    source = b"data.json" if is_site else b""
    files["index.html"] = files["index.html"].replace(b"{source}", source).replace(b"{policy}", POLICY.encode())
    return files


def write_site(corpus: Corpus, view: View, limit: int, folder: Path) -> int:
    """Write the page and the first rows of a view into a folder; return the number of rows.

    Ids of the platform are left out: comments and threads have numbers. There are no user ids in a corpus. No
    count, value, bound or reply is of a comment that is not selected.
    """
    rows = place_texts(corpus.select_rows(view, limit, "n, parent, thread, words"))
    rows = rows.with_columns(pl.when(pl.col("parent").is_in(rows["n"].implode())).then(pl.col("parent")))
    sql = "select thread, text from threads where list_contains(?::int[], thread)"
    articles = corpus.select(sql, [rows["thread"].unique().to_list()])
    texts = {row["thread"]: row["text"] for row in list_dicts(articles)}
    content = corpus.describe(rows["n"].to_list()) | {"exports": [], "maps": []}
    content |= {"rows": list_dicts(rows), "articles": texts}
    for name, body in read_page(is_site=True).items():
        (folder / name).write_bytes(body)
    (folder / "data.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return rows.height
