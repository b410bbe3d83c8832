"""Models and forgetting: of no kind of model can erased texts be read back, and each is trained again without them."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from safetensors.numpy import load_file

from pipeline import sample, settings, warehouse
from pipeline.collect.clean import hash_text
from pipeline.errors import Missing
from pipeline.slices import parse_day
from pipeline.tasks.commenting import commenters, scorer
from pipeline.tasks.daily import tokenize
from pipeline.tasks.erasure import models, run
from pipeline.tasks.erasure.request import Request
from pipeline.tasks.impscore import scoring, train
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import abstractness, readers
from pipeline.tasks.record import model_choice, model_registry
from pipeline.tasks.subtext import recogniser, recovery
from pipeline.training import registry
from pipeline.training.recam import masked_lm as adapting
from tests.support.rows.filled import digest, filled
from tests.tasks.conftest import put_back
from tests.tasks.erasure.forgotten import put_rows

DAY = sample.DAY
ANN, BOB = ("zibbleworn", "quaffmire", "drondlep"), ("vexumtra", "hollowbrine", "skeltarnish")
ARTICLES = 16
RETRIEVAL = {"hidden": 8, "embedding": 8, "epochs": 1, "judged": 20, "foreign": 5}
WRITER = {"hidden": 8, "embedding": 8, "epochs": 1, "content_words": 20, "vocabulary": 200}
SUBTEXT = {"epochs": 1, "members": 1, "hidden": 8, "meaning": 4, "ngrams": 1}
READER = {"hidden": 6, "longest": 40, "epochs": 1, "vocabulary": 0}
PRETRAINED = {"window": 20, "stride": 10, "longest_question": 10, "epochs": 1}
ITEM = {"options": ["hope", "fear", "calm", "pity", "envy"], "label": 0, "subtask": "imperceptibility"}


def read_all(folder: Path) -> str:
    """Read all that files hold: bytes in three encodings, JSON walked, numbers as places in a vocabulary."""
    texts: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        texts += [content.decode(name, errors="ignore") for name in ("utf-8", "utf-16-le", "utf-16-be")]
        if path.suffix == ".json":
            texts += [" ".join(strings) for strings in _list_strings(json.loads(content))]
        if path.suffix == ".safetensors":
            config = folder / "config.json"
            vocabularies = _list_strings(json.loads(config.read_text())) if config.is_file() else []
            for tensor in load_file(path).values():
                if tensor.dtype.kind in "iu":
                    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim else tensor.reshape(1, 1)
                    for words, row in product((words for words in vocabularies if len(words) > 20), rows.tolist()):
                        texts.append(" ".join(words[i] for i in row if 0 <= i < len(words)))
    return " ".join(texts).lower()


def _list_strings(node: Any) -> list[list[str]]:
    """List the strings of JSON, as the lists and objects that they stand in."""
    values = list(node.values()) + list(node) if isinstance(node, dict) else node if isinstance(node, list) else []
    inner = [item for value in values if isinstance(value, dict | list) for item in _list_strings(value)]
    return [*inner, [value for value in values if isinstance(value, str)]]


def find_holders(folders: dict[str, str], words: tuple[str, ...]) -> set[str]:
    """Find the models of which one of the words can be read."""
    texts = {name: read_all(Path(folder)) for name, folder in folders.items() if Path(folder).is_dir()}
    return {name for name, text in texts.items() if any(word in text for word in words)}


def make_article(words: tuple[str, ...], number: int) -> dict[str, str]:
    """Make the article of a thread, in which the words stand side by side."""
    phrase = " ".join(words)
    return {
        "title": f"{phrase} in the news",
        "text": f"a long story of {phrase} that people read at home in the morning, told by number {number}",
        "summary": f"{phrase} gives people hope",
    }


def put_corpus() -> None:
    """Articles with comments, labels, grades, pairs and cloze items; Ann and Bob say something below each of many."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(ARTICLES):
        thread: dict[str, Any] = {"thread_id": f"t{number:02}"}
        words = ANN if number in (0, 1) else BOB if number in (2, 3) else ("plain", f"story{number}", "today")
        article = make_article(words, number)
        rows["articles"].append({**thread, **article, "lang": "en"})
        part = "train" if number < 12 else "validation" if number < 14 else "test"
        question = article["summary"].replace("hope", "@placeholder")
        item_id = digest(thread["thread_id"], 32)
        rows["cloze_items"].append({**thread, **ITEM, "item_id": item_id, "question": question, "split": part})
        split = "validation" if number % 5 == 4 else "train"
        tokens = {"title_tokens": article["title"].split(), "content_tokens": article["text"].split()}
        rows["threads"].append({**thread, **tokens, "split": split})
        comments = {
            "ann": f"{' '.join(ANN)} is what i think of number {number}",
            "bob": f"{' '.join(BOB)} is what i think of number {number}",
            "else": f"somebody else said something nice about number {number}",
        }
        for place, (name, text) in enumerate(comments.items()):
            comment = {**thread, "comment_id": f"{name}{number}"}
            hash_ = hash_text(pl.Series([text])).item()
            rows["comments"].append({**comment, "text": text, "lang": "en", "text_hash": hash_, "like_count": place})
            rows["comment_grades"].append({**comment, "grade": 1.0 + place})
            row = {"row_id": digest(comment["comment_id"], 16), "text": text, "context": article["title"]}
            rows["annotated_comments"].append({**row, "is_subtext": place != 2})
            pair = {"pair_id": digest(text, 32), "implicit": text, "explicit": f"plainly {text}"}
            pair_split = "train" if number < 12 else "test"
            rows["pairs"].append({**pair, "negative": f"no {number}", "split": pair_split})
    for name, table_rows in rows.items():
        put_rows(name, table_rows)
    tokenize.run(DAY)


