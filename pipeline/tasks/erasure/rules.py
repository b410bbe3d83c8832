"""The rule of each table: how the rows that derive from an erased comment or article are found.

`RULES` is in the order of erasure: rows that lead to other rows are erased after them, and the comments last, so that
an erasure after a kill finds everything again. Files are erased before all tables.
"""

import json
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import polars as pl

from pipeline.tables import ERASED

LEAST_BYTES = 20  # of a text that is searched inside others; anybody may have written a shorter one (6 Chinese chars)
FIRST_CHARS = 32  # of a text by which it is searched

THREAD = ("source", "thread_id")
COMMENT = (*THREAD, "comment_id")


def empty_keys(*columns: str) -> pl.DataFrame:
    """Build an empty frame of keys."""
    return pl.DataFrame(schema={name: pl.Date if name == "day" else pl.String for name in columns})


_NO_IDS = pl.Series(dtype=pl.String)


class Targets(NamedTuple):
    """What is erased, and the keys of what was derived from it; without texts that somebody else wrote too."""

    comments: pl.DataFrame = empty_keys("source", "day", "thread_id", "comment_id")
    comment_keys: pl.DataFrame = empty_keys(*COMMENT)  # of comments that no day and no origin still has
    replies: pl.DataFrame = empty_keys(*COMMENT)  # by others, to these comments
    articles: pl.DataFrame = empty_keys("source", "day", "thread_id", "origin")
    threads: pl.DataFrame = empty_keys(*THREAD)  # without an article that stays
    origins: pl.DataFrame = empty_keys("source", "origin")
    texts: pl.Series = _NO_IDS
    hashes: pl.Series = _NO_IDS  # text_hash of the texts
    excerpts: Sequence[str] = ()  # ends of texts that are long enough, in all spellings
    tokens: pl.DataFrame = empty_keys("source", "day", "text_hash")  # without a comment that stays on the day
    generated_comments: pl.DataFrame = empty_keys(*COMMENT)  # comment_id is the generated_id
    cloze_items: pl.DataFrame = empty_keys(*COMMENT)  # comment_id is the item_id
    sentences: pl.DataFrame = empty_keys("source", "item_id")
    label_tasks: pl.DataFrame = empty_keys("project", "task_id", "row_id")
    context_row_ids: pl.Series = _NO_IDS  # of tasks that show an erased comment as context
    pair_ids: pl.Series = _NO_IDS
    explicit_forms: pl.DataFrame = empty_keys("source", "explicit")  # of these pairs and of no other
    completion_ids: pl.Series = _NO_IDS
    user_ids: Sequence[str] = ()  # pseudonyms
    raw_ids: Sequence[str] = ()  # ids of the site, if given
    marks: Sequence[str] = ()  # strings that nothing may contain at the end: excerpts, pseudonyms, ids and hashes


def add_marks(targets: Targets) -> Targets:
    """Add the marks to the targets."""
    ids = [
        targets.hashes, targets.label_tasks["task_id"], targets.label_tasks["row_id"], targets.pair_ids,
        targets.completion_ids, targets.generated_comments["comment_id"], targets.cloze_items["comment_id"],
    ]  # fmt: skip
    return targets._replace(marks=sorted({*targets.excerpts, *targets.user_ids, *chain.from_iterable(ids)}))


Updates = dict[str, tuple[pl.Expr, pl.Expr]]  # column -> (condition, new value)


class Rule(NamedTuple):
    """How the rows of a table are found.

    Attributes:
        description: the rule in words.
        is_erased: builds the condition of rows that are erased.
        updates: builds the changes of fields in rows that stay: column -> (condition, new value).
    """

    description: str
    is_erased: Callable[[Targets], pl.Expr] | None = None
    updates: Callable[[Targets], Updates] | None = None


def is_among(keys: pl.DataFrame, *columns: str) -> pl.Expr:
    """Test whether a row has one of the keys; `columns` are the key's columns in the row (default: the same names)."""
    values = keys.select(_join_columns(keys.columns)).to_series()
    return _join_columns(columns or keys.columns).is_in(values.implode()).fill_null(value=False)


def _join_columns(columns: Sequence[str]) -> pl.Expr:
    return pl.concat_str([pl.col(name).cast(pl.String) for name in columns], separator="\x1f").alias("key")


def is_one_of(column: str, values: pl.Series | Sequence[str]) -> pl.Expr:
    """Test whether a column has one of the values."""
    series = values if isinstance(values, pl.Series) else pl.Series(values, dtype=pl.String)
    return pl.col(column).is_in(series.implode()).fill_null(value=False)


def has_text(targets: Targets, column: pl.Expr | str) -> pl.Expr:
    """Test whether a text is an erased one, or contains one that is long enough."""
    text = pl.col(column) if isinstance(column, str) else column
    return (text.is_in(targets.texts.implode()) | _contains(text, targets.excerpts)).fill_null(value=False)


