"""ImpScore as tasks: trained from tables and files, promotion, the authors' checkpoint (IMP-45)."""

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from safetensors.torch import save_file
from torch.nn.functional import cosine_similarity
from transformers import AutoModel

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.impscore import groups as graded
from pipeline.models.encoder import encode, load
from pipeline.models.pinned import hash_model_folder
from pipeline.score.implicitness import implicitness, measure_distances
from pipeline.tasks.impscore import pairs, rank, scoring, train
from pipeline.tasks.impscore.train import read_checkpoint
from pipeline.tasks.record import model_registry
from pipeline.training import registry
from tests.examples.sources.writing import jsonl
from tests.support.rows import tiny

Enlist = Callable[..., str]

DAY = sample.DAY


def load_table(name: str) -> pl.DataFrame:
    """Load a table in a fixed order."""
    rows = warehouse.scan(name).collect()
    return rows.sort([c for c in rows.columns if rows[c].dtype != pl.List(pl.String)])


def add_pairs(source: str = "mine", day: str = DAY) -> None:
    """Add forty pairs that are not the sample's."""
    rows = load_table("completions").filter(pl.col("source") == "sample_en").head(40)
    answers = rows.with_columns(
        source=pl.lit(source),
        model=pl.lit("someone"),
        completion_id=pl.col("completion_id").str.replace("^........", "00000000"),
    )
    pairs.add_completions(source, answers, "test")
    pairs.build(source, day)


def train_model(**changes: object) -> str:
    """Train by profile paper, with few epochs; return the model's id."""
    promote = bool(changes.pop("promote", False))
    return train.train(DAY, profile="paper", changes={"epochs": 1, **changes}, promote=promote)


def get_shipped_id() -> str:
    return registry.read(scoring.SHIPPED).model_id


def test_training_again_gives_the_same_model(imported: object, tiny_encoder: Path) -> None:
    """The same pairs and numbers give the same id, one row of `models`, the same evaluations, one folder.

    A model trained on others' answers is another one; it scores the day, with no need to ask.
    """
    tables = [load_table(name) for name in ("models", "evaluations")]
    model_id = train_model(epochs=5)
    assert tables[0]["model_id"].to_list() == [model_id]
    for name, before in zip(("models", "evaluations"), tables, strict=True):
        assert_frame_equal(load_table(name), before)
    assert [p.name for p in settings.models().iterdir()] == [model_id]
    add_pairs()
    other_id = train_model()
    rows = load_table("models")
    assert rows["data_hash"].n_unique() == 2
    promoted = rows.filter("is_promoted").select("model_id", "completion_models").rows()
    assert promoted == [(other_id, ["someone"])]
    assert scoring.choose_model(None, DAY).model_id == scoring.choose_model().model_id == other_id != model_id
    learned = pairs.load_all_pairs().filter(pl.col("split") != "test")["implicit"]
    pairs_now = load_table("pairs")  # also those of the sample, some of which are what it learned from
    numbers = train.evaluate(pairs_now, other_id).filter(metric="implicitness_accuracy", subset="all")
    seen_count = int(pairs_now["implicit"].is_in(learned.implode()).sum())
    assert dict(numbers.select("split", "pair_count").iter_rows()) == {
        "train": seen_count, "test": pairs_now.height - seen_count
    }  # fmt: skip


def test_model_row_says_what_it_was_made_of(imported: object) -> None:
    """A model's row names recipe, encoder, data and who answered: here the sample, so the report can warn (X-05).

    Days go on being scored by the shipped model, as a training on the sample alone is for trying out.
    """
    row = load_table("models").row(0, named=True)
    assert row["completion_models"] == ["undertone-sample"]
    assert row["kind"] == "impscore"
    assert not row["is_promoted"]
    assert scoring.choose_model(None, DAY).model_id == scoring.choose_model().model_id == get_shipped_id()
    assert json.loads(row["config"])["any"]["epochs"] == 5
    assert len(row["data_hash"]) == len(row["encoder_revision"]) == 64


def test_model_for_a_day(tables: object, enlist: Enlist) -> None:
    """A day is scored by the newest model promoted for it or before, else by the oldest; no day means the newest."""
    fifteen, ten = enlist("2026-11-15", 1), enlist("2026-11-10", 2)
    enlist("2026-11-12", 3, is_promoted=False)
    expected: dict[str | None, str] = dict.fromkeys(("2026-11-01", "2026-11-10", "2026-11-14"), ten)
    expected |= dict.fromkeys(("2026-11-15", "2026-11-30", None), fifteen)
    assert {day: scoring.choose_model(None, day).model_id for day in expected} == expected


