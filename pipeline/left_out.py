"""What a command leaves out: rows by reason, and notes on columns and files that nothing reads.

`cli.main` prints what steps record here. A second record of the same step and slice replaces the first.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.io.formats.chunk import list_names

log = logging.getLogger(__name__)

LINES = 10  # that are printed; the others are counted

_ROWS: dict[tuple[str, ...], dict[str, int]] = {}
_NOTES: dict[str, int] = {}

ADVICE = {
    "adjudicator_was_rater": "the adjudicator labelled these tasks; import the answers of a person who did not",
    "after_adjudication": "the adjudicator had answered already, so the three labels stand",
    "already_collected": "another import of the day holds them; give its name with --origin to replace that import",
    "article_elsewhere": "the other files hold the same article",
    "bad_value": "a field holds what it cannot; mend the row and import the file again",
    "blank_text": "fill in the text and import the file again",
    "broken_json": "the line is no JSON object; mend it and import the file again",
    "duplicate": "the same label, word or article came before and counts once",
    "exact_duplicate": "the same text in the same thread is kept once, with its count; --keep-duplicates keeps all",
    "field_count": "the row has more or fewer fields than the header; mend it and import the file again",
    "incomplete": "the rows are kept and count when the rater's empty fields of the task are filled in and imported",
    "language": "choose the languages by --lang",
    "late": "enough raters or an adjudicator had answered; assign these tasks to nobody else",
    "malformed": "the answers were not in the form asked for; see `finish_reason` of `completions`",
    "near_duplicate": "almost the same text is kept once, with its count; --keep-duplicates keeps all",
    "no_article": "import the articles with the comments",
    "no_label": "the data set gives these rows no label",
    "no_negative": "a source needs at least two different explicit texts",
    "no_text": "these rows hold no text",
    "no_vector": "the word vectors or the encoder do not know these words",
    "not_all_answered": "no value of a source is written without answers to all; --requests FILE lists the open ones",
    "not_asked": "these fields were not asked for in that round; fill in the sheet of `undertone label adjudicate`",
    "not_in_data": "the data or its --split has no such sentence, or leaves it out",
    "not_rated": "the file of ratings does not hold these words",
    "not_problematic": "the paper's studies are of problematic texts; these are labelled neither",
    "nothing_to_adjudicate": "the three raters agree or, in round 2, all differ: there is nothing to decide",
    "outside_window": "written before the first day or after the last; or collected then, if no time is given",
    "over_limit": "raise --limit to select more",
    "over_thread": "raise --per-thread to select more",
    "repeated_text": "the data set has the text several times; it counts once",
    "repeated_row": "the same text, context and label count once, in the split of the first row",
    "same_options": "two of the options are the same",
    "same_comment": "the same comment is kept once; check that the ids are whole",
    "same_text": "both texts of the pair are the same",
    "select near_duplicate": "of nearly equal texts with the same context the most liked is selected",
    "simulated_labels": "simulated raters labelled them; `undertone train subtext --release NAME` learns from them",
    "simulated": "simulated raters made these answers up; they never count beside those of people",
    "stray_quote": "write the field in quotes and double the quotes inside it",
    "superseded": "the rater changed the label; the later one counts",
    "three_values": "three raters gave three values; answer `again` or `delete`",
    "too_few_raters": "three raters have to finish the task first",
    "unclosed_quote": "the file may be cut off; close the quote and import the file again",
    "unjudged": "an answer is blank, or the file lacks the pair",
    "unknown_comment": "no comment has these ids and this day; export the ids again from `undertone browse`",
    "unknown_item": "check item_id against the file that the raters were given",
    "unknown_task": "check task_id against the tasks that the raters were given",
    "unknown_word": "WordNet and the encoder do not know these words; `--unknown keep` scores their pieces",
    "withdrawn": "their writers asked for it",
}
"""What a person can do, or why nothing has to be done, by reason, or by step and reason where a step differs."""


class Dropped(NamedTuple):
    """Rows that a step left out for a reason."""

    step: str
    reason: str
    row_count: int
    advice: str


def clear() -> None:
    """Forget what was recorded: a new command begins."""
    _ROWS.clear()
    _NOTES.clear()


def record_rows(step: str, counts: Mapping[str, int], *key: str) -> None:
    """Record how many rows a step left out by reason; `key` names the slice or the file that it read."""
    _ROWS[(step, *key)] = dict(counts)
    if any(counts.values()):
        log.info("%s: left out %s", step, dict(counts))  # for the logs of a DAG, which prints nothing at its end


def record_columns(place: object, columns: Sequence[str]) -> None:
    """Record columns of a file that no field uses."""
    if columns:
        note = f"{place}: ignored columns: {list_names(columns)}"
        log.info(note)  # for the logs of a DAG
        record_note(note)


def record_note(text: str, count: int = 0) -> None:
    """Record one more thing that was not used; the same note twice is one, and its counts add up."""
    _NOTES[text] = _NOTES.get(text, 0) + count


def _list_notes() -> list[str]:
    return [f"{text}: {count:,}" if count else text for text, count in _NOTES.items()]


def export() -> dict[str, Any]:
    """All records as plain JSON, for the process that started this one."""
    return {"rows": [[*key] for key in _ROWS], "counts": [*_ROWS.values()], "notes": _list_notes()}


def add(records: Mapping[str, Any]) -> None:
    """Record what another process exported."""
    for (step, *key), counts in zip(records["rows"], records["counts"], strict=True):
        record_rows(step, counts, *key)
    for note in records["notes"]:
        record_note(note)


def list_rows() -> list[Dropped]:
    """What was left out, the most rows first."""
    counts: dict[tuple[str, str], int] = {}
    for (step, *_), reasons in _ROWS.items():
        for reason, count in reasons.items():
            counts[step, reason] = counts.get((step, reason), 0) + count
    advice = {key: ADVICE.get(" ".join(key), ADVICE.get(key[1], "")) for key in counts}
    dropped = [Dropped(*key, count, advice[key]) for key, count in counts.items() if count]
    return sorted(dropped, key=lambda row: (-row.row_count, row.step, row.reason))


def list_lines() -> list[str]:
    """What people read at the end of a command; nothing if nothing was left out."""
    dropped, notes = list_rows(), _list_notes()
    sentences = [
        f"{row.step}: left out {row.row_count:,} as {row.reason}" + (f": {row.advice}" if row.advice else "")
        for row in dropped[:LINES]
    ]
    if more := dropped[LINES:]:
        count = sum(row.row_count for row in more)
        sentences.append(f"left out {count:,} for {len(more)} other reasons; the table `dropped` lists them")
    if len(notes) > LINES:
        notes[LINES:] = [f"and {len(notes) - LINES} more of the kind"]
    return sentences + notes


def summarise() -> dict[str, object]:
    """The same for machines: `dropped` (step, reason, row_count, advice) and `ignored`, where there are any."""
    records = {"dropped": [row._asdict() for row in list_rows()], "ignored": _list_notes()}
    return {name: values for name, values in records.items() if values}
