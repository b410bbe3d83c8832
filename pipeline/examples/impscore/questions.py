"""Choice questions: which option means the same as the reference? (ImpScore, section 6.1 and appendix A.3; IMP-33).

The paper's questions are not public with it; these are read from a file or made from graded groups.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.io.lines import read_json_lines

OPTIONS = 3
SCHEMA: dict[str, pl.DataType] = {"reference": pl.String(), "options": pl.List(pl.String), "answer": pl.Int64()}


def read(path: Path) -> pl.DataFrame:
    """Questions of a JSON Lines file, `{"reference": str, "options": [str], "answer": int}` a line.

    `answer` is the place of the right option counted from 0: the first option is 0, not 1.

    Returns:
        A row a question: reference, options, answer.

    Raises:
        BadInput: naming file, line and field.
    """
    rows = [_question(entry, f"{path}, line {number}") for number, entry in read_json_lines(path)]
    if not rows:
        raise BadInput(f"{path}: the file holds no questions")
    return pl.DataFrame(rows, schema=SCHEMA)


def _question(entry: dict[str, Any], where: str) -> dict[str, Any]:
    reference, options, answer = (entry.get(name) for name in SCHEMA)
    if not isinstance(reference, str) or not reference.strip():
        raise BadInput(f"{where}: field 'reference' should be a text")
    if not isinstance(options, list) or not all(isinstance(o, str) and o.strip() for o in options):
        raise BadInput(f"{where}: field 'options' should be a list of texts")
    if len(options) < 2 or len(set(options)) < len(options):
        raise BadInput(f"{where}: field 'options' should hold at least two, all different")
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(options):
        raise BadInput(f"{where}: field 'answer' should be the place of the right option, from 0 to {len(options) - 1}")
    return {"reference": reference, "options": options, "answer": answer}


def from_groups(groups: pl.DataFrame, options: int = OPTIONS, seed: int = SEED) -> pl.DataFrame:
    """A question of each graded group: its most explicit sentence, and which of the most implicit ones means it.

    Args:
        groups: rows of `groups.read`: group, level, text.
        options: options of a question, one of them right, the others of other groups.
        seed: of the draw of the others and of the place of the right one.

    Returns:
        Rows as of `read`, and group, in the order of the groups' names.

    Raises:
        BadInput: there are too few groups whose most implicit sentences differ.
    """
    ends = groups.sort("group", "level").group_by("group", maintain_order=True)
    known = ends.agg(reference=pl.col("text").first(), hint=pl.col("text").last())
    hints = known["hint"].unique().sort().to_list()
    if options < 2 or len(hints) < options:
        raise BadInput(f"{options} options take at least two and as many groups; here are {len(hints)}")
    rng = np.random.default_rng(seed)
    rows = []
    for group, reference, hint in known.iter_rows():
        drawn = [hints[i] for i in rng.choice(len(hints), options, replace=False)]
        foreign = [text for text in drawn if text != hint][: options - 1]
        answer = int(rng.integers(options))
        choices = [*foreign[:answer], hint, *foreign[answer:]]
        rows.append({"reference": reference, "options": choices, "answer": answer, "group": group})
    return pl.DataFrame(rows, schema=SCHEMA | {"group": pl.String()})
