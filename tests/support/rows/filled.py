"""Rows for tests: the few values that a test is about, the rest filled in so that the contract holds."""

import hashlib
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from pipeline.tables import TABLES

DAY = date(2026, 11, 19)
NEXT = date(2026, 11, 20)

_DEFAULTS: dict[str, Any] = {
    "source": "weibo", "day": DAY, "origin": "test", "thread_id": "t1", "lang": "en", "adapter": "test/1",
    "text": "what a day", "duplicate_count": 0, "is_hot": False, "url": "https://example.org/1", "body": "{}",
    "model": "test", "prompt": "p", "prompt_version": "1", "messages": "[]", "params": "{}", "attempt": 0,
    "response": "", "mode": "import", "implicit": "nice", "explicit": "good", "negative": "bad", "split": "train",
    "label": "implicit", "item_id": "1", "study": "ablation", "setting": "{}", "run": 0, "row_count": 1,
    "kind": "impscore", "encoder": "embedded", "encoder_revision": "1", "config": "{}", "data_hash": "1",
    "completion_models": ["test"], "is_promoted": True,
    "code_version": "0", "metric": "implicitness", "subset": "all", "epoch": 0,
    "value": 1.0, "pair_count": 1, "signature": "sig|test|1", "step": "collect", "reason": "empty", "row_key": "1",
    "read_count": 1, "kept_count": 1, "dropped_count": 0, "run_id": "test", "tokens": ["what", "a", "day"],
    "tokenizer": "nltk", "tokenizer_version": "1", "dictionary_hash": "none", "project": "csd", "release": "csd",
    "schema_version": "1", "round": 1, "stage": 1, "rater_id": "r1", "field": "subtext", "tool": "file",
    "state": "deleted", "pattern": "same", "subtask": "imperceptibility", "start": 2, "end": 6, "word": "hope",
    "lemma": "hope", "upos": "NOUN", "title_tokens": ["a", "day"], "content_tokens": ["it", "rained"],
    "comment_count": 1, "like_count": 0, "role": "reference", "place": 0, "grade": 3.0, "grades": [3.0, 3.0],
    "raters": ["r1", "r2"], "system": "att", "is_weighted": True, "words": ["cold", "again"], "rounds": [0, 1],
    "x": 0.5, "y": -0.5, "bucket": 0, "vector": b"\0<",
    "position": 1, "change": 0.1, "ratio": 0.5, "store": "comments", "request_count": 1, "file_count": 0,
    "erased_at": datetime(2026, 11, 19, tzinfo=UTC), "erased_count": 1, "training_count": 2, "erased_ratio": 0.5,
}  # fmt: skip
_ITEM = {"question": "A @placeholder", "options": ["hope", "fear", "calm", "pity", "envy"], "label": 0}
_HASH_SIZES = {
    **dict.fromkeys(("page_id", "completion_id", "model_id"), 64),
    **dict.fromkeys(("text_hash", "pair_id", "task_id", "generated_id", "erasure_id"), 32),
    "row_id": 16,
}


def digest(value: object, size: int = 64) -> str:
    """A hexadecimal name for a value."""
    return hashlib.sha256(str(value).encode()).hexdigest()[:size]


def filled(name: str, *rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of table `name`, each with the values given and, for what may not be null, fitting ones."""
    columns = TABLES[name].schema.columns()
    values = []
    for number, row in enumerate(rows, 1):
        item = _ITEM | {"item_id": digest(number, 32)} if name == "cloze_items" else {}
        part = {"split": "train"} if name == "threads" and "reason" not in row else {}
        needed = [column for column, kind in columns.items() if not kind.nullable]
        defaults = {column: item[column] if column in item else _value(column, row, number) for column in needed}
        values.append({**dict.fromkeys(columns), **defaults, **part, **row})
    return pl.DataFrame(values, schema=TABLES[name].schema.create_empty().schema)


def _value(column: str, row: dict[str, Any], number: int) -> object:
    if column in _HASH_SIZES:
        return digest(row.get("text", number) if column == "text_hash" else number, _HASH_SIZES[column])
    if column == "comment_id":
        return f"c{number}"
    if column == "context_id":
        return row.get("parent_id") or row.get("thread_id", _DEFAULTS["thread_id"])
    return _DEFAULTS[column]
