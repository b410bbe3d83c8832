"""What both installations are given and asked to do: the sample through every DAG, and a slice of real comments."""

import csv
import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from pipeline import sample

DAY = sample.DAY
POSTS = 20  # of real data: some 100 comments
FEW = 10  # sentences to compress, and graded pairs
ARTICLES = 12  # with a summary, to make cloze items of


class Step(NamedTuple):
    """One DAG run."""

    dag: str
    day: str
    conf: dict[str, Any]


class Steps(NamedTuple):
    """DAG runs in an order that both keep; those of one phase do not read what the others write."""

    before: list[Step]  # `collect` while `tokenize` is paused, and `impscore`
    meanwhile: list[Step]  # need nothing but those, and are not waited for until the end
    healed: list[Step]  # what `heal` then sets off
    after: list[Step]


IMPSCORE = {"epochs": 2, "cassette": "sample", "profile": "paper", "promote": True}


def plan(folder: Path, data: Path | None) -> Steps:
    """Write the files that are imported into a folder; plan the steps with them."""
    news, rated, real = (folder / name for name in ("news.jsonl", "ratings.csv", "real.jsonl"))
    sentences, pairs = folder / "sentences.jsonl", folder / "pairs.jsonl"
    sources = {news: (sample.SUMMARIES, ARTICLES), sentences: (sample.COMPRESSIONS, FEW), pairs: (sample.SIMILAR, FEW)}
    for path, (source, count) in sources.items():
        path.write_text(first(source, count), encoding="utf-8")
    lines = news.read_text(encoding="utf-8")
    words = sorted(set(re.findall(r"[a-z]+", lines.lower())))
    with rated.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("word", "conc.m"), *((word, 1 + 4 / len(word)) for word in words)])
    threads = ",".join(f"{name}={column}" for name, column in sample.THREAD_COLUMNS.items())
    before = [
        Step("impscore", DAY, IMPSCORE),
        Step("collect", DAY, {"path": "sample", "source": "weibo"}),
        Step("collect", DAY, {"path": str(news), "source": "news"}),
        Step("collect", DAY, {"path": str(sample.THREADS), "source": "sample_news", "mapping": threads}),
    ]
    healed = [Step(dag, DAY, {}) for dag in ("tokenize", "score", "report")]
    if data:
        posts = data / "checked_weibo_news_comments_zh" / "checked_posts_comments20.jsonl"
        real.write_text(first(posts, POSTS), encoding="utf-8")
        mapping = "thread_id=id,article_text=text,comments=comments"
        params = {"path": str(real), "source": "checked_weibo", "mapping": mapping}
        before.append(Step("collect", DAY, params))
    # a few dozen tasks that need no words, no scores and no comments of another day
    small = {"hidden": 4, "longest": 20, "longest_gloss": 5, "epochs": 1, "vocabulary": 0}
    recam = {"rule": "paper", "rows_per_shard": 12, "in_context": False, "similar": 0.9999, "scorer": str(rated)}
    meanwhile = [
        Step("csd", DAY, {"tool": "simulated", "limit": 6}),
        Step("recam", DAY, {**recam, "numbers": small, "epochs": 1}),
        Step("studies", DAY, {"studies": ["data_sets"]}),
    ]
    tiny = {"hidden": 4, "embedding": 4, "epochs": 1}
    numbers = {"ir_t": {**tiny, "judged": 20, "foreign": 5}, "seq2seq": {**tiny, "vocabulary": 100}}
    commenting = {"systems": ["ir_t", "seq2seq"], "tool": "simulated", "rows_per_shard": 40, "numbers": numbers}
    ndd = {"systems": ["fast_ndd"], "limit": 6, "data": str(sentences), "pairs": str(pairs)}
    after = [Step("commenting", DAY, commenting), Step("ndd", DAY, ndd)]
    return Steps(before, meanwhile, healed, after)


def first(path: Path, count: int) -> str:
    """The first lines of a file."""
    with path.open(encoding="utf-8") as file:
        return "".join(itertools.islice(file, count))


UPKEEP = Step("maintain", "", {"tables": ["comments", "tokens", "scores"]})


def as_json(steps: Steps) -> str:
    """The steps in the order in which one process does them."""
    heal = Step("heal", "", {})
    return json.dumps([*steps.before, *steps.meanwhile, heal, *steps.healed, *steps.after, UPKEEP])
