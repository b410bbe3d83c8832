"""`docs/requirements.md` and the code name the same codes, and the tests that it names are there."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| ((?:AAC|CSD|IMP|NDD|REC|X)-\d\d|E\d+) \|(.*)\|$",
    (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
LISTED = dict(ROWS)
TESTS = sorted({name for _, row in ROWS for name in re.findall(r"`(tests/[^`]+)`", row)})
SERIES = re.compile(r"\b(AAC|CSD|IMP|NDD|REC|X)-(\d\d)((?:(?:,| to| and) (?:\1-)?\d\d\b)*)")


def codes(text: str) -> set[str]:
    """Codes that a text names, those inside of ranges too."""
    text = " ".join(text.split())
    named = set(re.findall(r"\bE[1-9]\d?\b", text))
    for paper, first, others in SERIES.findall(text):
        numbers = [int(first)]
        for word, number in re.findall(r"(,| to| and) (?:[A-Z]+-)?(\d\d)", others):
            numbers += range(numbers[-1] + 1 if word == " to" else int(number), int(number) + 1)
        named |= {f"{paper}-{number:02}" for number in numbers}
    return named


def codes_by_file() -> dict[Path, set[str]]:
    """What each file of code, SQL, tests and pages names, but for this one."""
    return {
        path.relative_to(ROOT): codes(path.read_text(encoding="utf-8"))
        for folder in ("pipeline", "dags", "sql", "tests")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".sql", ".md", ".html"} and path != Path(__file__)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(section 3; CSD-08)", {"CSD-08"}), ("IMP-15 to IMP-17", {"IMP-15", "IMP-16", "IMP-17"}),
        ("NDD-10 to 12,\n    38 and 39; E18", {"NDD-10", "NDD-11", "NDD-12", "NDD-38", "NDD-39", "E18"}),
        ("AAC-07, REC-03 and errata E5", {"AAC-07", "REC-03", "E5"}), ("in 1E5 rows, UTF-16, SHA-256", set()),
    ],
)  # fmt: skip
def test_codes_of_a_text(text: str, expected: set[str]) -> None:
    """Codes are found alone, in lists and in ranges, also over the end of a line."""
    assert codes(text) == expected


def test_codes_of_code_and_page_agree() -> None:
    """A code that a file names has a row; one that no file names says that it is not built, or what shows it."""
    unknown = {str(path): sorted(named - LISTED.keys()) for path, named in codes_by_file().items()}
    assert {path: names for path, names in unknown.items() if names} == {}
    named = set().union(*codes_by_file().values())
    silent = {code for code, row in ROWS if code not in named and not re.search(r"\*\*(Not built|Elsewhere)\*\*", row)}
    assert silent == set()


def test_every_row_is_shown() -> None:
    """Each code has one row, with a test that is there or with the reason why there is none."""
    assert [code for code, count in Counter(code for code, _ in ROWS).items() if count > 1] == []
    assert [code for code, row in ROWS if "`tests/" not in row and not re.search(r"\*\*[A-Z][a-z ]+\*\*", row)] == []
    assert [name for name in TESTS if not is_defined(*name.partition("::")[::2])] == []


def is_defined(path: str, function: str) -> bool:
    """Whether there is such a file, and in it the function, where one is named."""
    file = ROOT / path
    return file.is_file() and (not function or f"\ndef {function}(" in file.read_text(encoding="utf-8"))