def train_all(bert: Path) -> dict[str, str]:
    """Train every kind of model, into the registry and into folders below the home: name -> folder."""
    root, away = settings.models(), settings.home() / "mine"
    comments, ratings = commenters.read_tables().comments["text"], abstractness.read_ratings()
    model_ids = {
        "counts": masked_lm.count_corpus("en", DAY),
        "superseded counts": _superseded(),
        "adapted": masked_lm.adapt(DAY, start=str(bert)).partition("=")[2],
        "subtext": recogniser.train(DAY, changes=SUBTEXT, promote=True),
        "quality": scorer.train(DAY, "quality", changes={"has_embedding": False, "buckets": 512}),
        "upvotes": scorer.train(DAY, "upvotes", changes={"buckets": 512}),
        "retrieval": commenters.train(DAY, "ir_tc", changes=RETRIEVAL, promote=True),
        "commenter": commenters.train(DAY, "att", changes=WRITER, promote=True),
        "reader": readers.train(DAY, "imperceptibility", changes=READER, promote=True),
        "pretrained reader": readers.train(DAY, "imperceptibility", profile="filled", changes=PRETRAINED, promote=True),
        "impscore": train.train(DAY, profile="paper", changes={"epochs": 1}, promote=True),
        "tuned impscore": train.train(DAY, profile="paper", changes={"epochs": 1, "tune": "adapter"}, promote=True),
        "abstractness": abstractness.train(DAY, ratings._replace(rows=ratings.rows.head(60))),
    }
    masked_lm.count_file(comments.to_list(), away / "counts", "en")
    masked_lm.train(comments.to_list(), away / "adapted", start=str(bert))
    columns = {"item_id": [str(n) for n in range(len(comments))], "text": comments, "context": "at home"}
    rows = pl.DataFrame({**columns, "meanings": [[text] for text in comments]})
    recovery.train(recovery.split_references(rows), away / "recovery", changes={"epochs": 1})
    folders = {name: str(root / str(model_id)) for name, model_id in model_ids.items()}
    return folders | {f"-o {path.name}": str(path) for path in away.iterdir()}


def _superseded() -> str:
    """Counts that others of their day took the place of."""
    model = registry.read(settings.models() / str(model_choice.select_model_id("masked_lm_en", DAY)))
    row = {"metric": "words", "split": "train", "subset": "all", "epoch": 0, "value": 1.0, "pair_count": 1}
    trained = model_registry.TrainedModel(
        kind="masked_lm_en", tensors=model.tensors(), config={**model.config, "note": "older"}, data_hash="1",
        evaluations=model_registry.complete_evaluations(pl.DataFrame([row])), texts=masked_lm.load_corpus("en", DAY),
        summary={}, doubt="older",
    )  # fmt: skip
    return model_registry.register(trained, DAY, "test")