def has_long_text(targets: Targets, column: pl.Expr | str) -> pl.Expr:
    """Do the same for a field that may have anything, such as a label: a short text, such as `1`, does not count."""
    return has_text(targets._replace(texts=targets.texts.filter(~is_short(targets.texts))), column)


def is_short(texts: pl.Series) -> pl.Series:
    """Test which texts anybody may have written, so that only a field of texts alone identifies them."""
    return texts.str.len_bytes() < LEAST_BYTES


def has_quote(targets: Targets, column: str) -> pl.Expr:
    """Test whether JSON contains a long erased text, or any erased text as a message, text or context."""
    texts = [json.dumps(text, ensure_ascii=False) for text in targets.texts]
    messages = [f'"content": {text}' for text in texts]
    fields = [
        json.dumps(f'"{name}": {text}', ensure_ascii=False)[1:-1] for name in ("text", "context") for text in texts
    ]
    is_quoted = _contains(pl.col(column), [*messages, *fields])
    return (is_quoted | has_long_text(targets, column)).fill_null(value=False)


def _contains(text: pl.Expr, patterns: pl.Series | Sequence[str]) -> pl.Expr:
    if not len(patterns):
        return pl.lit(value=False)
    return text.str.contains_any(list(patterns)).fill_null(value=False)


def has_mark(targets: Targets, column: str) -> pl.Expr:
    """Test whether a text contains a mark."""
    return _contains(pl.col(column), targets.marks)


_NULL = pl.lit(None, pl.String)


def _update_comments(targets: Targets) -> Updates:
    """Keep a reply to an erased comment as one at the top, without a context; clear an erased root."""
    is_reply = is_among(targets.comment_keys, "source", "thread_id", "parent_id")
    has_erased_root = is_reply | is_among(targets.comment_keys, "source", "thread_id", "root_id")
    is_on_article = is_among(targets.threads, *THREAD) & pl.col("parent_id").is_null()
    return {
        "context": (is_reply | is_on_article | has_text(targets, "context"), _NULL),
        "context_id": (is_reply, pl.col("thread_id")),
        "parent_id": (is_reply, _NULL),
        "root_id": (has_erased_root, _NULL),
    }


def _update_row_keys(targets: Targets) -> Updates:
    """Replace a row key that is an id, or source, thread and comment with slashes between them, or a text."""
    in_source = pl.concat_str("thread_id", "comment_id", separator="/")
    paths = targets.comment_keys.select("source", in_source, pl.concat_str(COMMENT, separator="/").alias("path"))
    is_key = (
        is_among(targets.comment_keys.select("source", "comment_id"), "source", "row_key")
        | is_among(targets.threads, "source", "row_key")
        | is_among(targets.sentences, "source", "row_key")
        | is_among(paths.select("source", "thread_id"), "source", "row_key")
        | is_one_of("row_key", paths["path"])
        | has_text(targets, "row_key")
    )
    derived_ids = pl.concat([
        targets.label_tasks["task_id"], targets.pair_ids, targets.completion_ids,
        targets.generated_comments["comment_id"], targets.cloze_items["comment_id"],
    ])  # fmt: skip
    return {"row_key": (is_key | _contains(pl.col("row_key"), derived_ids), pl.lit(ERASED))}


def _update_config(targets: Targets) -> Updates:
    quoted_ids = [f'"{thread}"' for thread in targets.threads["thread_id"].unique()]
    is_about = has_long_text(targets, "config") | _contains(pl.col("config"), quoted_ids)
    return {"config": (is_about, pl.lit("{}"))}


def _is_label(targets: Targets) -> pl.Expr:
    return is_among(targets.label_tasks.select("project", "task_id")) | has_long_text(targets, "value")


_NUMBERS = Rule("numbers over many rows: none is about one row")

