"""The sample, imported and trained on once; its copy goes back to its place, as Iceberg's paths are absolute."""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import sample, warehouse
from pipeline.llm.ledger import answers
from pipeline.tasks import asking
from pipeline.tasks.commenting import corpus, generated, grades
from pipeline.tasks.daily import collect, score, tokenize
from pipeline.tasks.impscore import pairs, scoring, train
from pipeline.tasks.labelling import csd
from pipeline.tasks.record import model_registry
from tests.support.rows.filled import filled
from tests.support.servers.llm_server import Server

DAY = sample.DAY
TEXTS = ("这也太快了吧", "你可真准时，才迟到一小时", "今天的风挺大的")

Bring = Callable[[str, dict[str, str]], None]
Enlist = Callable[..., str]


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path) -> tuple[Path, Path, Path]:
    """A home, a copy with the sample imported and a model on trial, and a copy with tokens and scores as well."""
    folder = tmp_path_factory.mktemp("stock")
    place, imported, scored = folder / "home", folder / "imported", folder / "scored"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(place))
        warehouse.create()
        collect.import_files(collect.list_files("sample", None, DAY).files, None, DAY, origin="sample")
        for source in pairs.replay_cassette():
            pairs.build(source, DAY)
        with pytest.MonkeyPatch.context() as small:
            small.setenv("UNDERTONE_ENCODER", str(tiny_folder))
            train.train(DAY, profile="paper", changes={"epochs": 5})
        warehouse.close()
        shutil.copytree(place, imported)
        tokenize.run(DAY)
        score.run(DAY)
        warehouse.close()
        shutil.copytree(place, scored)
    return place, imported, scored


def build_options(server: Server, model: str = "small-model", **more: Any) -> asking.Options:
    """Options to ask a model at this service."""
    return asking.Options(model, endpoint=asking.find_endpoint(server.url, "secret"), **more)


def put_back(place: Path, copy: Path, patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The copy in its place, in force."""
    answers.close()  # it may hold the file that goes
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    patch.setenv("UNDERTONE_HOME", str(place))
    yield place
    warehouse.close()


@pytest.fixture
def imported(stock: tuple[Path, Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with the sample's comments, pairs and one model that is not promoted."""
    yield from put_back(stock[0], stock[1], monkeypatch)


@pytest.fixture
def scored(stock: tuple[Path, Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same with tokens and scores."""
    yield from put_back(stock[0], stock[2], monkeypatch)


@pytest.fixture(scope="session")
def corpus_stock(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home, and a copy with the sample's articles with comments cut and divided, a quarter of them test."""
    folder = tmp_path_factory.mktemp("corpus")
    place, copy = folder / "home", folder / "copy"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(place))
        warehouse.create()
        collect.import_files([sample.THREADS], "sample_news", DAY, mapping=sample.THREAD_COLUMNS)
        tokenize.run(DAY)
        corpus.build(DAY, corpus.Rules(share=0.25))
        warehouse.close()
        shutil.copytree(place, copy)
    return place, copy


@pytest.fixture
def sample_corpus(corpus_stock: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with the commenting corpus of the sample."""
    yield from put_back(*corpus_stock, monkeypatch)


@pytest.fixture
def graded(sample_corpus: Path) -> Path:
    """The sample's corpus with real comments beside, all graded by the sample's own grades."""
    generated.generate(DAY, generated.HUMAN)
    rows = ["thread_id,comment_id,rater_id,grade"]
    for line in sample.THREADS.read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        for comment in article["comments"]:
            for rater, grade in zip("xy", comment["grades"], strict=True):
                rows.append(f"{article['article_id']},{comment['comment_id']},{rater},{grade}")
    path = sample_corpus.parent / "grades.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    grades.import_grades(path, "sample")
    return sample_corpus


@pytest.fixture
def bring(tmp_path: Path) -> Bring:
    """Import comments of source `notes`: a day, text by comment id. A second call for the day replaces the first."""

    def imports(day: str, texts: dict[str, str]) -> None:
        path = tmp_path / "notes.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["thread_id", "comment_id", "text"])
            lines.writerows([f"thread-{comment_id}", comment_id, text] for comment_id, text in texts.items())
        collect.import_files([path], "notes", day)

    return imports


@pytest.fixture
def enlist(tiny_folder: Path) -> Enlist:
    """Put a model with random weights into the registry and the table: for a day, from a seed; gives its id."""
    import torch

    from pipeline.models.impscore import ImpScore
    from pipeline.tables import empty
    from pipeline.tasks.record.encoders import load_encoder

    def keep(day: str, seed: int, *, is_promoted: bool = True) -> str:
        encoder = load_encoder(name=str(tiny_folder))
        model = ImpScore(encoder.dim, 8, torch.Generator().manual_seed(seed))
        about = {
            "encoder": encoder.name, "encoder_revision": encoder.revision, "recipe": {"features": 8, "seed": seed},
        }  # fmt: skip
        config = {
            "kind": scoring.KIND, "heads": {"any": about}, "data_hash": "1", "completion_models": ["someone"],
        }  # fmt: skip
        tensors = {f"any.{name}": value for name, value in model.state_dict().items()}
        numbers = empty("evaluations").drop("kind", "day", "model_id")
        trained = train.describe_model(tensors, config, numbers)
        return model_registry.register(replace(trained, doubt=None if is_promoted else "a trial"), day, "test")

    return keep


@pytest.fixture
def project(tables: Path) -> str:
    """Three comments given to a project."""
    rows = filled("comments", *({"text": text, "context": "标题", "lang": "zh"} for text in TEXTS))
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows)
    csd.select("csd", DAY, csd.Rules())
    return "csd"


@pytest.fixture(scope="session")
def simulated_stock(stock: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the imported home with the sample's Chinese comments labelled to the end by simulated raters."""
    copy = tmp_path_factory.mktemp("simulated") / "copy"
    with pytest.MonkeyPatch.context() as patch:
        for _ in put_back(stock[0], stock[1], patch):
            csd.select("csd", DAY, csd.Rules(limit=12))
            for step in csd.STEPS:
                csd.push("csd", step, "simulated")
                assert csd.collect("csd", step, "simulated")["waiting"] == 0
        shutil.copytree(stock[0], copy)
    return copy


@pytest.fixture
def simulated(
    stock: tuple[Path, Path, Path], simulated_stock: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The sample's Chinese comments, labelled to the end by simulated raters."""
    for _ in put_back(stock[0], simulated_stock, monkeypatch):
        yield "csd"
