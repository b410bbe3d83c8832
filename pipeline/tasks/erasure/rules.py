"""What comes from what: for each table, how the rows are found that come from an erased comment or article.

`RULES` is the table of it, in the order in which rows are erased: what leads to other rows goes after them, and the
comments last, so that an erasure which was killed finds all of it again. Files go before all tables.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.tables import ERASED

LEAST_BYTES = 20  # bytes of a text that is looked for inside others; shorter ones, 6 Chinese characters, are anybody's
FIRST_CHARS = 32  # characters of a text by which it is known

THREAD = ("source", "thread_id")
COMMENT = (*THREAD, "comment_id")


class Targets(NamedTuple):
    """What is erased, and the keys of what was made of it. Texts that somebody else wrote too are not among it."""

    comments: pl.DataFrame  # source, day, thread_id, comment_id
    commented: pl.DataFrame  # source, thread_id, comment_id: of which no day and no origin has a row left
    replies: pl.DataFrame  # source, thread_id, comment_id: of others, to these
    articles: pl.DataFrame  # source, day, thread_id, origin
    threads: pl.DataFrame  # source, thread_id: of which no article is left
    origins: pl.DataFrame  # source, origin
    texts: pl.Series
    hashes: pl.Series  # their text_hash
    words: list[str]  # the first characters of texts that are long enough, in all spellings
    tokens: pl.DataFrame  # source, day, text_hash: of which the day has no comment left
    generated: pl.DataFrame  # source, thread_id, comment_id (their generated_id)
    items: pl.DataFrame  # source, thread_id, comment_id (their item_id): of cloze_items
    sentences: pl.DataFrame  # source, item_id
    tasks: pl.DataFrame  # project, task_id, row_id
    shown: pl.Series  # row_id: of others' tasks, which show one as their context
    pairs: pl.Series  # pair_id
    explicit: pl.DataFrame  # source, explicit: of these pairs and of no other
    completions: pl.Series  # completion_id
    user_ids: Sequence[str]  # pseudonyms
    raw_ids: Sequence[str]  # as the sites write them, where they were given
    marks: Sequence[str] = ()  # what must be met nowhere: words, pseudonyms, ids and hashes made of what is erased


def add_marks(gone: Targets) -> Targets:
    """The same with its marks."""
    ids = [gone.hashes, gone.tasks["task_id"], gone.tasks["row_id"], gone.pairs, gone.completions]
    ids += [gone.generated["comment_id"], gone.items["comment_id"]]
    return gone._replace(marks=sorted({*gone.words, *gone.user_ids, *(one for series in ids for one in series)}))


class Rule(NamedTuple):
    """How rows of a table are found.

    Attributes:
        found: the same in words.
        goes: of what is erased, which rows go.
        mended: of what is erased, which fields are changed in rows that stay: column -> (where, what it becomes).
    """

    description: str
    is_erased: Callable[[Targets], pl.Expr] | None = None
    updates: Callable[[Targets], dict[str, tuple[pl.Expr, pl.Expr]]] | None = None


def is_among(keys: pl.DataFrame, *columns: str) -> pl.Expr:
    """Whether a row has one of the keys, whose columns are called `columns` in it; their own names by default."""
    names = columns or tuple(keys.columns)
    known = keys.select(_join_columns(keys.columns)).to_series()
    return _join_columns(names).is_in(known.implode()).fill_null(value=False)


def _join_columns(columns: Sequence[str]) -> pl.Expr:
    return pl.concat_str([pl.col(name).cast(pl.String) for name in columns], separator="\x1f").alias("key")


def is_one_of(column: str, values: pl.Series | Sequence[str]) -> pl.Expr:
    """Whether a column has one of the values."""
    known = values if isinstance(values, pl.Series) else pl.Series(values, dtype=pl.String)
    return pl.col(column).is_in(known.implode()).fill_null(value=False)


def has_text(gone: Targets, column: pl.Expr | str) -> pl.Expr:
    """Whether a text is an erased one, or has one in it that is long enough."""
    text = pl.col(column) if isinstance(column, str) else column
    within = text.str.contains_any(gone.words) if gone.words else pl.lit(value=False)
    return (text.is_in(gone.texts.implode()) | within).fill_null(value=False)


def mentions(gone: Targets, column: pl.Expr | str) -> pl.Expr:
    """The same of a field that may hold anything, such as a label: a short text, such as `1`, is none there."""
    return has_text(gone._replace(texts=gone.texts.filter(~is_short(gone.texts))), column)


def is_short(texts: pl.Series) -> pl.Series:
    """Which texts anybody may have written, so that only a field of its own that holds nothing else tells of them."""
    return texts.str.len_bytes() < LEAST_BYTES


def has_quote(gone: Targets, column: str) -> pl.Expr:
    """Whether JSON has a long erased text in it, or a message that is an erased text, or has it as text or context."""
    said = [json.dumps(text, ensure_ascii=False) for text in gone.texts]
    fields = [json.dumps(f'"{name}": {one}', ensure_ascii=False)[1:-1] for name in ("text", "context") for one in said]
    whole = [*(f'"content": {one}' for one in said), *fields]
    exact = pl.col(column).str.contains_any(whole) if whole else pl.lit(value=False)
    return (exact | mentions(gone, column)).fill_null(value=False)


def _has_id(column: str, ids: pl.Series | Sequence[str]) -> pl.Expr:
    known = list(ids)
    return pl.col(column).str.contains_any(known).fill_null(value=False) if known else pl.lit(value=False)


_NULL = pl.lit(None, pl.String)


def _update_comments(gone: Targets) -> dict[str, tuple[pl.Expr, pl.Expr]]:
    """A reply to an erased comment stays as one at the top, without a context; branches lose an erased root."""
    is_reply = is_among(gone.commented, "source", "thread_id", "parent_id")
    has_lost_root = is_reply | is_among(gone.commented, "source", "thread_id", "root_id")
    is_of_article = is_among(gone.threads, *THREAD) & pl.col("parent_id").is_null()
    return {
        "context": (is_reply | is_of_article | has_text(gone, "context"), _NULL),
        "context_id": (is_reply, pl.col("thread_id")),
        "parent_id": (is_reply, _NULL),
        "root_id": (has_lost_root, _NULL),
    }


def _update_row_keys(gone: Targets) -> dict[str, tuple[pl.Expr, pl.Expr]]:
    """Where a row was in its source: an id, or source, thread and comment with strokes between, or a text."""
    within = pl.concat_str("thread_id", "comment_id", separator="/")
    at = gone.commented.select("source", within, pl.concat_str(COMMENT, separator="/").alias("all"))
    is_one = (
        is_among(gone.commented.select("source", "comment_id"), "source", "row_key")
        | is_among(gone.threads, "source", "row_key")
        | is_among(gone.sentences, "source", "row_key")
        | is_among(at.select("source", "thread_id"), "source", "row_key")
        | is_one_of("row_key", at["all"])
        | has_text(gone, "row_key")
    )
    made = [gone.tasks["task_id"], gone.pairs, gone.completions, gone.generated["comment_id"], gone.items["comment_id"]]
    return {"row_key": (is_one | _has_id("row_key", pl.concat(made)), pl.lit(ERASED))}


def _update_config(gone: Targets) -> dict[str, tuple[pl.Expr, pl.Expr]]:
    quoted = [f'"{thread}"' for thread in gone.threads["thread_id"].unique()]
    return {"config": (mentions(gone, "config") | _has_id("config", quoted), pl.lit("{}"))}


_NUMBERS = Rule("numbers over many rows: nothing in them is of one")

RULES: dict[str, Rule] = {
    "metric_scores": Rule(
        "of a generated comment that goes, or of an article",
        lambda g: is_among(g.generated, "source", "thread_id", "generated_id") | is_among(g.threads),
    ),
    "comment_grades": Rule(
        "of a comment, of a generated one that goes, or of an article",
        lambda g: is_among(g.commented) | is_among(g.generated) | is_among(g.threads),
    ),
    "labels": Rule(
        "by the task; a rater's note that has the text in it",
        lambda g: is_among(g.tasks.select("project", "task_id")) | mentions(g, "value"),
    ),
    "annotations": Rule(
        "by the task; a value that has the text in it",
        lambda g: is_among(g.tasks.select("project", "task_id")) | mentions(g, "value"),
    ),
    "annotated_comments": Rule(
        "by the random id of the task, or by the text; what others said stays without its context",
        lambda g: is_one_of("row_id", g.tasks["row_id"]) | has_text(g, "text"),
        lambda g: {
            "context": (is_one_of("row_id", g.shown) | has_text(g, "context"), _NULL),
            **{column: (mentions(g, column), _NULL) for column in ("plain", "meaning")},
        },
    ),
    "reference_comments": Rule(
        "by the comment, or by the article",
        lambda g: is_among(g.commented) | is_among(g.threads),
    ),
    "cloze_targets": Rule("by the article", lambda g: is_among(g.threads)),
    "threads": Rule("by the article", lambda g: is_among(g.threads)),
    "compressions": Rule(
        "by the sentence, or by its words in order",
        lambda g: (
            is_among(g.sentences)
            | mentions(g, pl.col("words").list.join(" "))
            | mentions(g, pl.col("words").list.join(""))
        ),
    ),
    "training_texts": Rule(
        "by text_hash: the rows keep their count, in one row of the model",
        lambda g: is_one_of("text_hash", g.hashes),
    ),
    "tokens": Rule(
        "by text_hash, where no comment of source and day has it any more",
        lambda g: is_among(g.tokens) | is_one_of("text_hash", g.hashes),
    ),
    "scores": Rule("by the comment", lambda g: is_among(g.comments) | is_one_of("text_hash", g.hashes)),
    "models": Rule(
        "a model whose files hold words (`registry.classify_contents`) and that learnt from it, or of which no text is "
        "left, or of which nobody knows what it learnt from: its files go, its row stays and is no longer promoted"
    ),
    "raw_pages": Rule(
        "by the origin; else the record is cut out of the page's body, or the page goes where it cannot be cut",
        lambda g: is_among(g.origins),
    ),
    "dropped": Rule(
        "by the origin; row_key loses the id; the comments that go are counted under the reason `erased`",
        lambda g: is_among(g.origins),
        _update_row_keys,
    ),
    "runs": Rule(
        "by the origin; a configuration that has the text or the thread in it is emptied; counts are put right",
        lambda g: is_among(g.origins),
        _update_config,
    ),
    "evaluations": _NUMBERS,
    "studies": _NUMBERS,
    "erasures": Rule("receipts: they hold nothing of what was erased"),
    "model_erasures": Rule("shares and numbers of models: they hold nothing of what was erased"),
    "label_tasks": Rule(
        "by the comment, or by what was made of it (a generated comment, a cloze item, a compressed sentence), or by "
        "the text; what others said stays without its context",
        lambda g: is_among(g.tasks.select("project", "task_id")) | is_among(g.commented) | mentions(g, "text"),
        lambda g: {"context": (is_among(g.replies) | has_text(g, "context"), _NULL)},
    ),
    "generated_comments": Rule(
        "of an article; found in a comment; the same words",
        lambda g: (
            is_among(g.generated, "source", "thread_id", "generated_id")
            | is_among(g.threads)
            | is_one_of("found_in", g.commented.select(pl.concat_str(COMMENT, separator="/")).to_series())
            | mentions(g, "text")
        ),
    ),
    "cloze_items": Rule("by the article", lambda g: is_among(g.threads)),
    "completions": Rule(
        "the text in what was asked or answered; by the pair",
        lambda g: is_one_of("completion_id", g.completions) | has_quote(g, "messages") | mentions(g, "response"),
    ),
    "pairs": Rule(
        "by the text, as any of the three; by the completion; a negative that was made of the text; others' "
        "cluster_id is emptied",
        lambda g: (
            is_one_of("pair_id", g.pairs)
            | has_text(g, "implicit")
            | mentions(g, "explicit")
            | mentions(g, "negative")
            | is_one_of("completion_id", g.completions)
            | is_among(g.explicit, "source", "negative")
        ),
        lambda g: {"cluster_id": (is_one_of("cluster_id", g.pairs), _NULL)},
    ),
    "sentences": Rule(
        "by the text; by the imported file's name in item_id",
        lambda g: is_among(g.sentences) | mentions(g, "text") | mentions(g, "explicit") | mentions(g, "prompt"),
    ),
    "articles": Rule(
        "by source, day, thread_id and origin; articles of the user, where raw pages tell whose they are",
        lambda g: is_among(g.articles),
    ),
    "comments": Rule(
        "by user_id, comment_id or origin; replies of others stay, at the top and without a context",
        lambda g: is_among(g.comments),
        _update_comments,
    ),
}
"""Table -> how a row of it is found. A table without a rule is a fault that a test tells of."""
