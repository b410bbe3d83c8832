"""The shipped model: small, of open sources, and better than chance on groups it never saw."""

import json
from typing import Any

import pytest

from pipeline import sample
from pipeline.models.encoder import Encoder, load
from pipeline.score.implicitness import Head, implicitness, load_heads, measure_distances
from pipeline.tasks.impscore.rank import rank
from pipeline.tasks.impscore.references import load_reference
from pipeline.tasks.impscore.scoring import KIND, SHIPPED
from pipeline.tasks.impscore.train import PROFILE, read_shipped_groups
from pipeline.training import registry

ENCODERS = {"en": "embedded", "zh": "characters"}  # Apache-2.0, shipped as a package; a list of our own
SOURCES = {"undertone-sample"}  # written for Undertone


@pytest.fixture(scope="module")
def heads() -> dict[str, Head]:
    model = registry.read(SHIPPED)

    def load_encoder(config: dict[str, Any]) -> Encoder:
        return load(config["encoder"], pooling=config["recipe"]["pooling"])

    return load_heads(model.tensors(), model.config, load_encoder)


def test_its_configuration_names_open_sources_only() -> None:
    """Its encoders are ours, no language model but our own sample's wrote what it learnt from; it is under 6 MB."""
    config = json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))
    assert (config["kind"], config["profile"]) == (KIND, PROFILE)
    assert set(config["completion_models"]) <= SOURCES
    assert {lang: head["encoder"] for lang, head in config["heads"].items()} == ENCODERS
    assert len(config["data_hash"]) == 64
    assert set(config["heads"]) == set(sample.GROUPS)
    assert all(path.suffix in (".json", ".safetensors") for path in SHIPPED.iterdir())
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) < 6_000_000


def test_scores_of_every_script(heads: dict[str, Head]) -> None:
    """It loads, and scores of English, Chinese, blank and odd texts lie in [0, 2]."""
    texts = ["Nice hat.", "你可真准时。", "", "🙂" * 40, "a" * 3000]
    for head in heads.values():
        scores = implicitness(texts, head)
        assert ((scores >= 0) & (scores <= 2)).all()
        assert measure_distances(texts[:2], texts[:2], head).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("lang", "count", "expected"), [
    ("en", 260, {"implicitness": 0.56, "words": 0.50, "longer": 0.01}),
    ("zh", 212, {"implicitness": 0.51, "words": 0.54}),
])  # fmt: skip
def test_groups_it_never_saw(lang: str, count: int, expected: dict[str, float]) -> None:
    """Held-out groups are ranked with the tau that README and docs/numbers.md print, as are the baselines."""
    groups = read_shipped_groups(lang)
    is_test = groups["split"] == "test"
    rows = rank(groups.filter(is_test), training_groups=groups.filter(~is_test))
    assert rows["group_count"].unique().to_list() == [count]
    taus = dict(rows.select("by", "kendall_tau").iter_rows())
    assert {name: round(taus[name], 2) for name in expected} == expected
    reference = load_reference(None)
    assert reference
    assert reference.model_id == registry.read(SHIPPED).model_id
    assert round(reference.scales[lang].agreement or 0, 2) == {"en": 0.64, "zh": 0.58}[lang]
    assert (reference.scales[lang].group_count, reference.scales[lang].kendall_tau) == (count, taus["implicitness"])
    assert taus["implicitness"] > max(tau for name, tau in taus.items() if name not in ("implicitness", "words"))
