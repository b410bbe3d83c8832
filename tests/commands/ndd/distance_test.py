"""The commands about semantic distance and compression, run as scripts run them."""

import csv
import json
from pathlib import Path

import pytest

import pipeline
from pipeline import sample, warehouse
from tests.commands.conftest import Run, write_file
from tests.support.rows.filled import filled

DAY = sample.DAY
ONE, OTHER = "The old shop is shut.", "The old shop is open."
TEXT = "The old shop, which nobody liked, is shut. It was cold."


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Four English and two Chinese sentences with compressions."""
    lines = sample.COMPRESSIONS.read_text(encoding="utf-8").splitlines()
    return write_file(tmp_path / "few.jsonl", "\n".join([*lines[:4], *lines[-2:]]) + "\n")


def test_distance_of_two_sentences(run: Run) -> None:
    """0 for the same sentence; by counts it is said that they are no result; the words' shares make it up."""
    same = run("ndd", "distance", ONE, ONE, "--json").check()
    numbers = same.json
    assert (numbers["ndd"], numbers["delta_perplexity"], numbers["rows"]) == (0, 0, [])
    assert numbers["signature"].startswith("count:")
    assert "the mechanics, no result; --model takes a real masked language model" in same.err
    numbers = run("ndd", "distance", ONE, OTHER, "--json").json
    assert 0 < numbers["ndd"] <= 1
    assert "cosine" not in numbers
    text = run("ndd", "distance", ONE, OTHER)
    assert f"ndd  {numbers['ndd']:.4f}" in text.out
    assert f"signature  {numbers['signature']}" in text.out
    assert "these counts do not know" not in text.err
    unknown = run("ndd", "distance", "the xyzzy is shut", "the shop is shut")
    assert "these counts do not know xyzzy: as good as any other such word" in unknown.err
    assert run("ndd", "distance", "我很冷", "我很热", "--json").json["signature"] != numbers["signature"]
    numbers = run("ndd", "distance", ONE, OTHER, "--explain", "--json").json
    assert [row["word"] for row in numbers["rows"]] == ["The", "old", "shop", "is", "."]
    assert sum(row["share"] for row in numbers["rows"]) == pytest.approx(numbers["ndd"])
    table = run("ndd", "distance", ONE, OTHER, "--explain", "--divergence", "kl", "--weights", "distance").check()
    assert all(name in table.out for name in ("divergence", "weight", "share", "shop", "delta_perplexity"))
    hostile = run("ndd", "[MASK] [red]=1+1[/red]", "[MASK] \u202e{0}", "--explain").check()
    assert "MASK" in hostile.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--divergence", "l2"), "no divergence 'l2'; there are hellinger, kl, kl_reversed"),
        (("--weights", "all"), "no weights 'all'; there are mean, sum, distance"),
        (("--lang", "fr"), "no language 'fr'; there are en, zh"),
        (("--model", "no-such"), "'no-such' is not a folder, and a hub name needs a pinned revision"),
    ],
)
def test_distances_that_cannot_be(run: Run, words: tuple[str, ...], message: str) -> None:
    """What was found is named, and what was expected."""
    result = run("ndd", "distance", ONE, OTHER, *words)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    run("ndd", "distance", ONE, " ").check(2, "expected two sentences with a word each")


def test_a_transformer_has_a_cosine(run: Run, bert: Path) -> None:
    """With a real model it stands beside the distance, no warning does, and systems of states can compress."""
    result = run("ndd", "distance", ONE, OTHER, "--model", bert, "--json").check()
    numbers = result.json
    assert [*numbers] == ["ndd", "delta_perplexity", "cosine", "signature", "rows"]
    assert 0 < numbers["ndd"] <= 1
    assert -1 <= numbers["cosine"] < 1
    assert numbers["signature"].startswith(f"hf:{bert.name}@")
    assert "the mechanics" not in result.err
    for system in ("cosine", "bertscore"):
        row = run("ndd", "compress", ONE, "--system", system, "--ratio", "0.5", "-m", bert, "--json").json
        assert row["ratio"] == 0.5
        assert row["signature"].startswith(f"compression:{system}|hf:")
    assert run("ndd", "compress", ONE, "--system", "cosine").code == 2


