"""A corpus of 60 comments in three threads, hostile ones among them, and its server."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.commands.browse.server import Server
from pipeline.report.browse.corpus import Corpus
from tests.support.pages import HOSTILE
from tests.support.rows.filled import DAY, NEXT, digest, filled

USER = digest("a person", 32)
TEXTS = [
    *HOSTILE,
    '=HYPERLINK("https://evil.example")',
    "@SUM(1)",
    "\u202egnitteg \u200bretteb",
    "您老可真是准时",
    "O'Brien? LOVELY train; --",
]


def write_rows() -> pl.DataFrame:
    """Write comments, articles, scores and words; return the comments with their scores as columns."""
    comments = []
    for n in range(60):
        text = TEXTS[n] if n < len(TEXTS) else f"Nice day {n}, 真好" if n % 2 else f"a lovely train {n}"
        parent = f"c{n - 3}" if n % 20 > 5 else None
        comments.append({
            "source": "weibo" if n % 20 < 15 else "zhihu", "day": DAY if n < 40 else NEXT,
            "thread_id": f"site-thread-{n // 20}", "comment_id": f"c{n}", "parent_id": parent, "text": text,
            "lang": "zh" if "真" in text else "en",
            "like_count": None if n % 11 == 0 else n * n, "user_id": USER,
        })  # fmt: skip
    frame = filled("comments", *comments)
    key = ("source", "day", "thread_id", "comment_id", "text_hash")
    scores = []
    for n, row in enumerate(frame.select(key).to_dicts()):
        scores += [{**row, "model_id": "a" * 64, "value": round(n * 37 % 60 / 30, 6)}]
        scores += [{**row, "model_id": "b" * 64, "value": round(n * 17 % 13 / 10, 6)}]
        scores += [{**row, "metric": "quality", "model_id": "judge:x", "value": float(n % 4)}] * (n % 3 == 0)
    for (source, day), part in frame.partition_by("source", "day", as_dict=True).items():
        where = warehouse.make_slice(source=str(source), day=str(day))
        warehouse.overwrite("comments", where, part, "test")
        threads = part.select("source", "day", "thread_id").unique().to_dicts()
        articles = [{**thread, "title": HOSTILE[0], "text": f"About trains {HOSTILE[1]}"} for thread in threads]
        warehouse.overwrite("articles", where, filled("articles", *articles), "test")
        rows = [row for row in scores if (row["source"], row["day"]) == (source, day)]
        warehouse.overwrite("scores", where, filled("scores", *rows), "test")
    word = {**frame.select(key).row(13, named=True), "model_id": "a" * 64}
    words = [
        word | {"position": 1, "word": "Nice", "change": 0.3},
        word | {"position": 2, "word": "13", "change": -0.1},
    ]
    warehouse.overwrite(
        "scores_explained",
        warehouse.make_slice(source="weibo", day=str(DAY)),
        filled("scores_explained", *words),
        "test",
    )
    a, b, judged = (
        [
            next((row["value"] for row in scores if row["comment_id"] == f"c{n}" and row["model_id"] == model), None)
            for n in range(60)
        ]
        for model in ("a" * 64, "b" * 64, "judge:x")
    )
    return frame.with_columns(
        implicitness_aaaaaaaa=pl.Series(a), implicitness_bbbbbbbb=pl.Series(b), quality_judge_x=pl.Series(judged)
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    """The file of the corpus and the rows that it was made of, once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(tmp_path_factory.mktemp("browse")))
        warehouse.create()
        rows = write_rows()
        path = warehouse.make_corpus()
        assert warehouse.make_corpus() == path
        assert (path.stat().st_mode & 0o77, [*path.parent.iterdir()]) == (0, [path])
        warehouse.close()
    return path, rows


@pytest.fixture
def rows(built: tuple[Path, pl.DataFrame]) -> pl.DataFrame:
    """The rows of the corpus."""
    return built[1]


@pytest.fixture
def corpus(built: tuple[Path, pl.DataFrame], tmp_path: Path) -> Corpus:
    """A copy of the corpus, opened."""
    return Corpus(Path(shutil.copy(built[0], tmp_path / "corpus.duckdb")))


@pytest.fixture
def server(corpus: Corpus) -> Iterator[Server]:
    """A server of the corpus, whose labels are listed as its `labels`."""
    labels: list[object] = []

    def judge(*label: object) -> int:
        labels.append(label)
        return len(labels)

    with Server(corpus, judge) as server:
        server.labels = labels  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()
