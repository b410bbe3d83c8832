"""The commands about cloze questions, run as scripts run them."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.tasks.recam import abstractness, targets
from tests.commands.conftest import Run

SMALL = [
    word for one in ("hidden=4", "longest=20", "longest_gloss=5", "epochs=1", "vocabulary=0") for word in ("--set", one)
]


@pytest.fixture
def abstract(monkeypatch: pytest.MonkeyPatch, wordnet: None, tiny_encoder: Path) -> None:
    """Long words are abstract: no scorer is trained. The tiny encoder's vectors are random, so nothing is similar."""
    monkeypatch.setattr(abstractness, "train", lambda *_: "0" * 64)
    monkeypatch.setattr(targets, "_score_concreteness", lambda words, _: {word: 1.4 / len(word) for word in words})
    monkeypatch.setattr(targets, "parse_rules", lambda _: targets.RULES._replace(similar=0.9999, in_context=False))


def articles(path: Path, count: int = 14) -> Path:
    """The first of the sample's articles with summaries."""
    path.write_text(
        "".join(sample.SUMMARIES.read_text(encoding="utf-8").splitlines(keepends=True)[:count]), encoding="utf-8"
    )
    return path


@pytest.mark.usefixtures("abstract")
def test_items_of_the_tables(run: Run, tmp_path: Path) -> None:
    """Imported articles become items, which raters judge, readers learn, and the official format carries."""
    assert run("import", articles(tmp_path / "news.jsonl"), "--day", sample.DAY).code == 0
    built = run("cloze", "build", "--rule", "paper", "--day", sample.DAY, *SMALL)
    assert built.code == 0, built.err
    told = json.loads(run("cloze", "stats", "--json").out)
    assert sum(row["item_count"] for row in told["items"]) == warehouse.scan("cloze_items").collect().height > 20
    targets = sum(row["row_count"] for row in told["funnel"] if row["reason"] == "target")
    assert targets == warehouse.scan("cloze_targets", pl.col("reason").is_null()).collect().height
    trained = run("train", "reader", "--day", sample.DAY, *SMALL)
    assert trained.code == 0, trained.err
    done = run("evaluate", "reader", "--subtask", "nonspecificity", "--json")
    assert done.code == 0, done.err
    assert {row["metric"] for row in json.loads(done.out)["numbers"]} == {"accuracy", "accuracy_low", "accuracy_high"}
    page = run("cloze", "page", "--day", sample.DAY)
    assert page.code == 0, page.err
    assert "<svg" in Path(page.out.strip()).read_text(encoding="utf-8")
    out = tmp_path / "test.jsonl"
    assert run("cloze", "export", "imperceptibility", "--split", "test", "-o", out).code == 0
    assert json.loads(run("cloze", "stats", out, "--json").out.splitlines()[0])["what"] == "items"
    sheets = tmp_path / "sheets"
    rated = run("cloze", "rate", "imperceptibility", "--limit", "5", "--rater", "anna", "-o", sheets)
    assert rated.code == 0, rated.err
    assert {path.name for path in sheets.iterdir()} == {"anna.xlsx", "guidelines.md", "hiring.md", "tasks.jsonl"}
    done = run("cloze", "ratings", "imperceptibility", "--tool", "simulated", "--json")
    assert "made up" in done.err
    assert json.loads(done.out)["items"] == 5


@pytest.mark.usefixtures("abstract")
def test_items_of_a_file_to_a_reader(run: Run, tmp_path: Path) -> None:
    """A file becomes items without tables; a reader of some is tested on others, and beside another reader."""
    out = tmp_path / "items"
    one = ("--subtask", "imperceptibility", *SMALL)
    done = run("cloze", "build", articles(tmp_path / "a.jsonl"), "-o", out, *one)
    assert done.code == 0, done.err
    learnt, asked = out / "imperceptibility_train.jsonl", out / "imperceptibility_test.jsonl"
    for profile in ("gated", "attentive"):
        how = ("--profile", profile, *SMALL)
        trained = run("train", "reader", "--items", learnt, "--without", asked, "-o", tmp_path / profile, *how)
        assert trained.code == 0, trained.err
    beside = ("--against", tmp_path / "attentive", "--json")
    done = run("evaluate", "reader", "-m", tmp_path / "gated", "--items", asked, *beside)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["compared"]["low"] <= told["compared"]["difference"] <= told["compared"]["high"]
    assert run("evaluate", "reader", "-m", tmp_path / "gated", "--items", asked).code == 0