def test_a_text_is_compressed(run: Run) -> None:
    """To the share that was asked for; with --rounds a row a round, the last of them the compression."""
    plain = run("ndd", "compress", TEXT, "--ratio", "0.5").check()
    assert 0 < len(plain.out.split()) < len(TEXT.split())
    row = run("ndd", "compress", TEXT, "--ratio", "0.5", "--rounds", "--json").json
    assert row["compressed"] == row["after"][-1] == plain.out.strip()
    assert row["ratio"] == pytest.approx(0.5, abs=0.05)
    assert row["text"] == TEXT
    words = [place for span in row["dropped"] for place in span["places"]]
    assert len(words) == len(set(words)) == round(15 * (1 - row["ratio"]))
    first = row["dropped"][0]
    assert (first["round"], first["words"], first["places"]) == (1, ", which nobody liked", [3, 4, 5, 6])
    table = run("ndd", "compress", TEXT, "--ratio", "0.5", "--rounds").out
    assert "round" in table
    assert f"{first['cost']:.3f}" in table
    assert table.rstrip().endswith(plain.out.strip())
    assert run("ndd", "compress", "a\u0000b" * 400).code == 0  # no name of a file
    options = ("--threshold", "9", "--max-span", "1", "--max-rounds", "1")
    row = run("ndd", "compress", TEXT, *options, "--json").json
    assert len(row["after"]) == 1
    assert "longest:1|threshold:9|rounds:1" in row["signature"]
    options = ("--divergence", "hellinger", "--weights", "printed", "--ratio", "0.5")
    other = run("ndd", "compress", TEXT, *options, "--json").json
    assert "|divergence:hellinger|weights:printed|" in other["signature"]
    released = run("ndd", "compress", TEXT, "--ratio", "0.5", "--spans", "released", "--json").json
    assert "|spans:released|" in released["signature"]
    assert pipeline.compress([TEXT], 0.5, spans="released") == [released["compressed"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((" ",), "expected a text with a word"),
        ((TEXT, "--ratio", "2"), "ratio should be above 0 and at most 1, not 2.0"),
        ((TEXT, "--nu", "0"), "mu and nu should be above 0 and at most 1"),
        ((TEXT, "--out", "short.csv"), "expected a text, or a file of texts"),
        ((TEXT, "-c", "body"), "expected a text, or a file of texts"),
        ((TEXT, "--max-span", "0"), "max-span"),
        ((TEXT, "--divergence", "js"), "expected a divergence of hellinger, kl, kl_reversed"),
        ((TEXT, "--weights", "mean"), "weights of balanced, exponential, printed, released; found 'kl' and 'mean'"),
        ((TEXT, "--nu", "0.5", "--system", "ppl_deleter"), "--weights and --nu are of ndd and fast_ndd"),
        ((TEXT, "--syntax", sample.TREES), "trees.conllu: no tree of the words 'The old shop ,"),
    ],
)
def test_texts_that_cannot_be_compressed(run: Run, words: tuple[str, ...], message: str) -> None:
    """Exit code 2, a message that names what was expected, and nothing on standard output."""
    result = run("ndd", "compress", *words)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_with_trees_subtrees_go(run: Run) -> None:
    """A file of trees is enough to drop subtrees alone."""
    text = "The council voted on Tuesday to close the old library on Fenn Street, which opened in 1931."
    row = run("ndd", "compress", text, "--syntax", sample.TREES, "--ratio", "0.6", "--json").json
    assert row["signature"].startswith("compression:ndd_sc|")
    assert "voted" in row["compressed"]  # the root


def test_a_file_is_compressed(run: Run, tmp_path: Path) -> None:
    """Columns stay and new ones come; a cell that a spreadsheet would run is made plain, on standard output too."""
    path, out = tmp_path / "articles.csv", tmp_path / "short.csv"
    lines = ["id,body", f'1,"{TEXT}"', "2,=1+1 is two today", "3,", "4,我很冷。你呢？"]
    path.write_text("\n".join(lines), encoding="utf-8")
    result = run("ndd", "compress", path, "-c", "body", "--ratio", "0.99", "-o", out)
    assert result.check(0, f"wrote {out}", "compress: left out 1 as no_text").out == ""
    with out.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [*rows[0]] == ["id", "body", "compressed", "ratio", "signature"]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[1]["compressed"] == "'=1+1 is two today"
    assert (rows[2]["compressed"], rows[2]["ratio"]) == ("", "")
    assert rows[3]["compressed"] == "我很冷。你呢？"
    plain = run("ndd", "compress", path, "-c", "body", "--ratio", "0.99")
    assert [*csv.DictReader(plain.out.splitlines())] == rows
    json_lines = run("ndd", "compress", path, "-c", "body", "--rounds", "--json").out.splitlines()
    first, second, third, *_ = map(json.loads, json_lines)
    assert second["body"] == "=1+1 is two today"
    assert first["after"][-1] == first["compressed"]
    assert third["compressed"] is third["after"] is None
    csv_text = run("ndd", "compress", path, "-c", "body", "--rounds").out
    assert " | ".join(first["after"]) in csv_text
    run("ndd", "compress", path, "-c", "title").check(2, "no column 'title'; there are id, body")
    assert run("ndd", "compress", path, "-c", "body", "-o", tmp_path / "short.pdf").code == 2


