"""The commands about cloze questions, run as scripts run them."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.examples.recam import items as cloze
from pipeline.tasks.recam import abstractness, options, targets
from tests.commands.conftest import Run, write_file

NUMBERS = ("hidden=4", "longest=20", "longest_gloss=5", "epochs=1", "vocabulary=0")
SMALL = [word for number in NUMBERS for word in ("--set", number)]


@pytest.fixture
def abstract(monkeypatch: pytest.MonkeyPatch, wordnet: None, tiny_encoder: Path) -> None:
    """Long words are abstract: no scorer is trained. The tiny encoder's vectors are random, so nothing is similar."""
    monkeypatch.setattr(abstractness, "train", lambda *_: "0" * 64)
    monkeypatch.setattr(options, "READERS", ("gated",))  # a third of the trainings
    monkeypatch.setattr(targets, "_score_concreteness", lambda words, _: {word: 1.4 / len(word) for word in words})
    monkeypatch.setattr(targets, "parse_rules", lambda _: targets.RULES._replace(similar=0.9999, in_context=False))


def write_articles(path: Path) -> Path:
    """The first of the sample's articles with summaries."""
    lines = sample.SUMMARIES.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:14]), encoding="utf-8")
    return path


def run_well(run: Run, *words: object) -> str:
    """Run a command that succeeds; what it prints."""
    result = run(*words).check()
    return result.out


@pytest.mark.nightly
@pytest.mark.usefixtures("abstract")
def test_items_of_the_tables(run: Run, tmp_path: Path) -> None:
    """Imported articles become items, which raters judge, readers learn, and the official format carries."""
    run_well(run, "import", write_articles(tmp_path / "news.jsonl"), "--day", sample.DAY)
    run_well(run, "cloze", "build", "--rule", "paper", "--day", sample.DAY, *SMALL)
    stats = run("cloze", "stats", "--json").json
    assert sum(row["item_count"] for row in stats["items"]) == warehouse.scan("cloze_items").collect().height > 20
    target_count = sum(row["row_count"] for row in stats["funnel"] if row["reason"] == "target")
    assert target_count == warehouse.scan("cloze_targets", pl.col("reason").is_null()).collect().height
    result = run("cloze", "page", "--day", sample.DAY).check(
        0, "no accuracy of a reader of nonspecificity: no reader of"
    )
    assert "Baselines without the passage" in Path(result.out.strip()).read_text(encoding="utf-8")
    run_well(run, "train", "reader", "--promote", "--day", sample.DAY, *SMALL)
    numbers = json.loads(run_well(run, "evaluate", "reader", "--subtask", "nonspecificity", "--json"))["numbers"]
    assert {row["metric"] for row in numbers} == {"accuracy", "accuracy_low", "accuracy_high"}
    page = Path(run_well(run, "cloze", "page", "--day", sample.DAY).strip())
    assert "<svg" in page.read_text(encoding="utf-8")
    out, sheets = tmp_path / "test.jsonl", tmp_path / "sheets"
    run_well(run, "cloze", "export", "imperceptibility", "--split", "test", "-o", out)
    assert json.loads(run("cloze", "stats", out, "--json").out.splitlines()[0])["what"] == "items"
    rows = run("cloze", "stats", out, out, "--json").rows
    assert [(row["file"], row["commonest_place"]) for row in rows] == [(str(out), rows[0]["commonest_place"])] * 2
    run_well(run, "cloze", "rate", "imperceptibility", "--limit", "5", "--rater", "anna", "-o", sheets)
    assert {path.name for path in sheets.iterdir()} == {"anna.xlsx", "guidelines.md", "hiring.md", "tasks.jsonl"}
    result = run("cloze", "ratings", "imperceptibility", "--tool", "simulated", "--json")
    assert "simulated" in result.err
    assert result.json["items"] == 5