def test_models_by_name(tables: object, enlist: Enlist, tmp_path: Path) -> None:
    """A model is found by its folder, its id or the beginning of it; None is the one in force, which is logged."""
    model_id = enlist(DAY, 1)
    enlist(DAY, 2)
    folder = settings.models() / model_id
    for ref in (model_id, model_id[:12], str(folder)):
        assert scoring.load_model(ref).model_id == model_id
    assert scoring.load_model(None).model_id == scoring.choose_model(None, DAY).model_id != model_id
    assert scoring.load_model(get_shipped_id()).model_id == get_shipped_id()
    assert scoring.load_model(str(scoring.SHIPPED)).model_id == get_shipped_id()


@pytest.mark.parametrize("ref", ["0123456", "nowhere/model", "*", "..", "abc"])
def test_models_that_are_not_there(tables: object, ref: str) -> None:
    """A ref that names no model or two is refused, also where it looks like a pattern of names."""
    for tail in ("0", "1"):
        (settings.models() / ("abcdef" + tail * 58)).mkdir(parents=True)
    with pytest.raises((Missing, BadInput), match=r"no folder, and 0 models|no model here"):
        scoring.load_model(ref)
    with pytest.raises(Missing, match="2 models"):
        scoring.load_model("abcdef")


def test_a_head_for_each_language_with_groups(
    imported: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Profile undertone fits a head a language with groups; English has the pairs of languages without a head.

    Groups from a file replace the shipped ones of their language, and a test on them names those trained on.
    """
    shipped_groups = train.read_shipped_groups
    monkeypatch.setattr(train, "read_shipped_groups", lambda lang: shipped_groups(lang).head(100))
    sentences = {f"g{n}": [f"close door {n}", f"cold in here {n}", "brr " * (n + 1)] for n in range(9)}
    path = jsonl(tmp_path / "g.jsonl", *({"group": name, "sentences": texts} for name, texts in sentences.items()))
    rows = pl.concat([pairs.load_all_pairs().filter(pl.col("lang") == lang).head(20) for lang in ("en", "zh")])
    rows = pl.concat([rows, rows.head(1).with_columns(lang=pl.lit("ja"), pair_id=pl.lit("f" * 32))])
    options: dict[str, Any] = {"profile": "undertone", "changes": {"epochs": 1}}
    model_id, numbers = train.train_file(rows, tmp_path / "m", [path], **options)
    model = registry.read(tmp_path / "m")
    assert (model.model_id, list(model.config["heads"])) == (model_id, ["en", "zh"])
    assert model.config["profile"] == "undertone"
    recipe = model.config["heads"]["en"]["recipe"]
    assert (recipe["pooling"], recipe["normalize"]) == ("model", "model_default")  # as its makers pool
    subsets = set(numbers["subset"])
    assert {"groups:en", "groups:zh", "head:en", "head:zh", "all"} <= subsets
    accuracies = numbers.filter((pl.col("metric") == "implicitness_accuracy") & (pl.col("subset") == "all"))
    assert accuracies["pair_count"].sum() == 41
    taus = numbers.filter(pl.col("metric") == "kendall_tau")
    assert set(taus["baseline_name"]) == {"words"}
    counts = dict(taus.group_by("subset").agg(pl.col("pair_count").sum()).iter_rows())
    assert counts == {"groups:en": 9, "groups:zh": train.read_shipped_groups("zh")["group"].n_unique()}
    rank.warn_of_training(graded.read(path), str(tmp_path / "m"))
    rank.warn_of_training(train.read_shipped_groups("en"), str(tmp_path / "m"))
    rank.warn_of_training(train.read_shipped_groups("en"))  # of the shipped model, by the split of each group
    names = [*sentences, *train.read_shipped_groups("en")["group"].unique()]
    trained = [zlib.crc32(name.encode()) % 7 != 0 for name in names]
    own, shipped = [message for message in caplog.messages if "the result is no test" in message]
    assert own.startswith(f"{sum(trained[:9])} of 9 groups were in the training of model ")
    assert shipped.startswith(f"{sum(trained[9:])} of {len(trained) - 9} groups were in")


@pytest.mark.parametrize(
    ("encoder_setting", "expected"),
    [(None, ["characters", "embedded", "embedded"]), ("/some/folder", ["/some/folder"] * 3)],
)
def test_encoder_of_a_head(monkeypatch: pytest.MonkeyPatch, encoder_setting: str | None, expected: list[str]) -> None:
    """Chinese has n-grams in place of the embedded encoder, which knows no Chinese; one that is set serves all."""
    if encoder_setting:
        monkeypatch.setenv("UNDERTONE_ENCODER", encoder_setting)
    assert [train.choose_encoder(head) for head in ("zh", "en", "any")] == expected


def test_held_out_pairs_measure_both_accuracies(imported: Path) -> None:
    """Two models are compared by both accuracies on the test pairs; pairs that were all trained on compare nothing."""
    rows = pairs.load_all_pairs().head(40)
    assert train.make_held_out(rows.with_columns(split=pl.lit("train"))) == []
    held_out = train.make_held_out(rows.with_columns(split=pl.lit("test")))
    counts = {part.metric: len(part.texts) for part in held_out}
    assert counts == {"implicitness_accuracy": 40, "pragmatics_accuracy": 40}


def test_headline() -> None:
    """The headline has both accuracies of the test split over all pairs, or of another split if there is no test."""
    numbers = [
        ("implicitness_accuracy", "test", "all", 0.9, 0.7), ("pragmatics_accuracy", "test", "all", 0.8, None),
        ("implicitness_accuracy", "train", "all", 0.99, None), ("implicitness_accuracy", "test", "mine", 0.1, 0.6),
    ]  # fmt: skip
    rows = pl.DataFrame(numbers, schema=["metric", "split", "subset", "value", "baseline"], orient="row")
    expected = {"accuracy": 0.9, "implicitness_accuracy": 0.9, "pragmatics_accuracy": 0.8}
    assert train.select_headline(rows) == expected
    only = rows.filter(pl.col("split") == "train").with_columns(baseline=pl.lit(0.7))
    assert train.select_headline(only)["accuracy"] == 0.99


def test_a_variant_without_bound_is_not_promoted(imported: Path, tiny_encoder: Path) -> None:
    """A Euclidean variant cannot score days, so it does not become the model of the day."""
    add_pairs()
    for promote in (False, True):
        train_model(implicitness="euclidean", promote=promote)
        assert scoring.choose_model(None, DAY).model_id == get_shipped_id()
    assert train_model(pragmatics="cosine", promote=True) == scoring.choose_model(None, DAY).model_id


def test_the_encoder_is_found_by_its_hash(
    imported: Path, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model scores wherever its encoder's folder is now, with its prompt; by another encoder it does not."""
    rows, text = pairs.load_all_pairs().head(20), pl.DataFrame({"text": ["nice hat"]})
    folder = shutil.copytree(tiny_folder, tmp_path / "first")
    monkeypatch.setenv("UNDERTONE_ENCODER", str(folder))
    monkeypatch.setenv("UNDERTONE_ENCODER_PROMPT", "he said: ")
    changes = {"epochs": 1, "normalize": "off"}
    train.train_file(rows, tmp_path / "m", profile="paper", changes=changes)
    scored = scoring.add_scores(text, "text", str(tmp_path / "m"))
    head = registry.read(tmp_path / "m").config["heads"]["any"]
    assert (head["encoder"], head["encoder_prompt"], head["recipe"]["normalize"]) == ("first", "he said: ", "off")
    monkeypatch.delenv("UNDERTONE_ENCODER_PROMPT")
    for place in ("moved", "elsewhere"):
        folder = folder.rename(tmp_path / place)
        monkeypatch.setenv("UNDERTONE_ENCODER", str(folder))
        scoring._load_heads.cache_clear()
        assert_frame_equal(scoring.add_scores(text, "text", str(tmp_path / "m")), scored)
    assert str(tmp_path) not in scored["signature"][0]
    other = tiny.build(tmp_path / "other", seed=6)
    monkeypatch.setenv("UNDERTONE_ENCODER", str(other))
    scoring._load_heads.cache_clear()
    hashes = (head["encoder_revision"][:12], hash_model_folder(other)[:12])
    with pytest.raises(BadInput, match=rf"encoder first, whose files have the hash {hashes[0]}.*{hashes[1]}"):
        scoring.add_scores(text, "text", str(tmp_path / "m"))


TEXTS = ["nice hat", "what a cold day it is", "they like the dish"]
SENTENCES = [  # of the authors' README
    "I have to leave now. Talk to you later.",
    "You must find a new place and move out by the end of this month.",
    "I can't believe we've talked for so long.",
    "Maybe exploring other housing options could benefit us both?",
]


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The setting names a small MPNet, the paper's encoder."""
    folder = tiny.build(tmp_path / "mpnet", kind="all-mpnet")
    monkeypatch.setenv("UNDERTONE_ENCODER", str(folder))
    return folder


def write_checkpoint(path: Path, encoder: Path, names: tuple[str, ...] = ("t",)) -> dict[str, torch.Tensor]:
    """Write a state with the names and shapes of the authors' model; return its head."""
    draw = torch.Generator().manual_seed(3)
    head = {f"weight_{name}.weight": torch.randn(8, tiny.WIDTH, generator=draw) for name in ("p", "s")}
    head |= {f"weight_{name}.weight": torch.randn(8, 8, generator=draw) for name in names}
    weights = AutoModel.from_pretrained(encoder).state_dict()
    save_file({**head, **{f"encoder.0.auto_model.{name}": value for name, value in weights.items()}}, path)
    return head


@pytest.mark.parametrize(("space", "names"), [("p2s", ("t",)), ("s2p", ("t",)), ("third", ("t_p", "t_s"))])
def test_scores_of_a_checkpoint(
    encoder: Path, tables: Path, tmp_path: Path, space: str, names: tuple[str, ...]
) -> None:
    """Scores and distances are those of linear layers x W^T, as in the released code, over the encoder's vectors."""
    head = write_checkpoint(tmp_path / "c.safetensors", encoder, names)
    trained = read_checkpoint(tmp_path / "c.safetensors", {"space": space})
    model_id = model_registry.register(trained, "2026-11-19", "test")
    vectors = torch.from_numpy(encode(load(str(encoder), device="cpu"), TEXTS))
    layers = {name: head[f"weight_{name}.weight"] for name in ("p", "s", *names)}
    p, s = vectors @ layers["p"].T, vectors @ layers["s"].T
    first, second = {
        "p2s": lambda: (s, p @ layers["t"].T),
        "s2p": lambda: (p, s @ layers["t"].T),
        "third": lambda: (p @ layers["t_p"].T, s @ layers["t_s"].T),
    }[space]()
    scored = scoring.add_scores(pl.DataFrame({"text": TEXTS}), "text", model_id)["implicitness"]
    assert scored.to_list() == pytest.approx((1 - cosine_similarity(first, second)).tolist(), abs=2e-6)
    loaded = scoring.load_heads(model_id).heads["en"]
    distances = measure_distances(TEXTS[:2], TEXTS[1:], loaded)
    assert distances == pytest.approx((p[:2] - p[1:]).norm(dim=1).tolist(), abs=1e-5)


def test_what_is_refused(encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle, other weights, another variant, and an encoder that is not the checkpoint's are BadInput."""
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, encoder)
    save_file({"weight": torch.ones(1)}, tmp_path / "other.safetensors")
    for name, message in (
        ("c.pth", "can run code and is not read. Convert: python -c"),
        ("other.safetensors", "weight_p"),
    ):
        with pytest.raises(BadInput, match=message):
            read_checkpoint(tmp_path / name)
    with pytest.raises(BadInput, match="does not fit the encoder encoder and space=third"):
        read_checkpoint(path, {"space": "third"})
    monkeypatch.setenv("UNDERTONE_ENCODER", str(tiny.build(tmp_path / "second", seed=6, kind="all-mpnet")))
    with pytest.raises(BadInput, match=r"another encoder than encoder, whose weight [\w.]+ differs"):
        read_checkpoint(path)


def test_the_authors_scores(tables: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the weights are, the scores are those in the authors' README, to their four decimals."""
    folder = data / "impscore_checkpoint"  # impscore.safetensors, converted, and the folder all-mpnet-base-v2
    if not folder.is_dir():
        pytest.skip("no impscore_checkpoint in UNDERTONE_DATA")
    monkeypatch.setenv("UNDERTONE_ENCODER", str(folder / "all-mpnet-base-v2"))
    model_id = model_registry.register(read_checkpoint(folder / "impscore.safetensors"), "2026-11-19", "test")
    head = scoring.load_heads(model_id).heads["en"]
    assert np.abs(implicitness(SENTENCES, head) - [0.6709, 0.9273, 1.0984, 1.3642]).max() < 1e-4
    assert np.abs(measure_distances(SENTENCES[:2], SENTENCES[2:], head) - [0.6660, 0.7115]).max() < 1e-4
