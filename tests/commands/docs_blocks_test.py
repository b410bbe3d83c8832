"""The command blocks of README and docs/ run as they stand, in one scratch home (facts of files are made up here).

What needs a server, a GPU, people, published data or minutes of training is in NOT_RUN, with the reason; a test that
runs such a command on something small is named behind it.
"""

import json
import re
import runpy
from pathlib import Path

import pytest

import pipeline
from pipeline import sample
from tests.commands.conftest import Run
from tests.docs_test import PAGES, ROOT, list_commands

DAY = sample.DAY
PEOPLE, DATA, TRAINING = "people fill in sheets first", "published data", "minutes of training, or what it makes"
CLOZE, COMMENTING, COMPRESSION, GRADES, FORGET = (
    f"tests/commands/{name}_test.py"
    for name in ("recam/cloze", "commenting", "ndd/study", "ndd/study", "operate/forget")
)
ABSTRACTNESS, COUNTS, LABELS = (f"tests/commands/{name}_test.py" for name in ("recam/readers", "ndd/distance", "label"))
NOT_RUN = {  # the beginning of a command -> why, and the test that runs it
    **dict.fromkeys(("cloze build", "cloze stats", "cloze page", "cloze rate", "cloze export"), (TRAINING, CLOZE)),
    **dict.fromkeys(("train reader", "evaluate reader", "train masked-lm"), (TRAINING, CLOZE)),
    **dict.fromkeys(("train abstractness", "score abstractness"), (TRAINING, ABSTRACTNESS)),
    **dict.fromkeys(
        ("train commenter", "commenting comment", "train quality", "score quality"), (TRAINING, COMMENTING)
    ),
    **dict.fromkeys(("evaluate compression", "ndd measure"), (DATA, COMPRESSION)),
    **dict.fromkeys(("ndd test", "train count-lm"), (DATA, COUNTS)),
    **dict.fromkeys(("ndd rate", "ndd ratings", "ndd page"), (PEOPLE, GRADES)),
    **dict.fromkeys(("train impscore", "evaluate impscore"), (TRAINING, "tests/commands/models_test.py")),
    **dict.fromkeys(
        ("train subtext", "score subtext", "evaluate subtext"), (TRAINING, "tests/commands/subtext_test.py")
    ),
    **dict.fromkeys(("recover", "evaluate recovery", "train recovery"), (TRAINING, "tests/commands/subtext_test.py")),
    **dict.fromkeys(("groups rank", "groups choose"), ("a dozen seconds", "tests/commands/measures_test.py")),
    "reference build": ("a corpus of a hundred texts", "tests/commands/measures_test.py"),
    "study": (TRAINING, "tests/commands/studies_test.py"),
    **dict.fromkeys(("label import", "label adjudicate", "label release", "label withdraw"), (PEOPLE, LABELS)),
    "label page": (PEOPLE, LABELS),
    "calibrate": ("judgements first", "tests/commands/calibration_test.py"),
    "distil": ("judgements first", "tests/commands/judge_test.py"),
    "validate --values": ("judgements first", "tests/tasks/studies/validation_test.py"),
    "models import": ("the authors' checkpoint", "tests/tasks/impscore/train_test.py"),
    **dict.fromkeys(
        ("models show", "models promote", "models rollback"), (TRAINING, "tests/tasks/record/model_registry_test.py")
    ),
    "judge": ("a language model, or people", "tests/commands/judge_test.py"),
    "label collect": ("a running Label Studio", "tests/label/label_studio_live_test.py"),
    "cloze ratings": (PEOPLE, CLOZE),
    **dict.fromkeys(("groups rate", "groups ratings"), (PEOPLE, "tests/commands/measures_test.py")),
    "commenting ratings": (PEOPLE, COMMENTING),
    "pairs import": (DATA, "tests/examples/sources/sources_test.py"),
    "score implicitness reviews.csv -c body --reference": ("a reference first", "tests/commands/measures_test.py"),
    **dict.fromkeys(("browse", "export site"), ("scored comments and a browser", "tests/commands/browse_test.py")),
    "forget --origin": ("it asks before it erases", FORGET),
}
PAGES_NOT_RUN = {  # why, and the tests that run their commands
    "README.zh.md": ("the commands of README.md", "tests/docs_test.py"),
    "gpu-worker.md": ("a GPU and Airflow", "tests/tasks/record/due_test.py"),
    "numbers.md": ("a dozen seconds each", "tests/commands/studies_test.py"),
    "judge-and-distil.md": ("a minute; the answers of a judge", "tests/commands/judge_test.py"),
}
ALONE = [  # as they stand; with more words they are run
    ["forget", "--user-id", "4711", "--source", "weibo"],  # asks before it erases
    ["groups", "agree"],  # people have to rank groups first
    ["commenting", "correlate"],  # people have to grade generated comments first
]
GROUP = {"group": "noise", "sentences": ["Be quiet.", "It is rather late.", "Some of us have an alarm set for five."]}
PASSAGE = "The bridge over the Tarn opened on Tuesday. It is three miles long."
BRIDGE = {"id": "1", "document": PASSAGE, "summary": "A bridge opened."}
ITEM = {"article": PASSAGE, "question": "A @placeholder opened .", "label": 0}
ITEM |= {f"option_{n}": word for n, word in enumerate(("bridge", "hope", "idea", "tour", "bank"))}


