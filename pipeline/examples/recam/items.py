"""Cloze items of ReCAM: a passage, a summary with a word left out, five words for it (ReCAM, table 1; REC-01).

A line of the official files is `{"article", "question", "option_0" … "option_4", "label"}`; the question holds
`@placeholder` once, and the label is the index of the right option from 0. In 26 of the 3,000 trial items two options
are the same word but for capitals; the dev and test files have none.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.atomic import write_text
from pipeline.io.lines import read_json_lines

PLACEHOLDER = "@placeholder"
OPTIONS = 5
SCHEMA: dict[str, pl.DataType] = {
    "item_id": pl.String(), "article": pl.String(), "question": pl.String(), "options": pl.List(pl.String()),
    "label": pl.Int64(),
}  # fmt: skip
DROPPED: dict[str, pl.DataType] = {"reason": pl.String(), "row_key": pl.String()}


class Items(NamedTuple):
    """The kept and the dropped items; together they are all items read."""

    items: pl.DataFrame  # item_id, article, question, options (a list of five), label (place of the right one, from 0)
    dropped: pl.DataFrame  # reason, row_key (the item_id)


def read(path: Path, strict: bool = True) -> Items:
    """Read items of a JSON Lines file in the official format; an item's id is `<file name>:<line>`.

    Args:
        path: the file.
        strict: raise an error for an item with two options that differ only in capitals or blanks; without, it is
            dropped as `same_options`. Any other fault is always an error.

    Raises:
        BadInput: naming file, line and field.
    """
    rows, dropped = [], []
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        item = {"item_id": f"{path.name}:{number}", **_check_item(entry, location)}
        if len({option.strip().lower() for option in item["options"]}) == OPTIONS:
            rows.append(item)
        elif strict:
            raise BadInput(f"{location}: fields 'option_0' to 'option_4' should differ, found {item['options']}")
        else:
            dropped.append(("same_options", item["item_id"]))
    if not rows and not dropped:
        raise BadInput(f"{path}: the file holds no items")
    return Items(pl.DataFrame(rows, schema=SCHEMA), pl.DataFrame(dropped, schema=DROPPED, orient="row"))


def _check_item(entry: dict[str, Any], location: str) -> dict[str, Any]:
    names = [f"option_{place}" for place in range(OPTIONS)]
    texts = {name: entry.get(name) for name in ("article", "question", *names)}
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"{location}: field {name!r} should be a text that is not blank, found {value!r:.60}")
    if (count := texts["question"].count(PLACEHOLDER)) != 1:  # type: ignore[union-attr]
        raise BadInput(f"{location}: field 'question' should hold {PLACEHOLDER} once, found it {count} times")
    label = entry.get("label")
    if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < OPTIONS:
        raise BadInput(f"{location}: field 'label' should be a place from 0 to {OPTIONS - 1}, found {label!r:.60}")
    options = [texts[name] for name in names]
    return {"article": texts["article"], "question": texts["question"], "options": options, "label": label}


def write(path: Path, items: pl.DataFrame) -> None:
    """Write items, without their ids, in the official format; the file is complete or unchanged.

    Raises:
        BadInput: an item is not in the format, and `read` would refuse it; nothing is written.
    """
    lines = []
    for row in items.select(*SCHEMA).iter_rows(named=True):
        location = f"{path}, item {row['item_id']}"
        if not isinstance(row["options"], list) or len(row["options"]) != OPTIONS:
            raise BadInput(f"{location}: field 'options' should hold {OPTIONS}, found {row['options']!r:.60}")
        options = {f"option_{place}": option for place, option in enumerate(row["options"])}
        entry = {"article": row["article"], "question": row["question"], **options, "label": row["label"]}
        if len({option.strip().lower() for option in _check_item(entry, location)["options"]}) < OPTIONS:
            raise BadInput(f"{location}: field 'options' should hold different words, found {row['options']}")
        lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def right_option() -> pl.Expr:
    """Return the right option of each item."""
    return pl.col("options").list.get(pl.col("label")).alias("answer")


def normalise(column: str = "article") -> pl.Expr:
    """Normalise a text for comparison: small letters, single blanks, stripped."""
    return pl.col(column).str.replace_all(r"\s+", " ").str.strip_chars().str.to_lowercase()


def drop_articles(items: pl.DataFrame, other_items: pl.DataFrame) -> Items:
    """Drop items whose article is also one of other items, compared by `normalise`.

    Of the trial items 50 have an article of the dev files: drop them to train on the former and test on the latter.

    Args:
        items: rows with item_id and article.
        other_items: rows with article, such as the items to test on.

    Returns:
        The kept items, in their order, and the items dropped as `article_elsewhere`.
    """
    other_articles = other_items.select(normalise()).to_series().unique()
    is_shared = items.select(normalise().is_in(other_articles.implode())).to_series()
    dropped = items.filter(is_shared).select(reason=pl.lit("article_elsewhere"), row_key="item_id")
    return Items(items.filter(~is_shared), dropped)


def compute_statistics(items: pl.DataFrame) -> pl.DataFrame:
    """Compute the statistics of table 5, and more: what, value.

    Words are separated by blanks. The share of the commonest index of the right option is .2 if indices are random.
    """
    words = [pl.col(name).str.count_matches(r"\S+") for name in ("article", "question")]
    measures = items.select(
        items=pl.len(), articles=normalise().n_unique(), right_words=right_option().str.to_lowercase().n_unique(),
        options=pl.col("options").explode().str.to_lowercase().n_unique(), words_of_passage=words[0].mean(),
        longest_passage=words[0].max(), words_of_question=words[1].mean(),
        commonest_place=pl.col("label").value_counts().struct.field("count").max() / pl.len(),
    )  # fmt: skip
    return measures.cast(pl.Float64).unpivot(variable_name="what")
