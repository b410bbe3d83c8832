"""What is made of the sample shows no implicitness without its percentile, and says where the model is weak."""

import re
from pathlib import Path

import pytest

from pipeline import logs, sample, warehouse
from pipeline.commands.operate import demo
from pipeline.tasks.daily import collect, report, score
from pipeline.tasks.impscore import pairs
from pipeline.tasks.studies import rows
from tests.commands.conftest import Run
from tests.support.pages import texts
from tests.warehouse.query_test import VIEWS

DAY = sample.DAY
WEAK = "the model is weak here (Kendall's tau on graded groups"
SCORE = r"\b[01]\.\d{3,6}\b"


@pytest.fixture
def home_of_all(tables: Path, tmp_path: Path) -> Path:
    """The sample, scored and judged, its English pairs, and two files of texts."""
    collect.import_files(collect.list_files("sample", None, DAY).files, None, DAY, origin="sample")
    score.run(DAY)
    for source in pairs.replay_cassette()[:1]:
        pairs.build(source, DAY)
    (tmp_path / "lines.txt").write_text("Close the door, please.\nSome of us get up at five.\n", encoding="utf-8")
    lines = [f"The door is open {n} times.,implicit" for n in range(6)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    return tmp_path


def list_bare(html: str) -> list[str]:
    """Rows with a score in tables of implicitness, whose row or head has no percentile."""
    bare = []
    for table in re.findall("<table>.*?</table>", html, re.DOTALL):
        head, *rows = map(texts, table.split("<tr>")[1:])
        if re.search("implicitness(?! accuracy)|sentences", head) or "I of " in table:
            shown = [row for row in rows if re.search(SCORE, row) and not row.startswith("ΔP")]
            bare += [row for row in shown if "percentile" not in head and "(P " not in row]
    return bare


@pytest.mark.nightly
def test_no_score_is_shown_without_its_percentile(
    home_of_all: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of views, commands, the demo and pages, each that has a score has percentiles and names the weak model."""
    monkeypatch.setattr(rows.studies, "lay_out", lambda vectors: vectors[:, :2])  # takes minutes, and shows no score
    logs.show_answers()
    demo._show({"url": "http://localhost", "pid": 1})  # judges the comments too
    shown = capsys.readouterr()
    for title in ("Most", "Least"):
        head = shown.out.split(f"{title} implicit, as undertone-reader judged (0 to 4)")[1].split("\n")[1].split()
        assert head[:4] == ["judged", "percentile", "implicitness", "band"]
    assert WEAK in caplog.text
    grades = [frame["judged"].to_list() for frame in report.select_judged(DAY, demo.READER)[:2]]
    assert grades == [[3.0] * 10, [0.0] * 10]
    lines = home_of_all / "lines.txt"
    assert run("pairs", "import", "forum", home_of_all / "own.csv", "--own", "--day", DAY).code == 0
    for words in (
        ("score", "implicitness", lines),
        ("score", "implicitness", lines, "--explain"),
        ("study", "data-sets", "--source", "forum", "--day", DAY),
        ("calibrate", "scorer", "judge", "--day", DAY),
        ("query", "select * from most_implicit"),
        ("query", "select * from implicitness_by_source_day"),
        ("query", "select percentile, value from comments_scored join scores using (comment_id) limit 3", "--json"),
    ):  # fmt: skip
        caplog.clear()
        assert "percentile" in run(*words).out
        assert WEAK in caplog.text, words
    caplog.clear()
    run("query", "select comment_id from scores limit 3")
    assert WEAK not in caplog.text
    run("score", "implicitness", lines, "-o", home_of_all / "scored.txt")
    assert all(
        re.fullmatch(r"[01]\.\d+\t\d+\.\d", line) for line in (home_of_all / "scored.txt").read_text().split("\n")[:2]
    )
    for view in VIEWS:
        columns = warehouse.query(f"select * from {view} limit 0").columns
        if any(name.startswith("implicitness") for name in columns):
            assert {"weakness"} < {name for name in columns if name.startswith(("percentile", "weakness"))}
    for words in (("report", "--day", DAY), ("study", "page", "--day", DAY)):
        html = Path(run(*words).out.strip()).read_text(encoding="utf-8")
        assert "The model is weak here" in html
        assert len(re.findall(r"<th[^>]*>[^<]*percentile", html) + re.findall(r"\(P \d", html)) > 2
        assert list_bare(html) == []
    assert list_bare("<table><tr><th>implicitness</th></tr><tr><td>0.869</td></tr></table>") == ["0.869"]
