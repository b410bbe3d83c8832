"""Values of a row as fields of a comment: kept exactly or refused, never changed without a word.

`place` says where a value stands, file and row, for messages.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.errors import BadInput
from pipeline.io.formats.workbook import CellError, RoundedNumber
from pipeline.io.lines import parse_json

_EPOCH_MILLISECONDS = 100_000_000_000  # seconds since 1970 reach it in the year 5138
_FIRST_TIME = datetime(1990, 1, 1, tzinfo=UTC)  # day counts of a spreadsheet and row numbers are of the 1970s
_AHEAD = timedelta(days=1)  # of our clock: local times without an offset
_DATE = re.compile(
    r"^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:(?:[01][0-9]|2[0-3])[0-5][0-9](?:[0-5][0-9])?)?$"
)
_DATE_FORMS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # by their number of digits
_DECIMAL = re.compile(r"^-?[0-9]{1,18}\.[0-9]+$")
_ABSENT = ("NA", "NaN", "nan", "None", "null")  # what programs write for none
_WHOLE = re.compile(r"^(-?[0-9]{1,18})(\.0+)?$")
IDS = frozenset({"comment_id", "thread_id", "parent_id", "root_id", "user"})
_COUNTS = {"like_count", "reply_count"}
_MOST = 10**18  # beyond what a count may be
_ROUNDED = re.compile(r"^-?[0-9](?:\.[0-9]+)?[eE]\+[0-9]+$")  # what a spreadsheet makes of a long id
_LONG_ID = re.compile(r"^[0-9]{16,40}$")
_KEPT_DIGITS = 15  # of a number in Excel, which puts zeros for the others
_FEWEST_IDS, _FEWEST_ZEROS = 5, 8  # with less, no column is refused: ids end so by chance once in 10**8 columns
_EXACT = 2**53  # the first integers that floats skip lie above
Row = Mapping[str, Any]


def read_text(row: Row, mapping: Mapping[str, str], name: str, place: str) -> str | None:
    """A field as text; None where it is absent or empty, BadInput for what is no text or number or has lost digits."""
    if name not in mapping:
        return None
    value = row.get(mapping[name])
    if value is None or (type(value) is str and name not in IDS):
        return value or None
    location = f"{place}, field {mapping[name]!r}"
    if isinstance(value, Decimal) and value.is_finite():
        value = int(value) if value == value.to_integral_value() else str(value)
    kind = "an id as text" if name in IDS else "text or a whole number"
    if isinstance(value, float):
        if math.isinf(value):
            raise BadInput(f"{location}: expected text or a number, found {value}")
        if abs(value) > _EXACT:
            raise BadInput(f"{location}: expected {kind}, found {value!r}, which has lost digits")
        # spreadsheets and pandas give whole numbers as floats; NaN is pandas for none
        value = None if math.isnan(value) else int(value) if value.is_integer() else value
    elif isinstance(value, bool | CellError) or not isinstance(value, str | int | None):
        hint = "; for a list of comments in each row use --map comments=COLUMN" if isinstance(value, list) else ""
        raise BadInput(f"{location}: expected text, found {_type_name(value)}{hint}")
    if isinstance(value, RoundedNumber):
        raise BadInput(f"{location}: expected {kind}, found the number {value}, which has lost digits")
    if name in IDS and isinstance(value, str):
        if _is_rounded(value):
            raise BadInput(f"{location}: expected an id as text, found {value!r:.60}, which has lost digits")
        number = _WHOLE.match(value)  # pandas writes 1.0 in a column that has gaps
        value = number[1] if number else value if value.strip() and value not in _ABSENT else None
    return None if value in (None, "") else str(value)


class CutIds:
    """The ids of a column, and whether a spreadsheet cut them.

    Excel saves 1234567890123456789 as 1234567890123450000, which looks like an id. A column of which all long ids end
    so, five different ones or more with eight such zeros between them, was cut: digits that are as likely as others
    are zeros by chance in one column of 10**8.
    """

    def __init__(self) -> None:
        self.first = ""  # of them: place and value
        self.ids: set[str] = set()
        self.zeros = 0
        self.has_whole_ids = False

    def add(self, value: str, location: str) -> None:
        """Look at an id."""
        if self.has_whole_ids or not _LONG_ID.match(value):
            return
        cut = value[_KEPT_DIGITS:]
        if cut.strip("0"):
            self.has_whole_ids = True
        elif not self._are_enough() and value not in self.ids:
            self.first = self.first or f"{location}: expected ids as text, found {value!r}"
            self.ids.add(value)
            self.zeros += len(cut)

    def check(self) -> None:
        """Refuse the column if its ids are cut."""
        if self._are_enough() and not self.has_whole_ids:
            problem = f"ids of more than {_KEPT_DIGITS} digits end in zeros from the {_KEPT_DIGITS + 1}th on"
            advice = "as Excel leaves them; export ids as text (if they are right, as jsonl)"
            raise BadInput(f"{self.first}, and all its {problem}, {advice}")

    def _are_enough(self) -> bool:
        return len(self.ids) >= _FEWEST_IDS and self.zeros >= _FEWEST_ZEROS


def _is_rounded(text: str) -> bool:
    number = _WHOLE.match(text)
    return bool(_ROUNDED.match(text) or (number and number[2] and abs(int(number[1])) > _EXACT))


def _type_name(value: Any) -> str:
    names = {bool: "true or false", list: "a list", dict: "an object", bytes: "bytes"}
    sample = value if isinstance(value, CellError | datetime | date) else f"{value!r:.40}"
    return f"{names.get(type(value), type(value).__name__)} ({sample})"


def count_value(row: Row, mapping: Mapping[str, str], name: str, place: str) -> int | None:
    """A count; None where it is absent or empty."""
    if (text := read_text(row, mapping, name, place)) is None or text in _ABSENT:
        return None
    location = f"{place}, field {mapping[name]!r}"
    number = _WHOLE.match(text)
    if number is None or _is_rounded(text):
        reason = ", which has lost digits" if number else ""
        raise BadInput(f"{location}: expected a whole number, found {text[:60]!r}{reason}")
    if (count := int(number[1])) < 0:
        raise BadInput(f"{location}: expected a count of 0 or more, found {text[:60]!r}")
    return count


def time_value(row: Row, mapping: Mapping[str, str], name: str, place: str, zone: Any = UTC) -> datetime | None:
    """A time as UTC, of `zone` where it has no offset; None where it is absent, empty or 0, as sites write for none."""
    value = row.get(mapping[name]) if name in mapping else None
    if value in (None, "", 0, "0", "0.0", *_ABSENT) or (isinstance(value, float) and math.isnan(value)):
        return None
    location = f"{place}, field {mapping[name]!r}"
    if not isinstance(value, str | int | float | Decimal | date) or isinstance(value, bool | CellError):
        raise BadInput(f"{location}: expected a time (epoch or ISO 8601), found {_type_name(value)}")
    try:
        moment = value if isinstance(value, datetime) else _parse_time(str(value))
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError as why:
        raise BadInput(f"{location}: {str(value)[:60]!r} is no time between years 1 and 9999") from why
    except ValueError as why:
        raise BadInput(f"{location}: {why}") from why
    if not _FIRST_TIME <= moment <= datetime.now(UTC) + _AHEAD:
        problem = f"expected a time from 1990 to tomorrow, found {str(value)[:60]!r}, which is {moment.date()}"
        advice = "write times as 2026-11-19 12:30:00, or leave the field out of the mapping"
        raise BadInput(f"{location}: {problem}; {advice}")
    return moment


def _parse_time(text: str) -> datetime:
    number = _WHOLE.match(text)
    if number and _DATE.match(digits := number[1]):  # 20261119 is a date, hardly 1970-08-23
        with suppress(ValueError):
            return datetime.strptime(digits, _DATE_FORMS[len(digits)])  # noqa: DTZ007 - the caller knows the zone
        raise ValueError(f"expected a time, found {digits}, a day that no month has")
    if number or _DECIMAL.match(text):
        seconds = int(number[1]) if number else float(text)
        try:
            return datetime.fromtimestamp(seconds / 1000 if seconds >= _EPOCH_MILLISECONDS else seconds, UTC)
        except (ValueError, OverflowError, OSError) as why:
            raise ValueError(f"'{seconds}' is no time between years 1 and 9999") from why
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    with suppress(ValueError):
        return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")  # Weibo's own, which weibo-crawler leaves as it is
    raise ValueError(f"expected a time (epoch or ISO 8601), found {text[:60]!r}")


def read_column(rows: Sequence[Row], mapping: Mapping[str, str], name: str, place: str) -> list[Any]:
    """A field of each row, as of the functions above."""
    if name not in mapping:
        return [None] * len(rows)
    if name == "created_at":
        zone = ZoneInfo(mapping["timezone"]) if "timezone" in mapping else UTC
        return [time_value(row, mapping, name, place, zone) for row in rows]
    values = [row.get(mapping[name]) for row in rows]
    kinds = {*map(type, values)} - {type(None)}
    if name in _COUNTS:
        is_plain = kinds <= {int} and all(value is None or 0 <= value < _MOST for value in values)
        return values if is_plain else [count_value(row, mapping, name, place) for row in rows]
    if kinds <= {str} and (name not in IDS or all(value.isdigit() and value.isascii() for value in values if value)):
        return [value or None for value in values]
    return [read_text(row, mapping, name, place) for row in rows]


def list_value(value: Any, location: str) -> list[Any]:
    """A list of comments, which a table holds as JSON; an absent one is empty."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as why:
            raise BadInput(f"{location}: expected a JSON list: {why}") from why
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{location}: expected a list of comments, found {type(value).__name__}")
    return value
