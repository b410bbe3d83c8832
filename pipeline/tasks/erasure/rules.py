"""The rule of each table: how the rows that derive from an erased comment or article are found.

`RULES` is in the order of erasure: rows that lead to others after these, so that after a kill all are found again.
"""

import json
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import polars as pl

from pipeline.tables import ERASED

LEAST_BYTES = 20  # of a text that is searched inside others; anybody may have written a shorter one (6 Chinese chars)
FIRST_CHARS = 32  # of a text by which it is searched
THREAD = ("source", "thread_id")
COMMENT = (*THREAD, "comment_id")


def create_keys(*columns: str) -> pl.DataFrame:
    """Build an empty frame of keys."""
    return pl.DataFrame(schema={name: pl.Date if name == "day" else pl.String for name in columns})


_NO_IDS = pl.Series(dtype=pl.String)


class Targets(NamedTuple):
    """What is erased, and the keys of what was derived from it; without texts that somebody else wrote too."""

    comments: pl.DataFrame = create_keys("source", "day", "thread_id", "comment_id")
    comment_keys: pl.DataFrame = create_keys(*COMMENT)  # of comments that no day and no origin still has
    replies: pl.DataFrame = create_keys(*COMMENT)  # by others, to these comments
    articles: pl.DataFrame = create_keys("source", "day", "thread_id", "origin")
    threads: pl.DataFrame = create_keys(*THREAD)  # without an article that stays
    origins: pl.DataFrame = create_keys("source", "origin")
    texts: pl.Series = _NO_IDS
    hashes: pl.Series = _NO_IDS  # text_hash of the texts
    excerpts: Sequence[str] = ()  # ends of texts that are long enough, in all spellings
    tokens: pl.DataFrame = create_keys("source", "day", "text_hash")  # without a comment that stays on the day
    scores: pl.DataFrame = create_keys("source", "day", "thread_id", "comment_id", "text_hash")  # likewise
    vectors: pl.Series = _NO_IDS  # text_hash of the embeddings whose text stands in no comment that stays
    generated_comments: pl.DataFrame = create_keys(*COMMENT)  # comment_id is the generated_id
    cloze_items: pl.DataFrame = create_keys(*COMMENT)  # comment_id is the item_id
    sentences: pl.DataFrame = create_keys("source", "item_id")
    label_tasks: pl.DataFrame = create_keys("project", "task_id", "row_id")
    context_row_ids: pl.Series = _NO_IDS  # of tasks that show an erased comment as context
    pair_ids: pl.Series = _NO_IDS
    explicit_forms: pl.DataFrame = create_keys("source", "explicit")  # of these pairs and of no other
    completion_ids: pl.Series = _NO_IDS
    user_ids: Sequence[str] = ()  # pseudonyms
    raw_ids: Sequence[str] = ()  # ids of the site, if given
    marks: Sequence[str] = ()  # strings that nothing may contain at the end: excerpts, pseudonyms, ids and hashes


def join_ids(targets: Targets) -> pl.Series:
    """Join the ids of what was derived, which no other row has."""
    frames = (targets.generated_comments, targets.cloze_items)
    tasks = targets.label_tasks["task_id"]
    return pl.concat([tasks, targets.pair_ids, targets.completion_ids, *(frame["comment_id"] for frame in frames)])


Condition = Callable[[Targets], pl.Expr]
Updates = dict[str, tuple[pl.Expr, pl.Expr]]  # column -> (condition, new value)


class Rule(NamedTuple):
    """How the rows of a table are found: conditions of those that are erased, changes of fields in those that stay."""

    conditions: Sequence[Condition] = ()
    updates: Callable[[Targets], Updates] | None = None

    def is_erased(self, targets: Targets) -> pl.Expr:
        """Test whether a row is erased."""
        return reduce(or_, (condition(targets) for condition in self.conditions))


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


def has_long_text(targets: Targets, *columns: pl.Expr | str) -> pl.Expr:
    """Do the same for fields that may have anything, such as a label: a short text, such as `1`, does not count."""
    long_targets = targets._replace(texts=targets.texts.filter(~is_short(targets.texts)))
    return reduce(or_, (has_text(long_targets, column) for column in columns))


def is_short(texts: pl.Series) -> pl.Series:
    """Test which texts anybody may have written, so that only a field of texts alone identifies them."""
    return texts.str.len_bytes() < LEAST_BYTES


def has_quote(targets: Targets, column: str) -> pl.Expr:
    """Test whether JSON contains a long erased text, or any erased text as a message, text or context."""
    texts = [json.dumps(text, ensure_ascii=False) for text in targets.texts]
    quotes = [f'"content": {text}' for text in texts]
    for name in ("text", "context"):
        quotes += [json.dumps(f'"{name}": {text}', ensure_ascii=False)[1:-1] for text in texts]
    return _contains(pl.col(column), quotes) | has_long_text(targets, column)


def has_mark(targets: Targets, column: str) -> pl.Expr:
    """Test whether a text contains a mark."""
    return _contains(pl.col(column), targets.marks)


def _contains(text: pl.Expr, patterns: pl.Series | Sequence[str]) -> pl.Expr:
    if not len(patterns):
        return pl.lit(value=False)
    return text.str.contains_any(list(patterns)).fill_null(value=False)


def _among(keys: str, *columns: str) -> Condition:
    return lambda targets: is_among(getattr(targets, keys), *columns)


def _one_of(column: str, values: str) -> Condition:
    return lambda targets: is_one_of(column, getattr(targets, values))


