"""Commands that apply a model, and by which a score can be read: by the shipped model and by one of a folder."""

import csv
import io
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline import sample
from pipeline.errors import BadInput, Missing
from pipeline.io.rows import read_chunks
from pipeline.tasks.calibration import calibrate
from pipeline.tasks.impscore import references, scoring, train
from pipeline.tasks.impscore.scoring import SHIPPED
from tests.commands.conftest import Run, write_file
from tests.support.rows.row_files import write_rows

SENTENCES = [["close the door", "it is cold in here", "brr"], ["i want to go home", "it is late", "what time is it"]]


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Write two graded groups."""
    rows = [{"group": f"g{number}", "sentences": sentences} for number, sentences in enumerate(SENTENCES)]
    return write_rows(tmp_path / "groups.jsonl", *rows)


def test_rank_of_a_file(run: Run, groups: Path, model_dir: Path) -> None:
    """`rank --groups F --model DIR --json` has the model's tau and rho on top, the baselines among the rows."""
    ranking = run("groups", "rank", "--groups", groups, "--model", model_dir, "--json").check().json
    assert -1 <= ranking["kendall_tau"] <= 1
    assert -1 <= ranking["spearman_rho"] <= 1
    assert ranking["group_count"] == 2
    assert [row["by"] for row in ranking["rows"]] == ["implicitness", "longer", "length", "punctuation", "words"]
    assert ranking["rows"][0]["kendall_tau"] == ranking["kendall_tau"]
    longer = ranking["rows"][1]["kendall_tau"]
    assert longer == pytest.approx((-1 / 3 - 1 / 3) / 2, abs=1e-6)  # 14, 18, 3 and 17, 10, 15 characters
    assert "kendall_tau" in run("groups", "rank", "--groups", groups, "--model", model_dir).out


