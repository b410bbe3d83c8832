"""States of tokens in context: they are the model's own, whatever the batch, the layer and the tokenizer."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder
from pipeline.models.recam import contextual as work
from pipeline.models.recam.contextual import embed_tokens
from tests.support.rows.tiny import build_roberta

DOOR = ["please", "close", "the", "windowhat", "."]


def plain(encoder: Encoder, tokens: Sequence[str], layer: int, first: bool = False) -> npt.NDArray[np.float32]:
    """States of a sentence by the tokenizer's own words."""
    encoded = encoder.module.tokenizer([list(tokens)], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder.module[0].model(**encoded, output_hidden_states=True).hidden_states[layer][0].numpy()
    words = np.array([-1 if word is None else word for word in encoded.word_ids(0)])
    rows = (hidden[words == number] for number in range(len(tokens)))
    return np.stack([states[0] if first else states.mean(axis=0) for states in rows])


@pytest.mark.parametrize("layer", [-1, 0, 1])
def test_a_token_is_the_mean_of_its_pieces(tiny: Encoder, layer: int) -> None:
    """Of every layer, from either end; or a token is its first piece alone (REC-14)."""
    pieces = tiny.module.tokenizer(DOOR, add_special_tokens=False)["input_ids"]
    assert max(map(len, pieces)) > 1  # or the mean was not tested
    assert embed_tokens(tiny, [DOOR], layer)[0] == pytest.approx(plain(tiny, DOOR, layer), abs=1e-5)
    first = embed_tokens(tiny, [DOOR], layer, "first")[0]
    assert first == pytest.approx(plain(tiny, DOOR, layer, first=True), abs=1e-5)


@settings(max_examples=10)
@given(
    st.lists(st.lists(st.sampled_from([*DOOR, "doorhat", "\u200b", "😀"]), max_size=9), max_size=6),
    st.sampled_from([1, 16, 400]),
)
def test_a_batch_changes_nothing(tiny: Encoder, sentences: list[list[str]], budget: int) -> None:
    """A sentence has the states it has alone, whatever it is embedded with (REC-14: each sentence on its own)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "CPU_TOKENS", budget)
        results = embed_tokens(tiny, sentences)
    assert [result.shape for result in results] == [(len(sentence), 32) for sentence in sentences]
    for sentence, result in zip(sentences, results, strict=True):
        assert result == pytest.approx(embed_tokens(tiny, [sentence])[0], abs=2e-5)


def test_a_token_without_a_piece_has_zeros(tiny: Encoder) -> None:
    """What the tokenizer takes for nothing gets zeros, and moves no other token."""
    results = embed_tokens(tiny, [["\u200b", "door", "", "hat", "\u0000"], ["", ""], []])
    assert results[0].any(axis=1).tolist() == [False, True, False, True, False]
    assert results[0][[1, 3]] == pytest.approx(embed_tokens(tiny, [["door", "hat"]])[0], abs=1e-5)
    assert not results[1].any()
    assert results[2].shape == (0, 32)
    assert embed_tokens(tiny, []) == []


def test_a_long_sentence_is_cut_between_tokens(tiny: Encoder) -> None:
    """Windows are as long as the model reads, cut where a token begins; each has the states of a whole sentence."""
    sentence = ["hat", "windowhat", "day"] * 40
    sizes = [len(ids) for ids in tiny.module.tokenizer(sentence, add_special_tokens=False)["input_ids"]]
    cuts, room = [0], 62  # 64 but for [CLS] and [SEP]
    while cuts[-1] < len(sentence):
        end = cuts[-1]
        while end < len(sentence) and sum(sizes[cuts[-1] : end + 1]) <= room:
            end += 1
        cuts.append(end)
    assert len(cuts) > 4
    result = embed_tokens(tiny, [sentence])[0]
    for start, end in pairwise(cuts):
        assert result[start:end] == pytest.approx(plain(tiny, sentence[start:end], -1), abs=1e-5)


def test_a_plain_transformers_folder_serves(tmp_path: Path) -> None:
    """A folder of AutoModel alone, with a byte-level tokenizer: a token reads as it does with a blank before it."""
    texts = ["the door is open", "please open the door"] * 9
    build_roberta(tmp_path, texts, model_max_length=30, padding_side="left")
    encoder = encoders.load(str(tmp_path), device="cpu")
    results = embed_tokens(encoder, [["the", "door"], ["please", "open", "the", "door", "z"], ["é"] * 70])
    encoded = encoder.module.tokenizer(["please open the door z"], return_tensors="pt")
    names = encoder.module.tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    assert "Ġthe" in names
    with torch.no_grad():
        hidden = encoder.module[0].model(**encoded).last_hidden_state[0].numpy()
    positions = [place for place, name in enumerate(names) if name in {"Ġthe", "Ġdoor"}]
    assert results[1][2:4] == pytest.approx(hidden[positions], abs=1e-5)
    assert results[0] == pytest.approx(embed_tokens(encoder, [["the", "door"]])[0], abs=1e-5)
    assert results[2].any(axis=1).all()


def test_what_cannot_be_embedded_is_named(tiny: Encoder) -> None:
    """An encoder without pieces, a layer that is not there and an unknown pooling are refused."""
    with pytest.raises(BadInput, match="'characters' has no word pieces"):
        embed_tokens(encoders.load("characters"), [["door"]])
    for layer in (3, -4):
        with pytest.raises(BadInput, match=rf"no layer {layer} .* expected one from -3 to 2"):
            embed_tokens(tiny, [["door"]], layer)
    with pytest.raises(BadInput, match="no pooling 'sum'; there are mean, first"):
        embed_tokens(tiny, [["door"]], pooling="sum")  # type: ignore[arg-type]
