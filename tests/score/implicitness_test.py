"""Implicitness and pragmatic distance of texts: rounded, whatever their order, by the head of their language."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from pipeline.errors import BadInput
from pipeline.models.encoder import Encoder, encode, load
from pipeline.models.impscore import ImpScore
from pipeline.score.implicitness import (
    Head,
    compute_meanings,
    implicitness,
    load_heads,
    measure_distances,
    score_triples,
)
from pipeline.training.registry import Model

TEXTS = ["Nice hat.", "你可真准时。", "The soup is salty.", "", "某人今天又没洗碗呢[doge]", "Some get up at five. " * 9]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load()


@pytest.fixture(scope="module")
def head(encoder: Encoder) -> Head:
    """A model with random weights: scores of texts differ, and that is all that is needed here."""
    return Head(encoder, ImpScore(encoder.dim, 8, torch.Generator().manual_seed(3)).eval())


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> Encoder:
    return load(str(tiny_folder), device="cpu")


def make_config(encoder: Encoder, *names: str, **recipe: Any) -> dict[str, Any]:
    """Make the configuration of a model with these heads."""
    head_config = {"encoder": encoder.name, "encoder_revision": encoder.revision, "recipe": {"features": 8, **recipe}}
    return {"kind": "impscore", "heads": dict.fromkeys(names, head_config)}


def draw_weights(encoder: Encoder, name: str, seed: int) -> dict[str, torch.Tensor]:
    model = ImpScore(encoder.dim, 8, torch.Generator().manual_seed(seed))
    return {f"{name}.{key}": value for key, value in model.state_dict().items()}


def test_rounded_to_six_decimals(head: Head) -> None:
    """Scores are float64 in [0, 2] with at most six decimals, one a text."""
    scores = implicitness(TEXTS, head)
    assert (scores.dtype, scores.shape) == (np.dtype(np.float64), (len(TEXTS),))
    assert np.array_equal(scores, np.round(scores, 6))
    assert ((scores >= 0) & (scores <= 2)).all()
    assert len(set(scores)) == len(TEXTS)
    assert implicitness([], head).shape == measure_distances([], [], head).shape == (0,)


def test_rounding_stays_in_range(encoder: Encoder) -> None:
    """What single precision carries beyond 0 or 2 is cut off: a stored score never breaks its contract."""
    model = ImpScore(encoder.dim, 8, torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.pragmatic.copy_(model.semantic)
        for transform, expected in ((torch.eye(8), 0.0), (-torch.eye(8), 2.0)):
            model.transform.copy_(transform)
            scores = implicitness(TEXTS, Head(encoder, model))
            assert scores == pytest.approx(expected, abs=2e-6)
            assert ((scores >= 0) & (scores <= 2)).all()


@settings(deadline=None, max_examples=3)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=10))
def test_order_and_company_do_not_matter(head: Head, texts: list[str]) -> None:
    """A text's score is the same within 1e-6 whatever other texts it is scored with."""
    alone = dict(zip(TEXTS, implicitness(TEXTS, head), strict=True))
    scores = implicitness(texts, head)
    assert scores == pytest.approx([alone[text] for text in texts], abs=1.5e-6)  # 1e-6 and the last rounding