def test_comments_of_a_file_in_their_contexts(run: Run, tmp_path: Path) -> None:
    """0 without a context; a file without the column, or a file and a day, are refused."""
    path, out = tmp_path / "comments.csv", tmp_path / "scored.jsonl"
    path.write_text("text,context\nYou are on time.,The bus was late.\nYou are on time.,\n,\n", encoding="utf-8")
    run("score", "context-shift", path, "-o", out).check(0, "score: left out 1 as no_text")
    first, second, _ = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert 0 < first["context_shift"] <= 1
    assert second["context_shift"] == 0
    assert "context_shift|count:" in run("score", "context-shift", path).out
    other = run("score", "context-shift", path, "--divergence", "kl", "--weights", "distance", "--json").out
    other_first = json.loads(other.splitlines()[0])
    assert "|divergence:kl|weights:distance|" in other_first["signature"]
    assert other_first["context_shift"] != first["context_shift"]
    assert run("score", "context-shift", path, "--weights", "balanced").code == 2
    path.write_text("text,title\na b,c\n", encoding="utf-8")
    run("score", "context-shift", path).check(
        2, "no column 'context'; there are text, title; name it with --context-column"
    )
    path.write_text("text,context,context_shift,ratio\na b,c,7,8\n", encoding="utf-8")
    for command, column in ((("score", "context-shift"), "context_shift"), (("ndd", "compress"), "ratio")):
        run(*command, path).check(2, f"column '{column}': the scores have a column of this name")
    run("score", "context-shift", path, "--day", DAY).check(2, "give a file or --day, not both")


@pytest.mark.usefixtures("tables")
def test_comments_of_a_day_and_counts_of_them(run: Run, tmp_path: Path) -> None:
    """Counts of the tables are in force for the day's scores; those of a file are a folder of their own."""
    fields = {"lang": "en", "context": "So"}
    rows = [{**fields, "comment_id": str(number), "text": f"The bus {number} is late."} for number in range(40)]
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), filled("comments", *rows))
    lines = run("train", "count-lm", "--day", DAY, "--json").out.splitlines()
    english, chinese = (json.loads(line)["model_id"] for line in lines)
    assert len(english) == 64
    assert chinese is None
    assert run("train", "count-lm", "--day", DAY, "--lang", "en", "--json").json["model_id"] == english
    assert run("train", "count-lm", "--day", DAY, "--lang", "zh").code == 4
    scored = run("score", "context-shift", "--day", DAY)
    assert f"40 scores for {DAY}" in scored.err
    assert set(warehouse.scan("scores").collect()["model_id"]) == {english}
    assert "the mechanics, no result" in run("ndd", "distance", ONE, OTHER).err
    path = write_file(tmp_path / "texts.txt", f"{ONE}\n{OTHER}\n")
    result = run("train", "count-lm", path, "-o", tmp_path / "counts", "--json")
    assert result.json == {"sentences": 2, "words": 12, "vocabulary": 7}
    assert "signature  count:" in run("ndd", "distance", ONE, OTHER, "-m", tmp_path / "counts").out
    run("train", "count-lm", path).check(2, "a file and --out go together")
    assert run("train", "count-lm", "--lang", "fr").code == 2


@pytest.mark.usefixtures("wordnet")
def test_from_a_data_set_to_the_page(run: Run, few: Path) -> None:
    """Compress and measure, test the distance, and a page: one command each; another system is put beside."""
    assert run("ndd", "page", "--day", DAY).code != 0
    data = ["--data", few, "--source", "few", "--day", DAY]
    result = run("ndd", "measure", *data, "--system", "fast_ndd", "--thresholds").check(0, "few, en")
    assert "fast_ndd" in result.out
    rows = run("ndd", "measure", *data, "--system", "ppl_deleter", "--json").rows
    assert {row["by"] for row in rows} == {"gold", "unedited", "head", "tail", "random", "fast_ndd", "ppl_deleter"}
    assert {row["lang"] for row in rows} == {"en", "zh"}
    pairs = few.with_name("pairs.csv")
    lines = ["The soup was really good.,The soup was very good.,1", "A dog walked home.,A dog ran home.,2"]
    pairs.write_text("\n".join([*lines, f"{ONE},{OTHER},3"]), encoding="utf-8")
    result = run("ndd", "test", "--pairs", pairs, "--limit", "4", "--day", DAY).check()
    assert all(study in result.err for study in ("similarity", "pruning", "predicates"))
    assert "supervised" in result.out
    page = run("ndd", "page", "--day", DAY).check()
    assert "PPL Deleter" in Path(page.out.strip()).read_text(encoding="utf-8")
    assert run("check").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "mine"), "--source names the data; give --data as well"),
        (("--data", sample.COMPRESSIONS), "--data needs a --source, the name to file its compressions under"),
        (("--system", "cosine"), "these compare the states of a transformer"),
        (("--system", "nope"), "no system 'nope'; there are ndd, ndd_sc"),
        (("--data", "none.jsonl", "--source", "s"), "none.jsonl"),
    ],
)
def test_data_that_cannot_be_compressed(run: Run, words: tuple[str, ...], message: str) -> None:
    """Refused with what was expected, before a row is written."""
    run("ndd", "measure", *words, "--day", DAY).check(2, message)
    warehouse.create()
    assert not warehouse.scan("compressions").collect().height
    warehouse.close()