def _long_text(*columns: str | pl.Expr) -> Condition:
    return lambda targets: has_long_text(targets, *columns)


def _text(column: str) -> Condition:
    return lambda targets: has_text(targets, column)


def _is_of_task(targets: Targets) -> pl.Expr:
    return is_among(targets.label_tasks.select("project", "task_id"))


def _is_found(targets: Targets) -> pl.Expr:
    return is_one_of("found_in", targets.comment_keys.select(pl.concat_str(COMMENT, separator="/")).to_series())


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
    comments = targets.comment_keys.select("source", "comment_id")
    key_frames = (comments, targets.threads, targets.sentences, paths.select("source", "thread_id"))
    is_key = reduce(or_, (is_among(keys, "source", "row_key") for keys in key_frames))
    is_key |= is_one_of("row_key", paths["path"]) | has_text(targets, "row_key")
    return {"row_key": (is_key | _contains(pl.col("row_key"), join_ids(targets)), pl.lit(ERASED))}


def _update_config(targets: Targets) -> Updates:
    quoted_ids = [f'"{thread}"' for thread in targets.threads["thread_id"].unique()]
    is_about = has_long_text(targets, "config") | _contains(pl.col("config"), quoted_ids)
    return {"config": (is_about, pl.lit("{}"))}


def _update_annotated(targets: Targets) -> Updates:
    is_context = is_one_of("row_id", targets.context_row_ids) | has_text(targets, "context")
    meanings = {column: (has_long_text(targets, column), _NULL) for column in ("plain", "meaning")}
    return {"context": (is_context, _NULL), **meanings}


_WORDS = pl.col("words").list
_OF_GENERATED = (_among("generated_comments", *THREAD, "generated_id"), _among("threads"))
_BY_HASH = _one_of("text_hash", "hashes")
_OF_COMPLETION = _one_of("completion_id", "completion_ids")
RULES: dict[str, Rule] = {
    "metric_scores": Rule(_OF_GENERATED),
    "comment_grades": Rule([_among("comment_keys"), _among("generated_comments"), _among("threads")]),
    "labels": Rule([_is_of_task, _long_text("value")]),  # a rater's note may contain the text
    "annotations": Rule([_is_of_task, _long_text("value")]),
    # by the random id of the task, or by the text; comments by others stay without their context
    "annotated_comments": Rule(
        [lambda targets: is_one_of("row_id", targets.label_tasks["row_id"]), _text("text")], _update_annotated
    ),
    "reference_comments": Rule([_among("comment_keys"), _among("threads")]),
    "cloze_targets": Rule([_among("threads")]),
    "threads": Rule([_among("threads")]),
    "compressions": Rule([_among("sentences"), _long_text(_WORDS.join(" "), _WORDS.join(""))]),
    "training_texts": Rule([_BY_HASH]),  # the rows keep their count, in one row of the model
    "tokens": Rule([_among("tokens"), _BY_HASH]),  # if no comment of source and day still has it
    "embeddings": Rule([_one_of("text_hash", "vectors")]),  # also of comments that were changed or replaced
    "projections": Rule([_among("tokens"), _BY_HASH]),
    "scores": Rule([_among("comments"), _among("scores"), _BY_HASH]),
    "scores_explained": Rule([_among("comments"), _among("scores"), _BY_HASH]),
    # a model whose files contain words (`registry.classify_contents`) and that was trained on the text, or of which no
    # training text is left, or whose training texts were not recorded: its files are removed; its row stays and is no
    # longer promoted
    "models": Rule(),
    "raw_pages": Rule([_among("origins")]),  # else the record is removed from the page's body, or if need be the page
    # the erased comments are counted under the reason `erased`
    "dropped": Rule([_among("origins")], _update_row_keys),
    "runs": Rule([_among("origins")], _update_config),  # counts are corrected
    "evaluations": Rule(),  # numbers over many rows: none is about one row
    "studies": Rule(),
    "erasures": Rule(),  # receipts, shares and numbers of models contain nothing that was erased
    "model_erasures": Rule(),
    # by the comment, or by what was derived from it; tasks about others stay without their context
    "label_tasks": Rule(
        [_is_of_task, _among("comment_keys"), _long_text("text")],
        lambda targets: {"context": (is_among(targets.replies) | has_text(targets, "context"), _NULL)},
    ),
    # of an article; found in a comment; the same words
    "generated_comments": Rule([*_OF_GENERATED, _is_found, _long_text("text")]),
    "cloze_items": Rule([_among("threads")]),
    # the text in the request or the answer; by the pair
    "completions": Rule([_OF_COMPLETION, lambda targets: has_quote(targets, "messages"), _long_text("response")]),
    # the text, as any of the three; a negative that was made of the text; the cluster_id of other pairs is emptied
    "pairs": Rule(
        [
            _one_of("pair_id", "pair_ids"),
            _text("implicit"),
            _long_text("explicit", "negative"),
            _OF_COMPLETION,
            _among("explicit_forms", "source", "negative"),
        ],
        lambda targets: {"cluster_id": (is_one_of("cluster_id", targets.pair_ids), _NULL)},
    ),
    # by the text; by the imported file's name in item_id
    "sentences": Rule([_among("sentences"), _long_text("text", "explicit", "prompt")]),
    "articles": Rule([_among("articles")]),  # articles of the user too, if raw pages name their author
    "comments": Rule([_among("comments")], _update_comments),  # replies by others stay, at the top
}
"""Table -> its rule. A test fails if a table has no rule."""