def test_a_pretrained_reader_of_an_adapted_encoder(run: Run, tiny_encoder: Path, tmp_path: Path) -> None:
    """An encoder adapted to texts is what a reader is trained from; the reader is asked without it."""
    texts, adapted, out = tmp_path / "texts.txt", tmp_path / "adapted", tmp_path / "reader"
    texts.write_text(
        "".join(f"the door is {word} today\n" for word in ("cold", "nice", "open", "late")), encoding="utf-8"
    )
    done = run("train", "masked-lm", texts, "-o", adapted, "--set", "epochs=1", "--set", "longest=16", "--json")
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["epochs"]) == 1
    assert run("train", "masked-lm", texts, "-o", adapted).code == 2
    words = ["cold", "nice", "open", "late", "early"]
    items = tmp_path / "items.jsonl"
    rows = [
        {"article": f"it is number {n}", "question": "the door is @placeholder", "label": n % 5}
        | {f"option_{i}": word for i, word in enumerate(words)}
        for n in range(8)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    small = [x for one in ("epochs=1", "window=16", "stride=8", "longest_question=8") for x in ("--set", one)]
    done = run("train", "reader", "--items", items, "-o", out, "--profile", "masked", "--from", adapted, *small)
    assert done.code == 0, done.err
    shutil.rmtree(adapted)
    done = run("evaluate", "reader", "-m", out, "--items", items, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["numbers"][0]["pair_count"] == 8


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("cloze", "build", "a.jsonl"), 2, "go together"),
        (("cloze", "build", "--subtask", "abstract"), 2, "no subtask 'abstract'"),
        (("cloze", "build", "--rule", "best"), 2, "no rule 'best'"),
        (("train", "reader", "--items", "a.jsonl"), 2, "--items needs --out"),
        (("train", "reader", "--out", "m"), 2, "give items by --items"),
        (("evaluate", "reader"), 4, "no reader of imperceptibility is in force"),
        (("cloze", "ratings", "imperceptibility", "none.csv"), 4, "no items of imperceptibility were given to raters"),
    ],
)
def test_what_is_refused(run: Run, tables: Path, words: tuple[str, ...], code: int, said: str) -> None:
    """Options that do not go together, names that nobody knows and what is not there yet are each one line."""
    done = run(*words)
    assert (done.code, said in done.err) == (code, True), done.err


def test_audit(run: Run, tmp_path: Path) -> None:
    """A row a baseline; items with the same option twice are left out and told of; a broken file is one line."""
    item = {"article": "It rained.", "question": "They lost @placeholder.", "label": 1}
    rows = [
        ["peace", "hope", "joy", "rain", "dust"],
        ["grief", "hope", "time", "luck", "idea"],
        ["a", "b", "c", "d", "A "],
    ]
    lines = [json.dumps({**item, **{f"option_{i}": word for i, word in enumerate(row)}}) for row in rows]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run("cloze", "audit", path, "--json")
    assert done.code == 0, done.err
    assert "read: left out 1 as same_options" in done.err
    *lines, facts = map(json.loads, done.out.splitlines())
    assert facts["dropped"][0]["reason"] == "same_options"
    found = {row["baseline"]: row for row in lines}
    assert found["often_right"]["accuracy"] == 1.0  # hope is right in the other item
    assert found["often_right"]["n"] == 2
    path.write_text('{"article": "x"}\n', encoding="utf-8")
    done = run("cloze", "audit", path)
    assert (done.code, "line 1" in done.err) == (2, True)
