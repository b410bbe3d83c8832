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
A, B, JUDGE = "implicitness_aaaaaaaa", "implicitness_bbbbbbbb", "quality_judge_x"
MODELS = {A: ("implicitness", "a" * 64), B: ("implicitness", "b" * 64), JUDGE: ("quality", "judge:x")}
TEXTS = [*HOSTILE, '=HYPERLINK("https://evil.example")', "@SUM(1)", "\u202egnitteg \u200bretteb", "您老可真是准时"]


def write_rows() -> pl.DataFrame:
    """Write comments, articles, scores and words; return the comments with their scores as columns."""
    texts = [*TEXTS, "O'Brien? LOVELY train; --", *(f"a lovely train {n}" if n % 2 else f"真好 {n}" for n in range(48))]
    comments = filled("comments", *(
        {"day": DAY if n < 40 else NEXT, "thread_id": f"site-{n // 20}",
         "comment_id": f"c{n}", "parent_id": f"c{n - 3}" if n % 20 > 5 else None, "text": text, "user_id": USER,
         "lang": "zh" if "真" in text else "en", "like_count": None if n % 11 == 0 else n * n}
        for n, text in enumerate(texts)
    ))  # fmt: skip
    values = {A: [n * 37 % 60 / 30 for n in range(60)], B: [n * 17 % 13 / 10 for n in range(60)]}
    values[JUDGE] = [float(n % 4) if n % 3 == 0 else None for n in range(60)]
    rows = comments.with_columns(pl.Series(name, column).round(6) for name, column in values.items())
    key = ["source", "day", "thread_id", "comment_id", "text_hash"]
    scores = rows.unpivot([*MODELS], index=key).drop_nulls().to_dicts()
    threads = rows.select(key[:3]).unique().to_dicts()
    word = rows.select(key).row(13, named=True) | {"model_id": "a" * 64}
    words = [("lovely", 0.3), ("train", -0.1)]
    for name, items in {
        "articles": [thread | {"title": HOSTILE[0], "text": f"About trains {HOSTILE[1]}"} for thread in threads],
        "scores": [row | dict(zip(("metric", "model_id"), MODELS[row.pop("variable")], strict=True)) for row in scores],
        "scores_explained": [word | {"position": n, "word": w, "change": v} for n, (w, v) in enumerate(words, 1)],
    }.items():
        warehouse.overwrite(name, {"source": "weibo"}, filled(name, *items), "test")
    warehouse.overwrite("comments", {"source": "weibo"}, comments, "test")
    return rows


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
def corpus(built: tuple[Path, pl.DataFrame], tmp_path: Path) -> Corpus:
    """A copy of the corpus, opened."""
    return Corpus(Path(shutil.copy(built[0], tmp_path / "corpus.duckdb")))


@pytest.fixture
def server(corpus: Corpus) -> Iterator[Server]:
    """A server of the corpus, whose labels are listed as its `labels`."""
    labels: list[object] = []
    with Server(corpus, lambda *label: labels.append(label) or len(labels)) as server:
        server.labels = labels  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield server
        server.shutdown()
