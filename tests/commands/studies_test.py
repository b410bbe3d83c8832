"""Commands for studies and graded groups, as a script meets them."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.tasks.impscore import pairs, train
from pipeline.tasks.studies import validation
from tests.commands.conftest import Run
from tests.support.rows.filled import filled
from tests.support.servers.llm_server import Server

DAY = sample.DAY
SENTENCES = [("nice hat", "implicit"), ("what an awful day", "explicit"), ("close the door", "neither")]
LEVELS = ["Please close the door.", "The door is open now.", "It is rather cold here.", "I should find my coat.",
          "Was it always so cold?"]  # fmt: skip


def write(prompt: str, _: int) -> str:
    """Write a graded group of an intent, call what is awful problematic, and say nothing about nothing."""
    if prompt == "nothing" or "awful" in prompt:
        return "nothing" if prompt == "nothing" else "yes"
    return json.dumps({"sentences": [f"{text} {prompt}" for text in LEVELS]})


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A loopback service, which the settings name."""
    with Server(write=write) as running:
        monkeypatch.setenv("UNDERTONE_LLM_URL", running.url)
        yield running


@pytest.fixture
def source(tables: Path, tmp_path: Path) -> str:
    """Three sentences of one's own in the table: the source's name."""
    path = tmp_path / "own.csv"
    pl.DataFrame(SENTENCES, schema=["text", "label"], orient="row").write_csv(path)
    pairs.import_sentences("mine", str(path), DAY, is_own=True)
    return "mine"


@pytest.fixture
def with_pairs(tables: Path) -> Path:
    """A home with the sample's English pairs."""
    pairs.replay_cassette()
    pairs.build("sample_en", DAY)
    return tables


@pytest.fixture
def few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the shipped groups six are drawn: the page is about the command, not about them."""
    groups = train.read_shipped_groups("en").head(30).with_columns(split=pl.lit("test"))
    monkeypatch.setattr(train, "read_shipped_groups", lambda _: groups)


def test_ablation(run: Run, with_pairs: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`study ablation` trains the twelve designs and says the mean of each accuracy, best first."""
    rows = run("study", "ablation", "--day", DAY, "--runs", 1, "--epochs", 1, "--json").check().rows
    assert len(rows) == 24
    assert len({row["setting"] for row in rows}) == 12
    assert all(0 <= row["mean"] <= 1 and (row["sd"], row["runs"]) == (None, 1) for row in rows)
    means = [row["mean"] for row in rows if row["metric"] == "implicitness_accuracy"]
    assert means == sorted(means, reverse=True)
    assert warehouse.scan("studies").collect().height == 24


