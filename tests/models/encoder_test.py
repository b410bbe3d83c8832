"""The frozen encoder: the same numbers as its library, from files that are checked first."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from pipeline.errors import BadInput
from pipeline.models import encoder as encoders
from pipeline.models import pinned
from pipeline.models.devices import choose_device
from pipeline.models.encoder import Encoder, encode, load
from tests.support.rows import tiny

TEXTS = [
    "What a day.", "今天真冷，某人又迟到了。", "x", "", "  blanks around  ", "[doge] 哈哈哈哈 lol",
    "That went well, as the man said when the bridge had gone. " * 12,  # beyond 128 tokens
    "他说得真好，就是没人信。" * 40,  # beyond the 256 tokens the model reads
    "What a day.", "Nice   hat\n\nindeed", "don't", "🙂", "café", "今天真冷，某人又迟到了。",
]  # fmt: skip


@pytest.mark.parametrize("has_amx", [True, False])
def test_only_a_cpu_with_amx_is_fast_at_bfloat16(has_amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has AVX512-BF16 alone took 1.9 times as long as in float32."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True, "amx_bf16": has_amx})
    assert encoders.is_bfloat16_fast() is has_amx


@pytest.fixture(scope="module")
def embedded() -> Encoder:
    return load(device="cpu")


@pytest.fixture(scope="module")
def layered() -> Encoder:
    """The same encoder, every layer's words pooled."""
    return load(device="cpu", pooling="layers")


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A sentence-transformers folder of our own, to be changed."""
    return shutil.copytree(tiny_folder, tmp_path / "encoder")


@pytest.fixture(scope="module")
def e5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the prompts of E5."""
    return tiny.build(tmp_path_factory.mktemp("e5"), kind="e5")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No encoder is loaded, before and after, and the library loads none."""
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", _not_to_be_called)
    load.cache_clear()
    yield
    load.cache_clear()


def _not_to_be_called(*_: object, **__: object) -> None:
    raise AssertionError("the files were loaded")


def test_layers_are_means_over_words(embedded: Encoder, layered: Encoder) -> None:
    """Pooled by layers a text has the mean of each layer's states over its words, each of length 1, the own last."""
    text = "Nice hat, as he said."
    inputs = layered.module.tokenizer([text], return_tensors="pt")
    with torch.inference_mode():
        states = layered.module[0].model(**inputs, output_hidden_states=True).hidden_states
    means = torch.cat([state[0].mean(0) / state[0].mean(0).norm() for state in states])
    rows = encode(layered, [*TEXTS, text])
    assert (layered.dim, rows.shape, layered.pooling) == (2688, (len(TEXTS) + 1, 2688), "layers")
    assert np.abs(rows[-1] - means.numpy()).max() < 1e-5
    assert np.abs(rows[:-1, -384:] - encode(embedded, TEXTS)).max() < 1e-5
    assert np.abs(encode(layered, TEXTS, tokens=1) - rows[:-1]).max() < 1e-5


@pytest.mark.parametrize("pooling", encoders.POOLINGS)
def test_embedded_equals_its_library_bit_by_bit(pooling: str) -> None:
    """The embedded encoder read without its library cuts the same pieces and gives the very same numbers."""
    direct = load(device="cpu", pooling=pooling)
    library = direct.with_module(direct.module)
    assert direct.bert
    assert (direct.dim, direct.last) == (library.dim, library.last)
    assert np.array_equal(encode(direct, TEXTS), encode(library, TEXTS))


PARTS = [" ", "[SEP]", "[MASK]x", "naïve", "Σς", "İ", "中文，", "e\u0301", "\u2003", "don't", "a" * 101, "x " * 300]


@given(st.lists(st.lists(st.one_of(st.text(), st.sampled_from(PARTS))).map("".join)))
def test_pieces_are_those_of_the_library(embedded: Encoder, texts: list[str]) -> None:
    """Any text has the pieces that the library cuts, also where a mark or an accent stands apart from its letter."""
    assert embedded.bert
    ids, counts = embedded.bert.tokenize(pl.Series(texts, dtype=pl.String))
    pieces = [part.tolist() for part in ids.split(counts.tolist())] if texts else []
    expected = embedded.module.tokenizer(texts, truncation=True, max_length=256)["input_ids"] if texts else []
    assert pieces == expected


def test_order_and_repeats(embedded: Encoder) -> None:
    """Rows are those of SentenceTransformer.encode (IMP-03; E2), in the order of the texts, whatever the batch."""
    expected = embedded.module.encode(TEXTS, batch_size=4, show_progress_bar=False)
    counts: list[int] = []
    rows = encode(embedded, TEXTS, counts.append)
    assert np.abs(rows - expected).max() < 1e-6
    assert np.abs(encode(embedded, TEXTS, tokens=1) - rows).max() < 1e-6
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert sum(counts) == len(TEXTS) == len(set(TEXTS)) + 2
    assert np.array_equal(rows[0], rows[8])
    assert np.array_equal(rows[1], rows[13])
    assert np.abs(encode(embedded, TEXTS[::-1])[::-1] - rows).max() < 1e-6
    assert (encode(embedded, []).shape, encode(embedded, ()).dtype) == ((0, 384), np.float32)


