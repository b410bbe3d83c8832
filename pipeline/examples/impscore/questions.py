"""Choice questions: which option means the same as the reference? (ImpScore, section 6.1 and appendix A.3; IMP-33).

The paper's questions are not public; these are read from a file or built from graded groups.
"""

from pathlib import Path

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.io.fields import check_choice, check_field, check_text, is_index
from pipeline.io.lines import read_json_lines

OPTIONS = 3
SCHEMA: dict[str, pl.DataType] = {"reference": pl.String(), "options": pl.List(pl.String), "answer": pl.Int64()}


def read(path: Path) -> pl.DataFrame:
    """Read lines of JSON `{"reference": str, "options": [str], "answer": index}`; BadInput with line and field."""
    rows = []
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        check_text(entry, "reference", location)
        count = len(check_choice(entry, "options", location))
        expected = f"the index of the right option, from 0 to {count - 1}"
        check_field(entry, "answer", location, expected, is_index(entry.get("answer"), count))
        rows.append({name: entry[name] for name in SCHEMA})
    if not rows:
        raise BadInput(f"{path}: the file holds no questions")
    return pl.DataFrame(rows, schema=SCHEMA)


def build_questions(groups: pl.DataFrame, options: int = OPTIONS, seed: int = SEED) -> pl.DataFrame:
    """Build a question from each graded group: which most implicit sentence means its most explicit one?

    The wrong options are drawn from other groups, and so is the index of the right one. Returns rows as of `read`, and
    group, by the groups' names. BadInput if there are too few groups whose most implicit sentences differ.
    """
    ends = groups.sort("group", "level").group_by("group", maintain_order=True)
    questions = ends.agg(reference=pl.col("text").first(), hint=pl.col("text").last())
    hints = questions["hint"].unique().sort().to_list()
    if not 2 <= options <= len(hints):
        raise BadInput(f"{options} options: expected 2 or more, and no more than the {len(hints)} groups that differ")
    rng = np.random.default_rng(seed)
    rows = []
    for group, reference, hint in questions.iter_rows():
        candidates = [hints[i] for i in rng.choice(len(hints), options, replace=False)]
        distractors = [text for text in candidates if text != hint][: options - 1]
        answer = int(rng.integers(options))
        choices = [*distractors[:answer], hint, *distractors[answer:]]
        rows.append({"reference": reference, "options": choices, "answer": answer, "group": group})
    return pl.DataFrame(rows, schema=SCHEMA | {"group": pl.String()})