def test_choose(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """`choose --questions F --json` has the accuracy on top, here 2 of 3, and writes every answer if asked."""
    rows = [
        {"reference": "close the door", "options": ["what a day", "close the door"], "answer": 1},
        {"reference": "go home", "options": ["go home", "nice hat", "cold soup"], "answer": 0},
        {"reference": "nice hat", "options": ["nice hat", "cold soup"], "answer": 1},
    ]
    questions, out = write_rows(tmp_path / "questions.jsonl", *rows), tmp_path / "a.jsonl"
    accuracy = run("groups", "choose", "--questions", questions, "--model", model_dir, "--json", "--out", out).json
    assert accuracy["accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    assert accuracy["question_count"] == 3
    assert accuracy["rows"][1] == {"by": "chance", "question_count": 3, "accuracy": pytest.approx(4 / 9, abs=1e-6)}
    answers = pl.read_ndjson(out)
    assert answers["chosen"].to_list() == [1, 0, 0]
    assert answers["is_right"].to_list() == [True, True, False]
    run("groups", "choose", "--questions", questions, "--model", model_dir, "--out", out.with_suffix(".csv")).check()
    cells = pl.read_csv(out.with_suffix(".csv"))["options"].to_list()
    assert [json.loads(cell) for cell in cells] == [row["options"] for row in rows]


def test_the_shipped_model_on_shipped_groups(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options the shipped model ranks, and answers questions made of, groups it was not trained on.

    Some of them are ranked here; `shipped_test.py` ranks all.
    """
    shipped = {lang: train.read_shipped_groups(lang).group_by("split").head(5 * 15) for lang in sample.GROUPS}
    monkeypatch.setattr("pipeline.commands.groups.read_shipped_groups", shipped.get)
    ranking = run("groups", "rank", "--json").json
    assert ranking["kendall_tau"] > 0.3
    assert ranking["group_count"] == 15
    accuracy = run("groups", "choose", "--json").json
    assert accuracy["accuracy"] > accuracy["rows"][1]["accuracy"]


def test_distance(run: Run, tmp_path: Path) -> None:
    """`distance --pairs F` adds a column: 0 for equal texts, empty where there is none; as csv, JSON or into a file."""
    path, out = tmp_path / "pairs.csv", tmp_path / "out.parquet"
    path.write_text("id,implicit,explicit\n1,brr,it is cold\n2,brr,brr\n3,brr,\n", encoding="utf-8")
    command = ("pairs", "distance", "--pairs", path)
    rows = list(csv.DictReader(io.StringIO(run(*command).check(0, "distance: left out 1 as no_text").out)))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    values = [row["pragmatic_distance"] for row in rows]
    assert float(values[0]) > 0
    assert (float(values[1]), values[2]) == (0.0, "")
    first = json.loads(run(*command, "--json").out.splitlines()[0])
    assert first["pragmatic_distance"] == float(values[0])
    run(*command, "--out", out)
    assert pl.read_parquet(out)["pragmatic_distance"].to_list()[0] == float(values[0])


def test_distance_of_other_columns(run: Run, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any two text columns can be named; one that does not exist is BadInput and says which do.

    The only two are taken, and reported; of more none is guessed, so that an id is not measured as a text. The first
    rows decide for all.
    """
    path = write_file(tmp_path / "mine.csv", "a,b, c\nbrr,it is cold,brr\n")
    command = ("pairs", "distance", "--pairs", path, "--model", model_dir, "--json")
    named = run(*command, "--columns", "a , c").check(0, "mine.csv: the texts are in the columns a and c")
    assert named.json["pragmatic_distance"] == 0.0
    for options in ((), ("--columns", "a,d")):
        run(*command, *options).check(2, "mine.csv: expected two text columns; there are a, b, c; name them by")
    monkeypatch.setattr("pipeline.commands.measures.read_chunks", partial(read_chunks, size=1))
    path.write_text('{"a": "brr", "b": "brr"}\n{"note": "so", "a": "brr", "b": "brr"}\n', encoding="utf-8")
    path = path.rename(path.with_suffix(".jsonl"))
    rows = run(*command[:3], path, *command[4:]).check(0, "the texts are in the columns a and b").rows
    assert [row["pragmatic_distance"] for row in rows] == [0.0, 0.0]


def test_people_rank_groups(run: Run, tables: Path, model_dir: Path, tmp_path: Path) -> None:
    """`groups rate` writes sheets and guides; `groups ratings` and `groups agree` compare people with a model."""
    path, out, words = tmp_path / "g.jsonl", tmp_path / "out", ("--model", model_dir, "--json")
    lines = [{"group": str(n), "sentences": [f"a{n}", f"bb{n}", f"ccc{n}"]} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("groups", "agree", "--groups", path).code == 4
    assert run("groups", "rate", "ranking", "--items", path, "--rater", "anna", "--rater", "ben", "-o", out).code == 0
    assert {file.name for file in out.iterdir()} == {
        "anna.xlsx", "ben.xlsx", "guidelines.md", "hiring.md", "tasks.jsonl"
    }  # fmt: skip
    result = run("groups", "ratings", "ranking", "--items", path, "--tool", "simulated", *words).json
    assert [row["by"] for row in result["rows"]][-2:] == ["simulated_5", "model"]
    assert len(result["paper"]) == 12
    agreement = run("groups", "agree", "--groups", path, *words).json
    assert agreement["concordance"][0]["raters"] == 5
    assert run("groups", "rate", "grading").code == 2


TEXTS = ["He is supposedly ill, plainly.", "他据说病了，我就直说吧。", "\u200b\u2060 \ufe0f\u3164", "ok"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """English, Chinese, blank and of one word."""
    return write_file(tmp_path / "texts.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in TEXTS))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A hundred English texts, and a few Chinese ones."""
    lines = [json.loads(line) for line in sample.GROUPS["en"].read_text(encoding="utf-8").splitlines()[:20]]
    return write_file(
        tmp_path / "corpus.txt", "\n".join([*(text for line in lines for text in line["sentences"]), TEXTS[1]])
    )


@pytest.fixture
def cues(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that looks at two words of each language alone."""

    def score(rows: pl.DataFrame, ref: str | None, on_progress: object = None) -> pl.DataFrame:
        text = pl.col("text")
        value = 1 + text.str.contains("supposedly|据说").cast(pl.Float64) / 2
        value -= text.str.contains("plainly|直说").cast(pl.Float64) / 4
        return rows.select("text_hash", value=value, signature=pl.lit("cues"))

    monkeypatch.setattr(scoring, "score_texts", score)


def test_scores_are_read_among_the_sample(run: Run, texts: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each text with a score has its percentile and band; one line says in which languages the model is weak."""
    rows = run("score", "implicitness", texts, "--json").rows[: len(TEXTS)]
    assert list(rows[0]) == ["text", "implicitness", "percentile", "band", "signature"]
    assert [row["percentile"] is None for row in rows] == [False, False, True, False]
    assert "encoder:embedded@" in rows[0]["signature"]
    reference = references.load_reference(None)
    assert reference
    for row, lang in zip(rows, ("en", "zh", "en", "en"), strict=True):
        assert (row["percentile"], row["band"]) == reference.read(row["implicitness"], lang)
    [line] = [line for line in caplog.messages if "is weak here" in line]
    assert "en 0.56, zh 0.51, expected 0.6" in line


def test_explained_words(run: Run, texts: Path, tmp_path: Path, cues: None) -> None:
    """`--explain` prints each text's words with signed changes; with --out it writes a row a word."""
    printed = run("score", "implicitness", texts, "--explain").out.splitlines()
    assert "supposedly +0.50" in printed[0]
    assert "plainly -0.25" in printed[0]
    assert "据说 +0.50" in printed[1]
    assert printed[2].startswith("no text")
    assert printed[3].endswith("  ok")
    out = tmp_path / "words.csv"
    assert run("score", "implicitness", texts, "--explain", "--out", out).code == 0
    rows = pl.read_csv(out)
    assert rows.columns[-3:] == ["position", "word", "change"]
    carrying = rows.filter(pl.col("change") != 0)
    assert carrying.select("word", "change").rows() == [
        ("supposedly", 0.5), ("plainly", -0.25), ("据说", 0.5), ("直说", -0.25),
    ]  # fmt: skip
    assert rows.filter(pl.col("word").is_null())["text"].to_list() == [*TEXTS[2:]]
    assert run("score", "implicitness", texts, "--explain", "--out", tmp_path / "a.txt").code == 2
    assert run("score", "implicitness", texts, "--explain", "--limit", "2").code == 2


def test_calibrated_scores(run: Run, texts: Path, tables: Path) -> None:
    """`--calibrated judge` adds what a judge would give, with its interval; without a calibration it is Missing."""
    command = ("score", "implicitness", texts, "--calibrated", "judge")
    run(*command).check(4, "has no calibration by 'judge'; found none; run `undertone calibrate scorer judge`")
    rng = np.random.default_rng(3)
    rows = pl.DataFrame({"a": rng.random(60), "thread": map(str, range(60)), "lang": "en", "text": "so", "source": "x"})
    result = calibrate._compare(rows.with_columns(b=4 * pl.col("a")), pl.DataFrame(), "scorer", "judge", 0.15)
    model_id = references.scoring.choose_model().model_id
    calibrate.write_study(result._replace(model_id=model_id), "scorer", "judge", sample.DAY)
    first, chinese, *_ = run(*command, "--json").rows
    assert 0 <= first["low"] <= first["judged_like"] <= first["high"] <= 4
    assert chinese["low"] is None
    printed = run(*command, "--explain").out.splitlines()
    assert f"judged like {first['judged_like']:.1f} ({first['low']:.1f} to" in printed[0]
    assert run(*command, "--out", "a.txt").code == 2


def test_reference_of_a_corpus(
    run: Run, texts: Path, corpus: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A built reference gives percentiles of its languages alone, and names the others; its bands are the sample's."""
    built = run("reference", "build", corpus, "--name", "forum", "--json").json
    assert [(row["lang"], row["text_count"], row["group_count"]) for row in built["rows"]] == [("en", 100, 260)]
    assert Path(built["path"]) == home / "references" / "forum" / f"{built['model_id']}.json"
    rows = run("score", "implicitness", texts, "--reference", "forum", "--json").rows
    assert [row["percentile"] is None for row in rows[:4]] == [False, True, True, False]
    assert "reference 'forum' lacks languages of fewer than 100 texts: zh 1" in caplog.text
    assert "reference 'forum' has no texts in zh, so no percentiles there" in caplog.text
    assert run("score", "implicitness", texts, "--reference", "none").code == 4
    with pytest.raises(Missing, match=r"has no reference 'none'; found forum; build it: undertone reference build"):
        references.load_reference(None, "none")


def test_a_reference_counts_what_it_leaves_out(run: Run, corpus: Path, tmp_path: Path) -> None:
    """Rows without text are counted, and with `--skip-bad-rows` broken ones too, as of a file that is scored."""
    rows = "".join(f'{n},"{text}"\n' for n, text in enumerate(corpus.read_text("utf-8").splitlines()))
    file = write_file(tmp_path / "corpus.csv", f"id,body\n{rows}101,\n102,\n103,so,late\n")
    build = ("reference", "build", file, "-c", "body", "--name", "forum")
    run(*build).check(2, "line 105: 3 fields where the header has 2")
    lines = ("reference: left out 2 as no_text", "parse: left out 1 as field_count", "left out", "line 105: 3 fields")
    run(*build, "--skip-bad-rows").check(0, *lines)
    run("score", "implicitness", file, "-c", "body", "--skip-bad-rows").check(0, "left out 2 as no_text", *lines[1:])
    bad, out = write_file(tmp_path / "bad.csv", "id,body\n1,a,b\n2,c,d\n"), tmp_path / "out.csv"
    run("score", "implicitness", bad, "--skip-bad-rows", "-o", out).check(
        2, "no row of the file can be read: field_count 2"
    )


def test_names_and_sizes_of_references(tables: Path) -> None:
    """Too few texts, a name that is a path, and the name of the sample are refused; so is a column of one's own."""
    with pytest.raises(BadInput, match="needs 100 texts of one language, found en 1, zh 1"):
        references.build_reference(["Nice hat.", "今天真冷。", None], "few")
    for use_name in (references.load_reference, references.build_reference):
        with pytest.raises(BadInput, match="expected a name of at most 60 letters"):
            use_name(None, "../forum")
    with pytest.raises(BadInput, match="is for the shipped sample"):
        references.build_reference(["Nice hat."])
    with pytest.raises(BadInput, match="column 'band': the scores have a column of this name"):
        references.add_readings(pl.DataFrame({"text": ["a"], "band": ["Blur"]}), "text", None, None)


def test_model_without_a_reference(run: Run, texts: Path, model_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A model that has none scores without percentiles, and one line says how to build it."""
    result = run("score", "implicitness", texts, "--model", model_dir, "--json")
    assert json.loads(result.out.splitlines()[0])["band"] is None
    assert "build it: undertone reference build --model " in caplog.text
    assert run("reference", "build", "--model", model_dir).code == 0
    rows = run("score", "implicitness", texts, "--model", model_dir, "--json").out.splitlines()
    assert json.loads(rows[0])["band"] in ("outright", "indirect", "hinted", "veiled")
    [reading] = pipeline.interpret([TEXTS[0]], str(model_dir))
    assert {name: json.loads(rows[0])[name] for name in reading} == reading


def test_selftest(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All forty scores are as expected here; a changed or absent one, and a model that was replaced, are detected."""
    result = run("selftest", "--json").json
    assert (result["is_right"], len(result["rows"])) == (True, 40)
    assert {"torch", "tokenizers", "precision"} <= set(result["versions"])
    folder = tmp_path / "shipped"
    shutil.copytree(SHIPPED, folder)
    monkeypatch.setitem(scoring.model_choice.SHIPPED, "impscore", folder)
    golden = json.loads((folder / scoring.GOLDEN).read_text(encoding="utf-8"))
    golden["texts"][7][1] += 0.001
    golden["texts"][8][1] = None
    (folder / scoring.GOLDEN).write_text(json.dumps(golden), encoding="utf-8")
    changed = run("selftest").check(1)
    assert "38 of 40 scores" in changed.out
    assert golden["texts"][7][0] in changed.out
    (folder / scoring.GOLDEN).write_text(json.dumps({**golden, "model_id": "f" * 64}), encoding="utf-8")
    with pytest.raises(BadInput, match="scores of model ffffffffffff, but the folder holds"):
        scoring.compare_scores()
