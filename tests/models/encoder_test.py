"""The frozen encoder: the same numbers as its library, from files that are checked first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder, encode, load

TEXTS = [
    "What a day.", "今天真冷，某人又迟到了。", "x", "", "  blanks around  ", "[doge] 哈哈哈哈 lol",
    "That went well, as the man said when the bridge had gone. " * 12,  # beyond 128 tokens
    "他说得真好，就是没人信。" * 40,  # beyond the 256 tokens the model reads
    "What a day.", "Nice   hat\n\nindeed", "don't", "🙂", "café", "今天真冷，某人又迟到了。",
]  # fmt: skip


@pytest.fixture(scope="module")
def embedded() -> Encoder:
    """The encoder that is shipped as a package."""
    return load(device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder with a tiny BertModel of random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    inner, outer = tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "what", "a", "day", "nice", "hat", "今", "天", ".", "，"]
    (inner / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    torch.manual_seed(5)
    config = BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16, max_position_embeddings=32)  # fmt: skip
    BertModel(config).save_pretrained(inner)
    BertTokenizerFast(vocab=str(inner / "vocab.txt"), model_max_length=32).save_pretrained(inner)
    transformer = Transformer(str(inner), max_seq_length=32)
    SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu").save(str(outer))
    return outer


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing remembered of encoders and files, before and after."""
    caches: list[Any] = [load, encoders._file_hash]
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_equals_its_library(embedded: Encoder) -> None:
    """Embeddings of mixed texts are those of SentenceTransformer.encode within 1e-6 (IMP-03), each of length 1 (E2)."""
    theirs = embedded.module.encode(TEXTS, batch_size=4, show_progress_bar=False)
    ours = encode(embedded, TEXTS)
    assert ours.dtype == np.float32
    assert ours.shape == (len(TEXTS), 384)
    assert np.abs(ours - theirs).max() < 1e-6
    assert np.linalg.norm(ours, axis=1) == pytest.approx(1, abs=1e-5)


def test_order_and_repeats(embedded: Encoder) -> None:
    """Rows come in the order of the texts; equal texts have equal rows, and every text is told as done."""
    told: list[int] = []
    rows = encode(embedded, TEXTS, told.append)
    assert sum(told) == len(TEXTS) == len(set(TEXTS)) + 2
    assert np.array_equal(rows[0], rows[8])
    assert np.array_equal(rows[1], rows[13])
    assert np.abs(encode(embedded, TEXTS[::-1])[::-1] - rows).max() < 1e-6


@pytest.mark.parametrize("tokens", [1, 4096])
def test_batches_do_not_matter(embedded: Encoder, tokens: int) -> None:
    """One text a batch or all in one: no embedding moves by more than 1e-6."""
    assert np.abs(encode(embedded, TEXTS, tokens=tokens) - encode(embedded, TEXTS)).max() < 1e-6


def test_no_texts(embedded: Encoder) -> None:
    """No text gives no row, but the right number of columns."""
    assert encode(embedded, []).shape == (0, 384)
    assert encode(embedded, ()).dtype == np.float32


def test_embedded_weights_must_be_the_pinned_ones(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights whose SHA-256 is not the one written in the code are refused before they are loaded."""
    monkeypatch.setattr(encoders, "EMBEDDED_SHA256", "0" * 64)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", _not_to_be_called)
    with pytest.raises(BadInput, match=r"model\.safetensors is not the model we pinned \(SHA-256 differs\)"):
        load()


def test_hub_name_needs_a_revision() -> None:
    """A hub name without a commit could change under us, so it is refused."""
    with pytest.raises(BadInput, match="a hub name needs a pinned revision"):
        load(encoders.PAPER)


def test_unknown_precision() -> None:
    """A precision that is not offered is BadInput and the message lists those that are."""
    with pytest.raises(BadInput, match="no precision 'int8'; there are float32, bfloat16"):
        load(precision="int8")


def test_encoder_from_a_folder(folder: Path) -> None:
    """A local sentence-transformers folder is loaded and encodes as its library does; its hash is its revision."""
    tiny = load(str(folder), device="cpu")
    assert (tiny.name, tiny.dim, tiny.revision) == (str(folder), 16, encoders.folder_hash(folder))
    theirs = tiny.module.encode(TEXTS, show_progress_bar=False)
    assert np.abs(encode(tiny, TEXTS) - theirs).max() < 1e-6


def test_folder_revision_covers_its_files(folder: Path, fresh: None) -> None:
    """Changing a configuration file changes the revision, a note beside it does not."""
    before = encoders.folder_hash(folder)
    (folder / "NOTE.md").write_text("a note")
    assert encoders.folder_hash(folder) == before
    (folder / "more.json").write_text("{}")
    assert encoders.folder_hash(folder) != before
    (folder / "more.json").unlink()


def test_folder_without_safetensors_is_not_opened(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with pickled weights only is refused before anything in it is loaded."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", _not_to_be_called)
    with pytest.raises(BadInput, match=r"no \.safetensors weights"):
        load(str(tmp_path))


def _not_to_be_called(*_: object, **__: object) -> None:
    raise AssertionError("the files were loaded")