def test_a_batch_that_fills_the_gpu_is_halved(embedded: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only three texts fit, ten are embedded all the same; one text that does not fit is an error."""
    embed_batch, texts = encoders.embed_batch, [f"text {number}" for number in range(10)]
    sizes, most = [], 3

    def embed(encoder: Encoder, features: dict[str, Any]) -> torch.Tensor:
        sizes.append(len(next(iter(features.values()))))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError
        return embed_batch(encoder, features)

    expected = encode(embedded, texts)
    monkeypatch.setattr(encoders, "embed_batch", embed)
    assert np.abs(encode(embedded, texts) - expected).max() < 1e-5
    assert sizes == [10, 5, 3, 2, 5, 3, 2]
    most = 0
    with pytest.raises(torch.OutOfMemoryError):
        encode(embedded, texts[:1])


def test_a_gpu_embeds_in_portions(embedded: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, texts tokenized three at a time have the same rows in the same order, and cuDNN plans no attention."""
    expected = encode(embedded, TEXTS)
    monkeypatch.setattr(encoders, "TEXTS", 3)
    monkeypatch.setattr(encoders, "move", lambda tensor, _: tensor)
    assert np.abs(encode(replace(embedded, device="cuda", threads=2), TEXTS) - expected).max() < 1e-6
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (choose_device(), choose_device("cpu"), torch.backends.cuda.cudnn_sdp_enabled()) == ("cuda", "cpu", False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "max"}, "no pooling 'max'; there are model, layers"),
        ({"normalize": "l2"}, "no normalize 'l2'; there are model_default, on, off"),
        ({"normalize": "off", "pooling": "layers"}, "normalize=off needs pooling=model"),
        ({"precision": "int8"}, "no precision 'int8'; there are float32, bfloat16"),
    ],
)
def test_unknown_options(options: dict[str, Any], message: str) -> None:
    """A pooling or precision that is not offered is BadInput with those that are."""
    with pytest.raises(BadInput, match=message):
        load(**options)


def test_embedded_weights_must_be_the_pinned_ones(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights whose SHA-256 is not the one written in the code are refused before they are loaded."""
    monkeypatch.setattr(encoders, "EMBEDDED_SHA256", "0" * 64)
    with pytest.raises(BadInput, match=r"model\.safetensors is not the pinned model \(SHA-256 differs\)"):
        load()


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_encoder_from_a_folder(kind: str, tmp_path: Path) -> None:
    """Embeddings are those of SentenceTransformer.encode, also on threads; a copy elsewhere is the same encoder."""
    folder = tiny.build(tmp_path, kind=kind)
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False)
    encoder = load(str(folder), device="cpu")
    assert (encoder.name, encoder.dim) == ("encoder", tiny.KINDS[kind].dense or tiny.WIDTH)
    assert encoder.module.max_seq_length == tiny.KINDS[kind].longest
    assert np.abs(encode(encoder, TEXTS) - expected).max() < 1e-5
    copied = load(str(shutil.copytree(folder, tmp_path / "copy")), device="cpu", threads=3)
    assert np.abs(encode(copied, TEXTS, tokens=64) - expected).max() < 1e-5
    assert (copied.name, copied.revision, copied.key) == ("copy", encoder.revision, encoder.key)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [(None, "query: "), ("query", "query: "), ("passage", "passage: "), ("Represent this: ", "Represent this: ")],
)
def test_prompts(e5: Path, prompt: str | None, text: str) -> None:
    """The prompt is the encoder's default, one of its prompts by name, or any text; caches and models know it."""
    encoder = load(str(e5), device="cpu", prompt=prompt)
    expected = encoder.module.encode(TEXTS, prompt=text, show_progress_bar=False)
    assert np.abs(encode(encoder, TEXTS) - expected).max() < 1e-5
    assert repr(text) in encoder.key
    assert encoders.describe_encoder(encoder)["encoder_prompt"] == text


def test_normalize(tmp_path: Path) -> None:
    """Errata E2: off leaves the Normalize of an encoder out, on makes length 1, and by default its makers decide."""
    bare, forced = (str(tiny.build(tmp_path / kind, kind=kind)) for kind in ("bert-cls", "bge"))  # the same weights
    vectors = encode(load(bare, device="cpu"), TEXTS)
    assert np.linalg.norm(vectors, axis=1).min() > 2
    assert np.abs(encode(load(forced, device="cpu", normalize="off"), TEXTS) - vectors).max() < 1e-5
    on = load(bare, device="cpu", normalize="on")
    assert np.abs(encode(on, TEXTS) - encode(load(forced, device="cpu"), TEXTS)).max() < 1e-5
    assert on.key != load(bare, device="cpu").key
    assert encode(load(device="cpu", normalize="off"), TEXTS).std() > 2 * encode(load(device="cpu"), TEXTS).std()


def test_folder_revision_covers_its_files(folder: Path, tmp_path: Path) -> None:
    """A changed configuration changes the revision, a note does not; layers are read of the shipped encoder alone."""
    before = pinned.hash_model_folder(folder)
    (folder / "NOTE.md").write_text("a note")
    assert pinned.hash_model_folder(folder) == before
    (folder / "more.json").write_text("{}")
    assert pinned.hash_model_folder(folder) != before
    weights = encoders.locate_embedded() / "model.safetensors"
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / weights.name).symlink_to(weights)
    assert [encoders.is_layered(str(ref)) for ref in ("embedded", tmp_path / "moved", folder)] == [True, True, False]
