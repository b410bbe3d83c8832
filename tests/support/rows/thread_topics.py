"""Articles on topics of their own with comments, and recipes that learn them in a second."""

from dataclasses import replace

import numpy as np
import polars as pl

from pipeline.training.commenting.relevance import make_recipe

WORDS = pl.List(pl.String)
ARTICLES = {"article_id": pl.String, "title": WORDS, "content": WORDS, "split": pl.String}
COMMENTS = {"article_id": pl.String, "comment_id": pl.String, "text": pl.String, "words": WORDS}
SPLITS = ("train", "train", "train", "validation")
SMALL = make_recipe("ir_tc", embedding=16, hidden=16, batch=16, foreign=10, dropout=0.1, learning_rate=0.02, epochs=12)
SHORT = replace(SMALL, epochs=3, dropout=0.3)


def topics(count: int = 8, each: int = 4) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Four articles of each topic, the last one held out; a topic's words are its own, in title, content, comments."""
    rng, articles, comments = np.random.default_rng(0), [], []
    for topic in range(count):
        for number, split in enumerate(SPLITS):
            name, told = f"a{topic}.{number}", [f"w{topic}{letter}" for letter in "abcd"]
            articles.append((name, [f"w{topic}a", "today"], ["it", "is", *rng.permutation(told)[:3]], split))
            for i in range(each):
                said = ["so", *rng.permutation(told)[: 2 + i % 3], "!"]
                comments.append((name, f"{name}c{i}", " ".join(said), said))
    return pl.DataFrame(articles, ARTICLES, orient="row"), pl.DataFrame(comments, COMMENTS, orient="row")