def test_sensitivity(run: Run, with_pairs: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`study sensitivity` trains the grid, here of one margin each; runs of a setting are put together."""
    grid = {"gamma_implicitness": (0.5, 1.0), "gamma_pragmatics": (0.7,), "alpha": (1.0,)}
    monkeypatch.setattr("pipeline.tasks.studies.rows.GRID", grid)
    rows = run("study", "sensitivity", "--day", DAY, "--runs", 2, "--epochs", 2, "--json").check().rows
    assert [row["runs"] for row in rows] == [2] * 4
    assert {json.loads(row["setting"])["gamma_implicitness"] for row in rows} == {0.5, 1.0}
    shown = run("study", "sensitivity", "--day", DAY, "--runs", 2, "--epochs", 2)
    assert shown.out.split()[:5] == ["setting", "metric", "mean", "sd", "runs"]
    assert warehouse.scan("studies").collect().height == 8


def test_data_sets(run: Run, source: str, model_dir: Path) -> None:
    """`study data-sets` says the means of every source, of its implicit part, and of the distances within."""
    *rows, notes = run("study", "data-sets", "--day", DAY, "--model", model_dir, "--json").check().rows
    assert f"{source}: 3 sentences have 3 pairs, fewer than the paper's 2,000; diversity" in notes["ignored"][0]
    assert {(row["study"], row["subset"], row["row_count"]) for row in rows} == {
        ("data_sets", source, 3), ("data_sets", f"{source}:implicit", 1), ("diversity", source, 3),
    }  # fmt: skip
    more = ("--source", source, "--source", source, "--seed", 1, "--json")
    assert run("study", "data-sets", "--day", DAY, "--model", model_dir, *more).rows == [*rows, notes]


def test_what_data_sets_leave_out(run: Run, tables: Path, model_dir: Path) -> None:
    """Repeated texts, and of the paper's data sets those that are not problematic, are counted."""
    texts = [*SENTENCES, SENTENCES[0], ("so it is", "implicit")]
    for source in ("mine", "sbic"):
        rows = [{"source": source, "item_id": str(n), "text": row[0], "label": row[1]} for n, row in enumerate(texts)]
        warehouse.overwrite("sentences", warehouse.make_slice(source=source), filled("sentences", *rows))
    run("study", "data-sets", "--day", DAY, "--model", model_dir).check(
        0,
        "study: left out 2 as repeated_text: the data set has the text several times",
        "study: left out 1 as not_problematic",
    )


@pytest.mark.parametrize("name", ["small-model", "moderation:mod-1"])
def test_detection(run: Run, source: str, writer: Server, model_dir: Path, name: str) -> None:
    """`study detection` asks about the problematic sentences, says the accuracy by bin, and does not ask twice."""
    words = ("study", "detection", "--llm", name, "--source", source, "--day", DAY, "--model", model_dir, "--json")
    *rows, left_out = run(*words).check().rows
    assert [(row["reason"], row["row_count"]) for row in left_out["dropped"]] == [("not_problematic", 1)]
    assert len(rows) == 8
    assert sum(row["other_answers"] for row in rows) == (0 if name.startswith("moderation:") else 1)
    assert {json.loads(row["setting"])["by"] for row in rows} == {name}
    assert sum(row["row_count"] for row in rows) == writer.sent.total() == 2
    assert sum(row["accuracy"] * row["row_count"] for row in rows if row["row_count"]) == pytest.approx(1, abs=1e-5)
    assert run(*words, "--cache-only").rows == [*rows, left_out]
    assert writer.sent.total() == 2


def test_page(run: Run, source: str, model_dir: Path, few_groups: None) -> None:
    """`study page` prints the path of the page, which shows the day's studies of the model."""
    words = ("--day", DAY, "--model", model_dir)
    assert run("study", "data-sets", *words).code == 0
    result = run("study", "page", *words).check()
    path = Path(result.out.strip())
    assert path.name == f"studies-{DAY}.html"
    assert ">Implicitness of data sets (model " in path.read_text(encoding="utf-8")


def test_groups_are_asked_for(run: Run, home: Path, writer: Server, tmp_path: Path) -> None:
    """`groups ask` writes a line a group for each intent, equal ones once, says what gave none, and checks them."""
    intents, out = tmp_path / "intents.txt", tmp_path / "groups.jsonl"
    intents.write_text("open the window\n\nnothing\n  go home \nopen the window\n", encoding="utf-8")
    result = run("groups", "ask", intents, "--out", out, "--llm", "small-model").check()
    written = pl.read_ndjson(out).to_dicts()
    assert [(row["group"], row["intent"]) for row in written] == [("g1", "open the window"), ("g2", "go home")]
    assert written[1]["sentences"] == [f"{text} go home" for text in LEVELS]
    assert ".jsonl: 2\n" in result.err
    assert "no group of 1 intent: malformed" in result.err
    assert "tau of length and level" in result.out
    assert writer.sent == {"open the window": 1, "nothing": 2, "go home": 1}  # what gave none is asked once more
    second = tmp_path / "again.jsonl"
    assert run("groups", "ask", intents, "-o", second, "--llm", "small-model", "--cache-only").code == 0
    assert second.read_bytes() == out.read_bytes()
    assert writer.sent.total() == 4


def test_groups_whose_length_tells(run: Run, tmp_path: Path) -> None:
    """Groups that grow longer with their level exit with 1, and the fault is named with its numbers."""
    path = tmp_path / "groups.jsonl"
    rows = [{"group": f"g{n}", "sentences": [f"case {n}" + " and so on" * k for k in range(5)]} for n in range(60)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run("groups", "check", path).check(1, "not balanced: tau of length and level is 1.000")
    run("groups", "check", tmp_path / "nowhere.jsonl").check(2, "nowhere.jsonl")


def test_validate(run: Run, tables: Path, few_groups: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, what is not at hand, and a csv in which the rows of others stay; --texts writes all texts."""
    monkeypatch.setattr(validation, "read_shipped_groups", train.read_shipped_groups)
    monkeypatch.setattr(sample, "OBVIOUS", {"en": tmp_path / "none.jsonl"})
    labelled, out, texts = (tmp_path / name for name in ("mine.csv", "benchmark.csv", "texts.csv"))
    labelled.write_text("tweet,ironic\n" + "".join(f"what a day {n},{n % 2}\n" for n in range(4)))
    words = ["validate", "--labelled", labelled, "-c", "tweet", "ironic"]
    assert run(*words, "--texts", texts).code == 0
    assert pl.read_csv(texts)["text"].to_list()[-4:] == [f"what a day {n}" for n in range(4)]
    run(*words, "--out", out).check(0, "not at hand: obvious_en; install Undertone again")
    rows = pl.read_csv(out)
    assert {*rows["set"]} == {"groups_en", "mine"}
    others = rows.with_columns(by=pl.lit("theirs"), value=0.9).head(1)
    pl.concat([rows, others]).write_csv(out)
    facts = run(*words, "--out", out, "--json").json
    kinds = ["pairs of the tables", "graded groups of yours", "pairs of yours", "judged values"]
    assert list(facts["missing"]) == ["obvious_en", *kinds]
    assert len(facts["rows"]) == rows.height
    assert pl.read_csv(out).sort("set", "by").equals(pl.concat([rows, others]).sort("set", "by"))
    out.write_text("set,value\nmine,1\n")
    assert "expected the column 'lang', 'by', 'metric'" in run(*words, "--out", out).err


@pytest.mark.usefixtures("source", "tiny_encoder", "few_groups")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("ablation", 4, "the table pairs is empty; `undertone pairs build`"),
        ("data-sets --source nobody", 4, "no sentences of nobody; `undertone pairs import nobody PATH`"),
        ("detection --llm m --source mine", 4, "UNDERTONE_LLM_URL"),
        ("page", 4, "nothing to show yet; `undertone study data-sets`"),
    ],
)
def test_studies_of_nothing(run: Run, words: str, code: int, message: str) -> None:
    """Without pairs, sentences, a service or studies the message names what to do; nothing is published."""
    assert run("study", *words.split(), "--day", DAY).check(code, message).out == ""
    assert warehouse.scan("studies").collect().height == 0
