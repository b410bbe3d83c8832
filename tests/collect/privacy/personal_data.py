r"""Texts with and without private particulars, and how well they are told apart.

`personal_data.tsv` has a row a text: the kind, a tab, the text with each particular in ⟦ ⟧; `-` and a text with none.
Numbers and addresses are invented, reserved for documentation, or published for testing (RFC 2606, RFC 5737, Ofcom,
cards of payment providers, the IBAN registry). Characters nobody sees are written \u{34F}.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.collect.privacy.particulars import TOKENS, find_particulars

NAME = r"样例(?:用户|博主|听众|观众|UP|知友|答主|网友)\w*"
"""A nickname of the sample."""

_SLACK = 2  # characters by which what is replaced may exceed the particular: a sign or bracket


class Example(NamedTuple):
    """A text and where its particulars are: start, end, kind."""

    text: str
    gold: list[tuple[int, int, str]]


def examples() -> list[Example]:
    """The rows of the file."""
    rows = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    return [_example(*row.split("\t", 1)) for row in rows]


def _example(kind: str, marked: str) -> Example:
    marked = re.sub(r"\\u\{([0-9A-F]+)\}", lambda code: chr(int(code[1], 16)), marked)
    text, gold = "", []
    for part in re.split("([⟦⟧])", marked):
        if part == "⟦":
            gold.append((len(text), 0, kind))
        elif part == "⟧":
            gold[-1] = (gold[-1][0], len(text), kind)
        else:
            text += part
    return Example(text, gold)


def list_user_ids(node: object) -> Iterator[str]:
    """The raw user ids of a page."""
    if isinstance(node, list):
        for item in node:
            yield from list_user_ids(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            is_id = name in ("userId", "mid", "userid") and not (name == "mid" and "text" in node)
            person_id = value["id"] if name in ("user", "author") and "id" in value else value if is_id else None
            if str(person_id) not in ("None", "-1", "0"):  # of nobody
                yield str(person_id)
            yield from list_user_ids(value)


class Measured(NamedTuple):
    """Counts for a kind: right, wrongly replaced, missed."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def measure(rows: list[Example]) -> tuple[dict[str, Measured], list[str]]:
    """Counts by kind and in all, and what went wrong, a line each."""
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    faults: list[str] = []
    for row in rows:
        spans = [span for span in find_particulars(row.text) if span[2]]
        hits = [next((span for span in spans if _covers(span, gold)), None) for gold in row.gold]
        for gold, hit in zip(row.gold, hits, strict=True):
            (right if hit else missed)[gold[2]] += 1
            if not hit:
                faults.append(f"missed {gold[2]} {row.text[gold[0] : gold[1]]!r} in {row.text!r}")
        for span in spans:
            if span not in hits:
                wrong[span[2]] += 1
                faults.append(f"wrong {span[2]} {row.text[span[0] : span[1]]!r} in {row.text!r}")
    table = {kind: Measured(right[kind], wrong[kind], missed[kind]) for kind in TOKENS}
    table["all"] = Measured(right.total(), wrong.total(), missed.total())
    return table, faults


def _covers(span: tuple[int, int, str], gold: tuple[int, int, str]) -> bool:
    extra = gold[0] - span[0] + span[1] - gold[1]
    return span[2] == gold[2] and span[0] <= gold[0] and span[1] >= gold[1] and extra <= _SLACK