@pytest.mark.usefixtures("abstract")
def test_items_of_a_file_to_a_reader(run: Run, tmp_path: Path) -> None:
    """A file becomes items without tables; a reader of some is tested on others, and beside another reader.

    Each target is in an item or has a reason; the card says how items were made; the folder is not written again.
    """
    out, splits = tmp_path / "items", tmp_path / "splits.json"
    articles = write_articles(tmp_path / "a.jsonl")
    names = [json.loads(line)["id"] for line in articles.read_text(encoding="utf-8").splitlines()]
    splits.write_text(json.dumps({"train": names[:8], "test": names[8:]}), encoding="utf-8")  # as XSum's own file
    build = ("cloze", "build", articles, "-o", out, "--subtask", "imperceptibility", "--splits", splits, *SMALL)
    run_well(run, *build)
    train, test = paths = [out / f"imperceptibility_{split}.jsonl" for split in ("train", "test")]
    card = json.loads((out / "card.json").read_text(encoding="utf-8"))
    assert [report["reader"] for report in card["readers"]["imperceptibility"]] == ["gated"]
    assert card["deepest_level"] == {"noun": 19, "verb": 12}  # as nltk's max_depth of WordNet 3.0
    assert (card["wordnet"], card["splits"], "@" in card["encoder"]) == ("3.0", "splits.json", True)
    tokens = pl.read_parquet(out / "targets.parquet").filter(pl.col("reason").is_null(), subtask="imperceptibility")
    dropped = pl.read_csv(out / "dropped.csv").filter(reason="too_few_choices")
    assert sum(cloze.read(path).rows.height for path in paths) + dropped.height == tokens.height
    run(*build).check(2, "is there already")
    for profile in ("gated", "attentive"):
        options = ("-o", tmp_path / profile, "--profile", profile, *SMALL)
        run_well(run, "train", "reader", "--items", train, "--without", test, *options)
    command = ("evaluate", "reader", "-m", tmp_path / "gated", "--items", test)
    compared = json.loads(run_well(run, *command, "--against", tmp_path / "attentive", "--json"))["compared"]
    assert compared["low"] <= compared["difference"] <= compared["high"]
    ranks = run_well(run, *command, "--submissions")
    assert "PINGAN-Omini-Sinitic" in ranks
    assert "\nAmong the submissions on the paper's test items of imperceptibility, which are not public\n" in ranks
    for name, words in (
        ("Task_2_dev.jsonl", "items of nonspecificity"),
        ("dev.jsonl", "--submissions needs --subtask"),
    ):
        file = shutil.copy(test, tmp_path / name)
        result = run("evaluate", "reader", "-m", tmp_path / "gated", "--items", file, "--submissions")
        assert words in result.out + result.err


def test_a_pretrained_reader_of_an_adapted_encoder(run: Run, tiny_encoder: Path, tmp_path: Path) -> None:
    """An encoder adapted to texts is what a reader is trained from; the reader works without it."""
    texts, adapted, out, items = (tmp_path / name for name in ("texts.txt", "adapted", "reader", "items.jsonl"))
    options = ["cold", "nice", "open", "late", "early"]
    texts.write_text("".join(f"the door is {word} today\n" for word in options[:4]), encoding="utf-8")
    command = ("train", "masked-lm", texts, "-o", adapted)
    facts = json.loads(run_well(run, *command, "--set", "epochs=1", "--set", "longest=16", "--json"))
    assert len(facts["rows"]) == 1
    assert run(*command).code == 2
    fields = {f"option_{i}": word for i, word in enumerate(options)}
    rows = ({"article": f"it is number {n}", "question": "the door is @placeholder", "label": n % 5} for n in range(8))
    items.write_text("".join(json.dumps(row | fields) + "\n" for row in rows), encoding="utf-8")
    small = [x for number in ("epochs=1", "window=16", "stride=8", "longest_question=8") for x in ("--set", number)]
    run_well(run, "train", "reader", "--items", items, "-o", out, "--profile", "masked", "--from", adapted, *small)
    shutil.rmtree(adapted)
    facts = json.loads(run_well(run, "evaluate", "reader", "-m", out, "--items", items, "--json"))
    assert facts["numbers"][0]["pair_count"] == 8


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("cloze", "build", "a.jsonl"), 2, "go together"),
        (("cloze", "build", "--subtask", "abstract"), 2, "no subtask 'abstract'"),
        (("cloze", "build", "--rule", "best"), 2, "no rule 'best'"),
        (("train", "reader", "--items", "a.jsonl"), 2, "--items needs --out"),
        (("train", "reader", "--out", "m"), 2, "give items by --items"),
        (("cloze", "stats"), 4, "the tables hold no cloze items; make some: `undertone cloze build`"),
        (("cloze", "page"), 4, "the tables hold no cloze items; make some: `undertone cloze build`"),
        (("cloze", "rate", "imperceptibility"), 4, "nothing of imperceptibility to rate; make some: `undertone cl"),
        (("evaluate", "reader"), 4, "no reader of imperceptibility is in force"),
        (("cloze", "ratings", "imperceptibility", "none.csv"), 4, "no items of imperceptibility were given to raters"),
    ],
)
def test_what_is_refused(run: Run, tables: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """Options that do not go together, unknown names and what is not there yet are each one line."""
    run(*words).check(code, message)


def test_audit(run: Run, tmp_path: Path) -> None:
    """A row a baseline; items with the same option twice are dropped with a message, refused if no other is left."""
    item = {"article": "It rained.", "question": "They lost @placeholder.", "label": 1}
    rows = ["peace hope joy rain dust", "grief hope time luck idea", "a b c d A"]
    entries = (item | {f"option_{i}": word for i, word in enumerate(row.split())} for row in rows)
    path = write_file(tmp_path / "items.jsonl", "\n".join(map(json.dumps, entries)) + "\n")
    result = run("cloze", "audit", path, "--json").check(0, "read: left out 1 as same_options")
    *lines, facts = map(json.loads, result.out.splitlines())
    assert facts["dropped"][0]["reason"] == "same_options"
    baselines = {row["baseline"]: row for row in lines}
    assert baselines["often_right"]["accuracy"] == 1.0  # hope is right in the other item
    assert baselines["often_right"]["n"] == 2
    run("cloze", "stats", path).check(0, "read: left out 1 as same_options")
    path.write_text(path.read_text(encoding="utf-8").splitlines()[-1], encoding="utf-8")
    run("cloze", "audit", path).check(2, "no item is left")
