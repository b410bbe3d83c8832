"""The authors' checkpoint becomes a model that scores as their code does (IMP-45)."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import cosine_similarity
from transformers import AutoModel

from pipeline.errors import BadInput
from pipeline.models.encoder import encode, load
from pipeline.score.implicitness import implicitness, measure_distances
from pipeline.tasks.impscore import scoring
from pipeline.tasks.impscore.train import read_checkpoint
from pipeline.tasks.record import model_registry
from tests.support.rows import tiny

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