RULES: dict[str, Rule] = {
    "metric_scores": Rule(
        "of an erased generated comment, or of an article",
        lambda targets: (
            is_among(targets.generated_comments, "source", "thread_id", "generated_id") | is_among(targets.threads)
        ),
    ),
    "comment_grades": Rule(
        "of a comment, of an erased generated comment, or of an article",
        lambda targets: (
            is_among(targets.comment_keys) | is_among(targets.generated_comments) | is_among(targets.threads)
        ),
    ),
    "labels": Rule("by the task; a rater's note that contains the text", _is_label),
    "annotations": Rule("by the task; a value that contains the text", _is_label),
    "annotated_comments": Rule(
        "by the random id of the task, or by the text; comments by others stay without their context",
        lambda targets: is_one_of("row_id", targets.label_tasks["row_id"]) | has_text(targets, "text"),
        lambda targets: {
            "context": (is_one_of("row_id", targets.context_row_ids) | has_text(targets, "context"), _NULL),
            **{column: (has_long_text(targets, column), _NULL) for column in ("plain", "meaning")},
        },
    ),
    "reference_comments": Rule(
        "by the comment, or by the article", lambda targets: is_among(targets.comment_keys) | is_among(targets.threads)
    ),
    "cloze_targets": Rule("by the article", lambda targets: is_among(targets.threads)),
    "threads": Rule("by the article", lambda targets: is_among(targets.threads)),
    "compressions": Rule(
        "by the sentence, or by its words in order",
        lambda targets: (
            is_among(targets.sentences)
            | has_long_text(targets, pl.col("words").list.join(" "))
            | has_long_text(targets, pl.col("words").list.join(""))
        ),
    ),
    "training_texts": Rule(
        "by text_hash: the rows keep their count, in one row of the model",
        lambda targets: is_one_of("text_hash", targets.hashes),
    ),
    "tokens": Rule(
        "by text_hash, if no comment of source and day still has it",
        lambda targets: is_among(targets.tokens) | is_one_of("text_hash", targets.hashes),
    ),
    "scores": Rule(
        "by the comment", lambda targets: is_among(targets.comments) | is_one_of("text_hash", targets.hashes)
    ),
    "models": Rule(
        "a model whose files contain words (`registry.classify_contents`) and that was trained on the text, or of "
        "which no training text is left, or whose training texts were not recorded: its files are removed; its row "
        "stays and is no longer promoted"
    ),
    "raw_pages": Rule(
        "by the origin; else the record is removed from the page's body, or the page if that is not possible",
        lambda targets: is_among(targets.origins),
    ),
    "dropped": Rule(
        "by the origin; row_key loses the id; the erased comments are counted under the reason `erased`",
        lambda targets: is_among(targets.origins),
        _update_row_keys,
    ),
    "runs": Rule(
        "by the origin; a configuration that contains the text or the thread is emptied; counts are corrected",
        lambda targets: is_among(targets.origins),
        _update_config,
    ),
    "evaluations": _NUMBERS,
    "studies": _NUMBERS,
    "erasures": Rule("receipts: they contain nothing that was erased"),
    "model_erasures": Rule("shares and numbers of models: they contain nothing that was erased"),
    "label_tasks": Rule(
        "by the comment, or by what was derived from it (a generated comment, a cloze item, a compressed sentence), or "
        "by the text; tasks about others stay without their context",
        lambda targets: (
            is_among(targets.label_tasks.select("project", "task_id"))
            | is_among(targets.comment_keys)
            | has_long_text(targets, "text")
        ),
        lambda targets: {"context": (is_among(targets.replies) | has_text(targets, "context"), _NULL)},
    ),
    "generated_comments": Rule(
        "of an article; found in a comment; the same words",
        lambda targets: (
            is_among(targets.generated_comments, "source", "thread_id", "generated_id")
            | is_among(targets.threads)
            | is_one_of("found_in", targets.comment_keys.select(pl.concat_str(COMMENT, separator="/")).to_series())
            | has_long_text(targets, "text")
        ),
    ),
    "cloze_items": Rule("by the article", lambda targets: is_among(targets.threads)),
    "completions": Rule(
        "the text in the request or the answer; by the pair",
        lambda targets: (
            is_one_of("completion_id", targets.completion_ids)
            | has_quote(targets, "messages")
            | has_long_text(targets, "response")
        ),
    ),
    "pairs": Rule(
        "by the text, as any of the three; by the completion; a negative that was made of the text; the cluster_id of "
        "other pairs is emptied",
        lambda targets: (
            is_one_of("pair_id", targets.pair_ids)
            | has_text(targets, "implicit")
            | has_long_text(targets, "explicit")
            | has_long_text(targets, "negative")
            | is_one_of("completion_id", targets.completion_ids)
            | is_among(targets.explicit_forms, "source", "negative")
        ),
        lambda targets: {"cluster_id": (is_one_of("cluster_id", targets.pair_ids), _NULL)},
    ),
    "sentences": Rule(
        "by the text; by the imported file's name in item_id",
        lambda targets: (
            is_among(targets.sentences)
            | has_long_text(targets, "text")
            | has_long_text(targets, "explicit")
            | has_long_text(targets, "prompt")
        ),
    ),
    "articles": Rule(
        "by source, day, thread_id and origin; articles of the user, if raw pages name their author",
        lambda targets: is_among(targets.articles),
    ),
    "comments": Rule(
        "by user_id, comment_id or origin; replies by others stay, at the top and without a context",
        lambda targets: is_among(targets.comments),
        _update_comments,
    ),
}
"""Table -> its rule. A test fails if a table has no rule."""