def write_files(folder: Path) -> None:
    """Write the files that the pages name."""
    reviews = [
        "I really did not like the soup.", "We came back.", "The menu is long.",
        "The driver and I have grown old together.",
    ]  # fmt: skip
    comments = ["body,likes,topic,user", *(f"{text},{n},t{n},4711" for n, text in enumerate(reviews))]
    rows = {
        "reviews.csv": ["id,body", *(f"{n},{text}" for n, text in enumerate(reviews, 1))],
        "comments.csv": comments, "guestbook.csv": comments,
        "articles.csv": ["body", "The old shop which nobody liked is shut."], "c.txt": ["so late", "so early"],
        "r.jsonl": ['["so late again", "fine"]', '["so late again", "fine"]'], "w.jsonl": ["[0.8, 0.4]", "[1, 0]"],
        "scores.csv": ["human,article_id,meteor", *(f"{n % 5},{n // 3},{n / 40}" for n in range(36))],
        "archive.jsonl": sample.THREADS.read_text(encoding="utf-8").splitlines(),
        "grades.csv": ["thread_id,comment_id,grade", "archive.jsonl-1,archive.jsonl-1.1,4"],
        "xsum.jsonl": [json.dumps(BRIDGE)], "Task_1_dev.jsonl": [json.dumps(ITEM)],
        "pairs.csv": ["implicit,explicit", *(f"It is {n} o'clock.,Go home {n} times." for n in range(40))],
        "g.jsonl": [json.dumps(GROUP)],
        "ratings.jsonl": [json.dumps({"rater": who, "group": "noise", "ranks": [1, 2, 3]}) for who in ("anna", "ben")],
        "ratings.csv": ["item,rater_id,field,value",
                       *(f"{n},{rater},subtext,{n % 2}" for n in range(9) for rater in ("anna", "ben", "chen"))],
        "requests.csv": ["user_id,comment_id,thread_id,source", ",,t3,forum"],
        "one.txt": ["The council voted on Tuesday to close the old library on Fenn Street, which opened in 1931."],
        "own.csv": ["text,prompt", "Nice hat.,explicit_en", "It is late.,explicit_en"],
    }  # fmt: skip
    for name, lines in rows.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "parsed.conllu").write_bytes(sample.TREES.read_bytes())


IMPORT = ("import", "comments.csv", "--day", DAY, "--source", "forum", "--map", "text=body,thread_id=topic,user=user")
FIRST = {  # what earlier pages have done already
    "implicitness.md": [("pairs", "replay"), ("pairs", "import", "mine", "own.csv", "--own")],
    "distance.md": [IMPORT],
    "watch-runs.md": [IMPORT, ("tokenize", "--day", DAY)],
    "operations.md": [IMPORT, ("tokenize", "--day", DAY)],
    "solved-here.md": [IMPORT],
    "privacy.md": [IMPORT],
    "subtext.md": [("collect", "--path", "sample", "--day", DAY)],
    "tables.md": [IMPORT],
}


def find_reason(words: list[str]) -> str | None:
    """Find the entry of NOT_RUN that a command begins with."""
    return next((name for name in NOT_RUN if f"{' '.join(words)} ".startswith(f"{name} ")), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, run: Run, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of a page ends well, in the page's order; what the page prints of it is what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERTONE_USER_KEY", "k" * 32)
    write_files(tmp_path)
    if page.name in PAGES_NOT_RUN:
        return
    for words in FIRST.get(page.name, ()):
        assert (result := run(*words)).code == 0, (words, result.err)
    text, output = page.read_text(encoding="utf-8"), ""
    for words in [[DAY if word == "$day" else word for word in words] for words in list_commands(text)]:
        if find_reason(words) is None and words not in ALONE:
            result = run(*words).check(1 if words == ["health"] else 0)
            output += result.out + result.err
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in (line for line in block.splitlines() if not line.startswith("$")):
            assert line.rstrip("…").split("|encoder")[0] in output
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, {"pipeline": pipeline})  # noqa: S102 - the page's own lines


def test_what_is_not_run_is_shown_and_tested() -> None:
    """Each entry of NOT_RUN is in a page, and the test behind its reason is there."""
    shown = [words for page in PAGES for words in list_commands(page.read_text(encoding="utf-8"))]
    assert {reason for words in shown if (reason := find_reason(words))} == set(NOT_RUN)
    assert [words for words in ALONE if words not in shown] == []
    assert [test for _, test in (*NOT_RUN.values(), *PAGES_NOT_RUN.values()) if not (ROOT / test).is_file()] == []
    assert PAGES_NOT_RUN.keys() <= {page.name for page in PAGES}


EXAMPLES = {  # a script of examples/ -> a line that it prints
    "score_two_sentences": "1.31  veiled    above 75 % of the sample  Some of us have an alarm set for five.",
    "overlap_metrics": "bleu_1   plain 0.538  weighted 0.527",
    "agreement_of_raters": "one is lazy:  {'fleiss': 0.169231, 'krippendorff': 0.215385}",
    "ndd_distance": "0.6 The old shop, is shut.",
    "build_pairs": "260 pairs, 0 answers dropped",
    "query_tables": "│ netease ┆ 2026-11-19 ┆ 61       │",
}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(path: Path, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example runs on the sample alone and prints what it printed when it was written."""
    runpy.run_path(str(path))
    assert EXAMPLES[path.stem] in capsys.readouterr().out.splitlines()
