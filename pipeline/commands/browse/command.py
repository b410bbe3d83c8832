"""Commands to look at scored comments in a browser: served on this machine, or as files for a web server."""

import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from typer import Option, echo

from pipeline import warehouse
from pipeline.commands.browse.server import Server
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import this_run
from pipeline.errors import BadInput
from pipeline.io.atomic import check_empty, create_folder
from pipeline.report.browse.corpus import Corpus, decode_view, parse_view, write_site
from pipeline.tasks.labelling import judgements
from pipeline.tasks.record.retry import retry

Where = Annotated[str, Option(help="A view: JSON, or the address of one in `browse`.", show_default="all comments")]


def _open_corpus() -> Corpus:
    with console.working("preparing the comments"):
        return Corpus(warehouse.make_corpus())


def browse(
    where: Where = "",
    port: Annotated[int, Option(min=0, max=65_535, help="Port on 127.0.0.1; 0: a free one.")] = 0,
    no_open: Annotated[bool, Option("--no-open", help="Only print the address; open no browser.")] = False,
) -> None:
    """Look at the scored comments in a browser, on this machine alone: filter, search, threads, two scores, a map.

    Prints the address and opens it; it has a token, so give it to no one. Ctrl-C ends it.

    Examples: `undertone browse`; `undertone browse --where '{"among": {"source": ["weibo"]}}'`; `undertone browse
    --no-open --port 8123`
    """
    corpus = _open_corpus()
    parse_view(where, corpus.columns)

    def judge(number: int, score: str, rater: str) -> int:
        return retry(judgements.add, *corpus.read_rank(number, score), rater, this_run())

    with Server(corpus, judge, port) as server:
        try:
            address = f"{server.address}#{quote(decode_view(where))}" if where else server.address
            echo(address)
            if not no_open:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:
            console.report("stopped")


def export_site(
    out: Annotated[Path, Option("--out", "-o", help="Folder to write; it must be empty.")],
    where: Where = "",
    limit: Annotated[int, Option(min=1, help="Comments at most, in the order of the view.")] = 20_000,
) -> None:
    """Write the page of `browse` with a selection of comments as files for any web server.

    It has texts, articles and scores. There are no user ids and no ids of the platform in it.

    Example: `undertone export site -o site/ --where '{"among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}'`
    """
    check_empty(out)
    corpus = _open_corpus()
    view = parse_view(where, corpus.columns)
    total = corpus.list_rows(view)["count"]
    if not total:
        raise BadInput("no comment is in this view; `undertone browse` shows which filters leave some")
    with create_folder(out) as draft:
        count = write_site(corpus, view, limit, draft)
    console.report(f"wrote {count:,} of {total:,} comments to {out}, without ids of people and of the platform")
