"""From articles with summaries to open cloze items: question, answer, passage, and no options yet (ReCAM, section 3).

Targets are found a few articles at a time. An item's id is a hash of where its word stands.
"""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pipeline.examples.recam import items as cloze
from pipeline.examples.recam import targets
from pipeline.examples.recam.targets import Filter, Pair, Rule
from pipeline.io.hashes import hash_number, hash_text
from pipeline.progress import track
from pipeline.text.tagging import Analyzer

SUBTASKS = ("imperceptibility", "nonspecificity")
SHARES = {"train": 3227 / 6089, "validation": 837 / 6089, "test": 2025 / 6089}  # Table 5, subtask 1 (REC-27)
CHUNK = 100  # articles held as tokens at a time

OPEN: dict[str, pl.DataType] = {
    "item_id": pl.String(), "source": pl.String(), "thread_id": pl.String(), "article": pl.String(),
    "question": pl.String(), "answer": pl.String(), "upos": pl.String(), "score": pl.Float64(), "start": pl.Int64(),
    "split": pl.String(),
}  # fmt: skip


def find_targets(
    articles: pl.DataFrame, analyse: Analyzer, rules: Mapping[str, Rule], filters: Sequence[Filter]
) -> Iterator[pl.DataFrame]:
    """Judge every token of the summaries, by the rule of each subtask: a frame for each `CHUNK` articles."""
    with track("articles", articles.height) as on_progress:
        for part in articles.iter_slices(CHUNK):
            rows = part.select("thread_id", "summary", "text").iter_rows()
            pairs = [Pair(name, analyse(summary), analyse(text)) for name, summary, text in rows]
            yield pl.concat(  # rule by rule for one pair: what a filter keeps of the last pair serves both
                targets.judge_tokens(pair, rule, filters).with_columns(subtask=pl.lit(subtask))
                for pair in pairs
                for subtask, rule in rules.items()
            )
            on_progress(part.height)


def list_untargeted(articles: pl.DataFrame, tokens: pl.DataFrame, subtasks: Sequence[str] = SUBTASKS) -> pl.DataFrame:
    """List articles that give a subtask no question: reason (no_target), row_key (`<subtask>:<thread_id>`)."""
    articles_by_subtask = articles.select("thread_id").join(pl.DataFrame({"subtask": subtasks}), how="cross")
    targeted = tokens.filter(pl.col("reason").is_null())
    untargeted = articles_by_subtask.join(targeted, on=["thread_id", "subtask"], how="anti", maintain_order="left")
    return untargeted.select(reason=pl.lit("no_target"), row_key=pl.format("{}:{}", "subtask", "thread_id"))


def build_items(articles: pl.DataFrame, tokens: pl.DataFrame, subtask: str) -> pl.DataFrame:
    """Build the open items of a subtask's targets (`OPEN`), in the order of their ids.

    The split goes by the article: one that two items share is on one side, in both subtasks. It is that of the
    articles, if they have the column; else, and where it is null, it is drawn.
    """
    target_rows = tokens.filter((pl.col("subtask") == subtask) & pl.col("reason").is_null())
    rows = target_rows.join(articles, on=["source", "thread_id"], how="inner")
    places = ("\n".join(map(str, (subtask, *row))) for row in rows.select("source", "thread_id", "start").iter_rows())
    ids = [hash_text(place) for place in places]
    questions = [targets.build_question(*row) for row in rows.select("summary", "start", "end").iter_rows()]
    texts = rows.select(cloze.normalise("text")).to_series()
    official = rows["split"] if "split" in rows.columns else [None] * rows.height
    splits = {text: split or choose_split(text) for text, split in dict(zip(texts, official, strict=True)).items()}
    items = rows.with_columns(
        item_id=pl.Series(ids, dtype=pl.String),
        article="text",
        question=pl.Series(questions, dtype=pl.String),
        answer="word",
        split=texts.replace_strict(splits, return_dtype=pl.String),
    )
    return items.select(list(OPEN)).sort("item_id")


def choose_split(article: str) -> str:
    """Choose train, validation or test for a normalised article, in the shares of Table 5."""
    place = hash_number(article) / 2**64
    if place < SHARES["train"]:
        return "train"
    return "validation" if place < SHARES["train"] + SHARES["validation"] else "test"
