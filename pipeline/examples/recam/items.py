"""Cloze items of ReCAM: a passage, a summary with a word left out, five words for it (ReCAM, table 1; REC-01).

A line of the official files is `{"article", "question", "option_0" … "option_4", "label"}`; the question holds
`@placeholder` once, and the label is the place of the right option from 0. In 26 of the 3,000 trial items two options
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


class Kept(NamedTuple):
    """Items that are kept and those that are not; together they are the items that came in."""

    items: pl.DataFrame  # item_id, article, question, options (a list of five), label (place of the right one, from 0)
    dropped: pl.DataFrame  # reason, row_key (the item_id)


def read(path: Path, strict: bool = True) -> Kept:
    """Items of a JSON Lines file in the official format; an item's id is `<file name>:<line>`.

    Args:
        path: the file.
        strict: an item with two options that differ in capitals or blanks at most is an error; without, it is dropped
            as `same_options`. Any other fault is an error all the same.

    Raises:
        BadInput: naming file, line and field.
    """
    rows, dropped = [], []
    for number, entry in read_json_lines(path):
        where = f"{path}, line {number}"
        item = {"item_id": f"{path.name}:{number}", **_item(entry, where)}
        if len({option.strip().lower() for option in item["options"]}) == OPTIONS:
            rows.append(item)
        elif strict:
            raise BadInput(f"{where}: fields 'option_0' to 'option_4' should differ, found {item['options']}")
        else:
            dropped.append(("same_options", item["item_id"]))
    if not rows and not dropped:
        raise BadInput(f"{path}: the file holds no items")
    return Kept(pl.DataFrame(rows, schema=SCHEMA), pl.DataFrame(dropped, schema=DROPPED, orient="row"))


def _item(entry: dict[str, Any], where: str) -> dict[str, Any]:
    names = [f"option_{place}" for place in range(OPTIONS)]
    texts = {name: entry.get(name) for name in ("article", "question", *names)}
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"{where}: field {name!r} should be a text that is not blank, found {value!r:.60}")
    if (count := texts["question"].count(PLACEHOLDER)) != 1:  # type: ignore[union-attr]
        raise BadInput(f"{where}: field 'question' should hold {PLACEHOLDER} once, found it {count} times")
    label = entry.get("label")
    if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < OPTIONS:
        raise BadInput(f"{where}: field 'label' should be a place from 0 to {OPTIONS - 1}, found {label!r:.60}")
    options = [texts[name] for name in names]
    return {"article": texts["article"], "question": texts["question"], "options": options, "label": label}


def write(path: Path, items: pl.DataFrame) -> None:
    """Write items in the official format, complete or not at all; their ids are not written.

    Raises:
        BadInput: an item is not of the format, so that `read` would refuse it; nothing is written.
    """
    lines = []
    for row in items.select(*SCHEMA).iter_rows(named=True):
        where = f"{path}, item {row['item_id']}"
        if not isinstance(row["options"], list) or len(row["options"]) != OPTIONS:
            raise BadInput(f"{where}: field 'options' should hold {OPTIONS}, found {row['options']!r:.60}")
        options = {f"option_{place}": option for place, option in enumerate(row["options"])}
        entry = {"article": row["article"], "question": row["question"], **options, "label": row["label"]}
        if len({option.strip().lower() for option in _item(entry, where)["options"]}) < OPTIONS:
            raise BadInput(f"{where}: field 'options' should hold different words, found {row['options']}")
        lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def answers() -> pl.Expr:
    """The right option of each item."""
    return pl.col("options").list.get(pl.col("label")).alias("answer")


def normalised(column: str = "article") -> pl.Expr:
    """A text as it is compared: small letters, single blanks, none at the ends."""
    return pl.col(column).str.replace_all(r"\s+", " ").str.strip_chars().str.to_lowercase()


def without_articles(items: pl.DataFrame, others: pl.DataFrame) -> Kept:
    """Items whose article is not among those of other items, compared by `normalised`.

    Of the trial items 50 are of an article in the dev files: who trains on the former and tests on the latter drops
    them.

    Args:
        items: rows with item_id and article.
        others: rows with article, such as the items to be tested on.

    Returns:
        The items kept, in their order, and those dropped as `article_elsewhere`.
    """
    known = others.select(normalised()).to_series().unique()
    is_there = items.select(normalised().is_in(known.implode())).to_series()
    dropped = items.filter(is_there).select(reason=pl.lit("article_elsewhere"), row_key="item_id")
    return Kept(items.filter(~is_there), dropped)


def statistics(items: pl.DataFrame) -> pl.DataFrame:
    """What there is of items (Table 5 and beside it): what, value.

    Words are what stands between blanks. The share at the commonest place of the right option is .2 where places are
    drawn.
    """
    words = [pl.col(name).str.count_matches(r"\S+") for name in ("article", "question")]
    found = items.select(
        items=pl.len(), articles=normalised().n_unique(), right_words=answers().str.to_lowercase().n_unique(),
        options=pl.col("options").explode().str.to_lowercase().n_unique(), words_of_passage=words[0].mean(),
        longest_passage=words[0].max(), words_of_question=words[1].mean(),
        commonest_place=pl.col("label").value_counts().struct.field("count").max() / pl.len(),
    )  # fmt: skip
    return found.cast(pl.Float64).unpivot(variable_name="what")