def test_many_texts_are_taken_in_parts(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    """More texts than are held at a time give the same scores in the same order, and all are counted."""
    complete = implicitness(TEXTS, head)
    monkeypatch.setattr("pipeline.models.encoder.TEXTS", 2)
    counts: list[int] = []
    assert implicitness(TEXTS, head, counts.append) == pytest.approx(complete, abs=1.5e-6)
    assert sum(counts) == len(TEXTS)


def test_distances_agree_with_equation_6(head: Head) -> None:
    """Pragmatic distance is the length of the difference of e W_p, here from the matrices themselves (IMP-08)."""
    first, second = TEXTS, TEXTS[::-1]
    w = head.model.pragmatic.detach().numpy()
    expected = np.linalg.norm((encode(head.encoder, first) - encode(head.encoder, second)) @ w, axis=1)
    assert measure_distances(first, second, head) == pytest.approx(expected, abs=2e-6)


def test_numbers_of_pairs(head: Head) -> None:
    """A row of pairs has I of its three sentences and both distances, as each function says by itself."""
    rows = pl.DataFrame({"implicit": TEXTS[:2], "explicit": TEXTS[2:4], "negative": TEXTS[4:]})
    actual = score_triples(rows, head)
    assert actual.columns == ["i1", "i2", "i3", "near", "far"]
    for name, side in (("i1", "implicit"), ("i2", "explicit"), ("i3", "negative")):
        assert actual[name].to_list() == pytest.approx(implicitness(rows[side].to_list(), head), abs=2e-6)
    for name, side in (("near", "explicit"), ("far", "negative")):
        apart = measure_distances(rows["implicit"].to_list(), rows[side].to_list(), head)
        assert actual[name].to_list() == pytest.approx(apart, abs=2e-6)


def test_heads_of_a_model(tiny: Encoder) -> None:
    """A model's heads come by language, each with its own weights; one in half precision may serve any language."""
    tensors = {**draw_weights(tiny, "en", 1), **draw_weights(tiny, "zh", 2)}
    heads = load_heads(tensors, make_config(tiny, "en", "zh"), lambda _: tiny)
    assert list(heads) == ["en", "zh"]
    for name in heads:
        assert torch.equal(heads[name].model.semantic, tensors[f"{name}.semantic"])
    assert implicitness(["nice hat"], heads["en"]) != implicitness(["nice hat"], heads["zh"])
    halves = {name: value.half() for name, value in draw_weights(tiny, "any", 1).items()}
    head = load_heads(halves, make_config(tiny, "any"), lambda _: tiny)["any"]
    assert compute_meanings(["nice hat"], head).implicitness.dtype == torch.float32


def test_model_belongs_to_its_encoder(head: Head) -> None:
    """A model trained on another encoder's revision is refused; on its own it gives the same scores."""
    encoder = head.encoder
    tensors = {f"any.{name}": value for name, value in head.model.state_dict().items()}
    same = load_heads(tensors, make_config(encoder, "any"), lambda _: encoder)["any"]
    assert np.array_equal(implicitness(TEXTS, same), implicitness(TEXTS, head))
    other = make_config(encoder, "any")
    other["heads"]["any"] |= {"encoder": "other", "encoder_revision": "f" * 40}
    with pytest.raises(BadInput, match=f"trained on encoder other at {'f' * 12}, not on embedded at"):
        load_heads(tensors, other, lambda _: encoder)


def test_euclidean_variants_do_not_score(tiny: Encoder) -> None:
    """A model of Euclidean implicitness has no bound, so it is for comparison only and refused; pragmatics may be."""
    with pytest.raises(BadInput, match="Euclidean distance, for comparison only; it has no bound"):
        load_heads(draw_weights(tiny, "any", 1), make_config(tiny, "any", implicitness="euclidean"), lambda _: tiny)
    cosine = load_heads(draw_weights(tiny, "any", 1), make_config(tiny, "any", pragmatics="cosine"), lambda _: tiny)[
        "any"
    ]
    assert cosine.model.design.pragmatics == "cosine"
    assert measure_distances(["nice hat"], ["cold day"], cosine)[0] <= 2


def load_changed(config: dict[str, Any], encoder: Encoder) -> dict[str, Head]:
    """Load heads as from the registry, whose model has another configuration than its weights."""
    weights = save({name: tensor.contiguous() for name, tensor in draw_weights(encoder, "any", 1).items()})
    return Model("0" * 64, config, weights).build(load_heads, lambda _: encoder)


def test_a_configuration_that_is_none_of_ours(tiny: Encoder) -> None:
    """A folder of another kind of model, such as an encoder's, is BadInput and no traceback."""
    changes: list[dict[str, Any]] = [{"heads": None}, {"heads": {"any": {}}}, {"kind": "other"}, {"kind": None}]
    changed_configs = [make_config(tiny, "any") | change for change in changes]
    for model_config in (*changed_configs, {"architectures": ["Bert"]}, {}):
        with pytest.raises(BadInput, match=r"of kind|config\.json: damaged"):
            load_changed(model_config, tiny)


def test_weights_that_do_not_fit(tiny: Encoder) -> None:
    """Weights of another size than the configuration says, of another depth or of another head are BadInput."""
    for other in (make_config(tiny, "any", features=3), make_config(tiny, "any", hidden=4), make_config(tiny, "en")):
        with pytest.raises(
            BadInput, match=r"config\.json: damaged or of another shape \(RuntimeError: Error.* ImpScore"
        ):
            load_changed(other, tiny)
