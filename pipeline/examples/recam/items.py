"""Cloze items of ReCAM: a passage, a summary with a word left out, five words for it (ReCAM, table 1; REC-01).

A line of the official files is `{"article", "question", "option_0" … "option_4", "label"}`; the question holds
`@placeholder` once, and the label is the place of the right option, from 0. Rows are of `SCHEMA`.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.atomic import write_text
from pipeline.io.fields import check_field, check_text, is_index
from pipeline.io.lines import read_json_lines
from pipeline.reasons import Read

PLACEHOLDER = "@placeholder"
OPTIONS = 5
SCHEMA: dict[str, pl.DataType] = {
    "item_id": pl.String(), "article": pl.String(), "question": pl.String(), "options": pl.List(pl.String()),
    "label": pl.Int64(),
}  # fmt: skip
DROPPED: dict[str, pl.DataType] = {"reason": pl.String(), "row_key": pl.String()}


def read(path: Path) -> Read:
    """Read items in the official format; one with options that differ only in capitals or blanks is `same_options`."""
    rows, dropped = [], []
    for number, entry in read_json_lines(path, "items"):
        item = {"item_id": f"{path.name}:{number}", **_check_item(entry, f"{path}, line {number}")}
        if len({option.strip().lower() for option in item["options"]}) < OPTIONS:
            dropped.append(("same_options", item["item_id"]))
        else:
            rows.append(item)
    return Read(pl.DataFrame(rows, schema=SCHEMA), pl.DataFrame(dropped, schema=DROPPED, orient="row"))


def _check_item(entry: dict[str, Any], location: str) -> dict[str, Any]:
    names = [f"option_{place}" for place in range(OPTIONS)]
    for name in ("article", "question", *names):
        check_text(entry, name, location)
    if (count := entry["question"].count(PLACEHOLDER)) != 1:
        raise BadInput(f"{location}: field 'question' should hold {PLACEHOLDER} once, found it {count} times")
    label = entry.get("label")
    check_field(entry, "label", location, f"a place from 0 to {OPTIONS - 1}", is_index(label, OPTIONS))
    options = [entry[name] for name in names]
    return {"article": entry["article"], "question": entry["question"], "options": options, "label": label}


def write(path: Path, items: pl.DataFrame) -> None:
    """Write items, without their ids, in the official format."""
    lines = []
    for article, question, options, label in items.select(*[*SCHEMA][1:]).iter_rows():
        named_options = {f"option_{place}": option for place, option in enumerate(options)}
        entry = {"article": article, "question": question, **named_options, "label": label}
        lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def select_right_option() -> pl.Expr:
    """Return the right option of each item."""
    return pl.col("options").list.get(pl.col("label")).alias("answer")


def normalise(column: str = "article") -> pl.Expr:
    """Normalise a text for comparison: small letters, single blanks, stripped."""
    return pl.col(column).str.replace_all(r"\s+", " ").str.strip_chars().str.to_lowercase()


def split_question(item_id: str, question: str) -> tuple[str, str]:
    """Split a question into what stands before and after its placeholder; without one it is BadInput."""
    before, placeholder, after = question.partition(PLACEHOLDER)
    if not placeholder:
        raise BadInput(f"item {item_id}: field 'question' should hold {PLACEHOLDER}, found {question!r:.60}")
    return before, after


def drop_articles(items: pl.DataFrame, other_items: pl.DataFrame) -> Read:
    """Drop items as `article_elsewhere` whose article is also one of other items, as of 50 trial items in dev."""
    other_articles = other_items.select(normalise()).to_series().unique()
    is_shared = items.select(normalise().is_in(other_articles.implode())).to_series()
    dropped = items.filter(is_shared).select(reason=pl.lit("article_elsewhere"), row_key="item_id")
    return Read(items.filter(~is_shared), dropped)


def compute_statistics(items: pl.DataFrame) -> pl.DataFrame:
    """Compute what table 5 has, and more; the share of the commonest index is .2 if indices are random."""
    passage_words, question_words = (pl.col(name).str.count_matches(r"\S+") for name in ("article", "question"))
    measures = {
        "items": pl.len(), "articles": normalise().n_unique(),
        "right_words": select_right_option().str.to_lowercase().n_unique(),
        "options": pl.col("options").explode().str.to_lowercase().n_unique(), "words_of_passage": passage_words.mean(),
        "longest_passage": passage_words.max(), "words_of_question": question_words.mean(),
        "commonest_place": pl.col("label").value_counts().struct.field("count").max() / pl.len(),
    }  # fmt: skip
    return items.select(**measures).cast(pl.Float64).unpivot(variable_name="what")