Trained = tuple[Path, Path, dict[str, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, bert: Path) -> Trained:
    """A home with every kind of model, a copy of it, and the models' folders."""
    home = tmp_path_factory.mktemp("models") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(home))
        patch.setenv("UNDERTONE_ENCODER", str(tiny_folder))
        patch.setitem(adapting.PROFILES, "embedded", adapting.Recipe(longest=32, epochs=1))
        warehouse.create()
        put_corpus()
        folders = train_all(bert)
        warehouse.close()
    return home, shutil.copytree(home, home.with_name("copy")), folders


@pytest.fixture
def folders(trained: Trained, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The same, put back."""
    monkeypatch.setenv("UNDERTONE_ENCODER", str(tiny_folder))
    for _ in put_back(*trained[:2], monkeypatch):
        yield trained[2]


REQUEST = Request(comment_ids=[f"ann{number}" for number in range(ARTICLES)], thread_ids=["t00", "t01"])
NUMBERS = {"impscore", "abstractness"}
# words as weights
UNSEEN = {"-o recovery", "quality", "upvotes", "adapted", "-o adapted", "pretrained reader", "tuned impscore"}


def test_every_kind_of_model_is_in_this_test(folders: dict[str, str]) -> None:
    """A new kind of model needs to say what it holds, and a training here."""
    kinds = {str(models.read_config(Path(folder)).get("kind")) for folder in folders.values()}
    assert kinds == {*registry.CONTENTS} - {"relevance"}  # which is a part of the kind retrieval
    sources = [path for path in Path(registry.__file__).parents[1].rglob("*.py") if "llm" not in str(path)]
    texts = [path.read_text() for path in sources]
    names = {kind for text in texts for kind in re.findall(r'\*\*asdict.*?"kind": "(\w+)"', text, re.DOTALL)}
    assert names <= {*registry.CONTENTS}


def test_erased_texts_cannot_be_read_out_of_any_model(folders: dict[str, str]) -> None:
    """Before, the words of both stand in each model that keeps any; after, hers are in no file of the home."""
    assert find_holders(folders, ANN) & find_holders(folders, BOB) >= set(folders) - NUMBERS - UNSEEN
    assert "zibbleworn drondlep quaffmire" in read_all(Path(folders["counts"]))  # before, behind and between
    before = scoring.choose_model(None, DAY).model_id
    outcome = run.forget(REQUEST)
    assert {name for name, folder in folders.items() if Path(folder).is_dir()} == NUMBERS
    assert not [word for word in ANN if word in read_all(settings.home())]
    assert warehouse.search(ANN) == []
    assert {place.store for place in warehouse.search(BOB)} >= {"comments", "pairs"}
    actions = {row["model_id"]: row["action"] for row in outcome.models.to_dicts()}
    assert actions.pop(Path(folders["impscore"]).name) == "flagged"
    assert set(actions.values()) == {"removed"}
    assert len(actions) == len(folders) - len(NUMBERS)
    assert not warehouse.scan("models").filter("is_promoted", pl.col("kind") != "abstractness").collect().height
    assert masked_lm.load_model("count", "en").model_id == masked_lm.SAMPLE
    assert scoring.choose_model(None, DAY).model_id == scoring.load_model(None).model_id != before
    with pytest.raises(Missing, match="no commenter att is in force"):
        commenters.load_model(None, "att")
    commands = [model["train_again"] for model in models.summarize(outcome.models, {}) if model["train_again"]]
    assert f"undertone train count-lm --lang en --promote --day {DAY}" in commands
    assert "by the DAG ndd, whose parameter `adapt` trains it on the current corpus" in commands


@pytest.mark.nightly
def test_models_are_trained_again_without_them(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while a folder goes, and again between two trainings, it ends with a model in force of each kind."""
    turns: dict[str, int] = {"remove": 3, "train": 2}

    def count_down(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any) -> Any:
            turns[name] -= 1
            if not turns[name]:
                raise KeyboardInterrupt
            return work(*args)

        return step

    monkeypatch.setattr(models, "remove_folder", count_down("remove", models.remove_folder))
    monkeypatch.setattr(models, "train_again", count_down("train", models.train_again))
    for _ in turns:
        with pytest.raises(KeyboardInterrupt):
            run.forget(REQUEST, retrain=True, verify=False)
    outcome = run.forget(REQUEST, retrain=True)
    assert outcome.problems == {}
    replaced = dict(outcome.models.select("kind", "replaced_by").drop_nulls().iter_rows())
    with_words = {"masked_lm_en", "subtext", "commenter_att", "commenter_ir_tc"}
    assert set(replaced) == with_words | {"reader_imperceptibility", "impscore"}
    assert outcome.models["erasure_id"].n_unique() == 1
    for kind, model_id in replaced.items():
        assert model_choice.select_model_id(kind, DAY) == model_id
    fresh = {kind: str(settings.models() / model_id) for kind, model_id in replaced.items()}
    assert find_holders(fresh, ANN) == set()
    assert find_holders(fresh, BOB) == with_words
    assert registry.read(Path(fresh["commenter_att"])).config["hidden"] == WRITER["hidden"]
    assert registry.read(Path(fresh["impscore"])).config["heads"]["any"]["recipe"]["tune"] == "adapter"
    assert run.forget(REQUEST, verify=False).models.height == 0
    assert warehouse.search(ANN) == []


ERASED = "an erased comment by somebody that a model has learnt"
COMMENT = Request(comment_ids=["c1"])


def make_model(config: dict[str, Any], texts: list[str] | None = None, folder: Path | None = None) -> Path:
    """Make a model that learnt from texts, in the registry or in a folder."""
    import torch

    draft = folder or settings.models() / "draft"
    model_id = registry.write(draft, {"weights": torch.arange(3.0)}, config)
    if texts:
        model_registry.record_texts("any", model_id, pl.Series("text", texts))
    return folder or draft.rename(settings.models() / model_id)


def put_comment(**more: Any) -> None:
    """Make the comments one of the person and another."""
    row = {"text": ERASED, "text_hash": hash_text(pl.Series([ERASED])).item(), "comment_id": "c1", **more}
    frame = filled("comments", row, {"text": "another"})
    warehouse.overwrite("comments", warehouse.make_slice(source="weibo", day=DAY), frame)


def test_which_models_go(tables: Path) -> None:
    """A model of words that learnt from it or has no record goes; one of numbers goes if nothing else is left."""
    put_comment()
    cases: list[tuple[dict[str, Any], list[str] | None, bool]] = [
        ({"kind": "count"}, [ERASED, "another"], False), ({"kind": "count"}, ["another"], True),
        ({"kind": "count"}, None, False), ({"kind": "of tomorrow"}, [ERASED, "another"], False),
        ({"kind": "of tomorrow"}, None, False), ({"kind": "impscore"}, [ERASED, "another"], True),
        ({"kind": "impscore"}, [ERASED, ERASED], False),
        ({"kind": "impscore", "heads": {"en": {"recipe": {"tune": "full"}}}}, [ERASED, "another"], False),
        ({"kind": "abstractness"}, None, True),
    ]  # fmt: skip
    expected = {}
    for number, (is_registered, (config, texts, is_kept)) in enumerate(product((True, False), cases)):
        folder = None if is_registered else settings.home() / "mine" / f"trained{number}"
        expected[make_model({**config, "number": number}, texts, folder)] = is_kept
    run.forget(COMMENT, verify=False)
    assert {folder: folder.is_dir() for folder in expected} == expected


def test_what_else_of_models_goes(tables: Path) -> None:
    """Drafts and what an older version flagged go; a user's own model stays, and nobody's request removes nothing."""
    put_comment()
    drafts = [settings.models() / ".draft-1" / "new", settings.home() / "mine" / ".draft-2"]
    for draft in drafts:
        draft.mkdir(parents=True)
        (draft / "model.safetensors").write_bytes(b"half")
    public = settings.home() / "public"
    public.mkdir()
    (public / "config.json").write_text('{"model_type": "bert"}')
    (public / "model.safetensors").write_bytes(b"weights")
    older = make_model({"kind": "count", "of": "old"})
    rows = [{"kind": "old", "model_id": older.name, "text_hash": name} for name in ("erased", digest("else", 32))]
    warehouse.overwrite("training_texts", warehouse.make_slice(kind="old"), filled("training_texts", *rows))
    assert run.forget(Request(comment_ids=["nobody"])).removed_paths == []
    assert all(path.is_dir() for path in (*drafts, public, older))
    assert run.preview(COMMENT).filter(store="models")["file_count"].item() == 3
    outcome = run.forget(COMMENT, verify=False)
    assert [path.is_dir() for path in (*drafts, public, older)] == [False, False, True, False]
    assert outcome.models.select("model_id", "action", "erased_count").rows() == [(older.name, "removed", 1)]


def test_a_warehouse_of_an_earlier_version_gets_its_columns_first(tables: Path) -> None:
    """Where `model_erasures` lacks columns, they are added before anything is erased."""
    with warehouse.load_table("model_erasures").update_schema() as change:
        for column in ("action", "day", "is_promoted", "recipe", "replaced_by"):
            change.delete_column(column)
    put_comment()
    folder = make_model({"kind": "count"}, [ERASED])
    outcome = run.forget(COMMENT, verify=False)
    assert outcome.models.select("model_id", "action").rows() == [(folder.name, "removed")]
    assert warehouse.query("select count(*) as n from models_flagged")["n"].item() == 0


def test_a_model_behind_a_link_goes_and_one_elsewhere_is_not_served(tables: Path) -> None:
    """Of a linked folder the files go too; a model whose files are on another machine is put out of force."""
    put_comment()
    disk = settings.home().parent / "disk"
    folder = make_model({"kind": "quality"})
    model_id, elsewhere = folder.name, digest("elsewhere", 64)
    folder.rename(disk)
    folder.symlink_to(disk)
    for name in (model_id, elsewhere):
        model_registry.record_texts("quality", name, pl.Series("text", [ERASED, "another"]))
    rows = [{"kind": "quality", "day": parse_day(DAY), "model_id": name} for name in (model_id, elsewhere)]
    warehouse.overwrite("models", warehouse.make_slice(kind="quality"), filled("models", *rows))
    outcome = run.forget(COMMENT, verify=False)
    assert dict(outcome.models.select("model_id", "action").rows()) == {model_id: "removed", elsewhere: "absent"}
    assert model_choice.select_model_id("quality", None) is None
    assert not disk.exists()
    assert list(settings.models().iterdir()) == []


def test_texts_of_before_and_titles_in_front_of_bodies_are_known(tables: Path) -> None:
    """A model that learnt from a comment before its edit, or from an article's title and body as one, goes."""
    put_comment()
    before = hash_text(pl.Series(["as it was once"])).item()
    weibo = warehouse.make_slice(source="weibo", day=DAY)
    warehouse.overwrite("scores", weibo, filled("scores", {"comment_id": "c1", "text_hash": before}))
    article = {"thread_id": "a1", "title": "Late", "text": "It rained and nobody came."}
    warehouse.overwrite("articles", weibo, filled("articles", article))
    texts = ("as it was once", "Late It rained and nobody came.")
    folders = [make_model({"kind": "count", "of": text[:4]}, [text, "another"]) for text in texts]
    run.forget(Request(comment_ids=["c1"], thread_ids=["a1"]), verify=False)
    assert [folder.is_dir() for folder in folders] == [False, False]
    hashes = set(warehouse.scan("training_texts").collect()["text_hash"])
    assert hashes == {"erased", hash_text(pl.Series(["another"])).item()}


def test_pages_of_the_day_and_caches_go(tables: Path) -> None:
    """A page shows short texts too, which no search could tell from others', and what a query spilt may be packed."""
    put_comment(text="短", text_hash=hash_text(pl.Series(["短"])).item())
    pages = [settings.reports() / f"{day}.html" for day in (DAY, "2020-01-01")]
    spilt = settings.scratch("duckdb") / "1" / "spill.tmp"
    for path in (*pages, spilt):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("短")
    assert run.forget(COMMENT, verify=False).report_days == [DAY]
    assert [path.is_file() for path in (*pages, spilt)] == [False, True, False]
    # every metadata file of the comments names states that are still there, and no others
    handle = warehouse.load_table("comments")
    states = {snapshot.snapshot_id for snapshot in handle.metadata.snapshots}
    files = list(tables.glob("warehouse/undertone/comments/metadata/*.metadata.json"))
    names = {file["snapshot-id"] for path in files for file in json.loads(path.read_text()).get("snapshots", [])}
    assert names == states
    put_comment()  # the log of the table names files that are gone, which hinders nobody
    assert warehouse.scan("comments").collect().height == 2
