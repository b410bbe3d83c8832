"""Sentiment, irony and sarcasm: ABSA, SemEval-2018 task 3, Snarks and R3 (ImpScore, table 6)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import PLACE, find_files, join_texts, read_elements, read_table
from pipeline.examples.sources.layout import Read, finish, map_labels
from pipeline.io.lines import parse_object, read_json_lines, read_lines, read_text
from pipeline.reasons import choose_first

_SCHEMA = dict.fromkeys((*PLACE, "text", "label"), pl.String()) | {"line": pl.Int64()}


def read_semeval_irony(path: Path) -> Read:
    """Read SemEval-2018 task 3 (Van Hee et al., 2018): `Tweet index`, `Label`, `Tweet text`, by tabs, no quoting.

    Ironic tweets (1 in task A; 1, 2, 3 in task B) are implicit, the others neither. Tasks A and B label the same
    tweets, so of a folder only task A is read, with emoji if both forms exist.
    """
    files = find_files(path, *(f"*{part}*taskA{form}.txt" for part in ("train", "gold") for form in ("_emoji", "")))
    files = [file for file in files if file.with_name(f"{file.stem}_emoji.txt") not in files]
    names = {"label": ("Label",), "text": ("Tweet text",)}
    rows = read_table(files, names, quoted=False)
    labels = {"0": "neither", **dict.fromkeys(("1", "2", "3"), "implicit")}
    return finish(rows.with_columns(label=map_labels(rows, "label", labels)), "irony_en", entities=True)


def read_absa(path: Path) -> Read:
    """Read reviews of SemEval-2014 task 4 with implicit sentiment marked (Li et al., 2021).

    XML of `sentence` elements with `id`, `text` and `aspectTerm`, whose `implicit_sentiment` is True or False. A
    sentence is implicit where all its marked aspects are, which gives the 933 of Table 6 exactly, and explicit where
    none is. Sentences with both kinds (507; with them the implicit would be 1,440) are dropped as `reason`.
    """
    rows = []
    for file in find_files(path, "*Implicit_Labeled.xml"):
        for number, (sentence, *inside) in enumerate(read_elements(file, "sentence"), 1):
            marks = {_parse_mark(str(file), e.line, e.attributes) for e in inside if e.tag == "aspectTerm"}
            label = " ".join(sorted(filter(None, marks))) or None
            key = f"{file.name}:{sentence.attributes.get('id', number)}"
            rows.append((str(file), sentence.line, key, join_texts(inside, "text"), label))
    is_mixed = pl.col("label") == "explicit implicit"
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    labels = {"label": pl.when(~is_mixed).then("label"), "reason": pl.when(is_mixed).then(pl.lit("mixed"))}
    return finish(frame.with_columns(**labels), "review_en")


def _parse_mark(file: str, line: int, attributes: dict[str, str]) -> str | None:
    marks = {"True": "implicit", "False": "explicit", None: None}  # aspects of conflicting polarity have none
    if (value := attributes.get("implicit_sentiment")) not in marks:
        raise BadInput(f"{file}, line {line}: field 'implicit_sentiment' should be True or False but is {value!r:.60}")
    return marks[value]


_OPTIONS = re.compile(r"(?>.*?\(a\))(?P<a>.*)\(b\)(?P<b>.*)", re.IGNORECASE | re.DOTALL)


def read_snarks(path: Path) -> Read:
    """Read Snarks of BIG-bench (Srivastava et al., 2023): two statements a row, one sarcastic, so two sentences.

    `task.json` with `examples` of `input` "(a) … (b) …" and `target_scores`; or those of BIG-Bench Hard, json or
    jsonl, with `target` "(A)". The sarcastic statement is implicit, the other neither: it is not its meaning.
    """
    rows = []
    for file in find_files(path, "task.json", "snarks*.json", "snarks*.jsonl"):
        for number, line, example in _read_examples(file):
            location = f"{file}, example {number}"
            options = _OPTIONS.match(text) if isinstance(text := example.get("input"), str) else None
            if options is None:
                raise BadInput(f"{location}: field 'input' should be '(a) … (b) …' but is {text!r:.60}")
            answer = _find_answer(location, example)
            rows += [
                (str(file), line, f"{file.name}:{number}{name}", statement, "implicit" if name == answer else "neither")
                for name, statement in options.groupdict().items()
            ]
    return finish(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), "sarcasm_en")


def _read_examples(file: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    if file.suffix == ".jsonl":
        for number, (line, example) in enumerate(read_json_lines(file), 1):
            yield number, line, example
        return
    examples = parse_object(read_text(file), file).get("examples")
    if not isinstance(examples, list) or not examples:
        raise BadInput(f"{file}: field 'examples' should be a list of examples")
    for number, example in enumerate(examples, 1):
        if not isinstance(example, dict):
            raise BadInput(f"{file}, example {number}: expected an object but found {example!r:.60}")
        yield number, 1, example


def _find_answer(location: str, example: dict[str, Any]) -> str:
    scores = example.get("target_scores", {str(example.get("target")): 1})
    right_keys = [key for key, score in scores.items() if score == 1] if isinstance(scores, dict) else []
    name = str(right_keys[0]).strip().strip("()").lower() if len(right_keys) == 1 else ""
    if name not in ("a", "b"):
        expected = "expected one answer, (a) or (b), in 'target_scores' or 'target'"
        raise BadInput(f"{location}: {expected}; found {scores!r:.60}")
    return name


def read_r3(path: Path) -> Read:
    """Read R3 (Chakrabarty et al., 2020): the same 150 utterances line by line in two files of a folder."""
    names = ("non-sarcastic.txt", "human-sarcasm.txt")
    if path.is_file():
        raise BadInput(f"{path}: expected a folder with {' and '.join(names)}")
    find_files(path, *names, is_each_needed=True)
    explicit, implicit = ([line.strip() for _, line in read_lines(path / name)] for name in names)
    if len(implicit) != len(explicit):
        raise BadInput(f"{path / names[1]}: expected {len(explicit)} lines as in {names[0]}, found {len(implicit)}")
    rows = pl.DataFrame({"text": implicit, "explicit": explicit}).with_row_index("line", 1)
    return finish(
        rows.with_columns(
            file=pl.lit(str(path / names[1])),
            item_id=pl.format(names[1] + ":{}", "line"),
            label=pl.lit("implicit"),
            reason=choose_first({"no_explanation": pl.col("explicit") == ""}),
        )
    )
