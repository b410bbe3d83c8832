"""Chinese without a Chinese encoder: n-grams by hand, the shipped list as its training groups make it."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models import characters
from pipeline.models.encoder import Encoder, encode, load
from pipeline.tasks.impscore.train import read_shipped_groups
from pipeline.tasks.record.encoders import load_encoder
from pipeline.training.impscore.fit import Tuned

NEWEST = characters.hash_lists()[-1]
TEXTS = ["你可真准时。", "今天又没洗碗。", "某人今天又没洗碗呢[doge]", "请把门关上。"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load("characters")


def format_list(texts: Iterable[str]) -> str:
    """N-grams of at least five texts, each with ln((1 + n) / (1 + df)) + 1, in the order of their characters."""
    grams = [characters.list_ngrams(text) for text in texts]
    text_counts = Counter(chain.from_iterable(grams))
    idf = {gram: math.log((1 + len(grams)) / (1 + count)) + 1 for gram, count in text_counts.items() if count >= 5}
    return "".join(f"{gram}\t{idf[gram]:.4f}\n" for gram in sorted(idf))


def test_the_shipped_list_is_that_of_the_training_groups() -> None:
    """The list is made of the training part of the shipped Chinese groups and of nothing held out, to the byte."""
    groups = read_shipped_groups("zh")
    texts = groups.filter(groups["split"] == "train")["text"]
    assert format_list(texts) == characters.LISTS[-1].read_text(encoding="utf-8")


def test_vectors_by_hand() -> None:
    """`好的` has four characters, three pairs, two triples; a text's n-grams weigh their rarity, over its length."""
    place, idf = characters.read_list(NEWEST)
    text = "我我我不"
    columns = [place[gram] for gram in characters.list_ngrams(text) if gram in place]
    assert len(columns) > 4
    expected = np.zeros(len(place))
    expected[columns] = idf[columns]
    expected /= math.sqrt(sum(float(idf[column]) ** 2 for column in columns))
    assert characters.encode([text], NEWEST)[0] == pytest.approx(expected, abs=1e-6)
    assert (idf >= 1).all()
    assert characters.list_ngrams("好的") == {"^", "好", "的", "$", "^好", "好的", "的$", "^好的", "好的$"}
    assert characters.list_ngrams("哈哈") == {"^", "哈", "$", "^哈", "哈哈", "哈$", "^哈哈", "哈哈$"}
    assert characters.list_ngrams("") == {"^", "$", "^$"}


@settings(max_examples=25)
@given(st.lists(st.text(max_size=20), max_size=5))
def test_unit_length(texts: list[str]) -> None:
    """Every text's vector has length 1: its beginning and end are known, whatever stands between."""
    vectors = characters.encode(texts, NEWEST)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(texts), len(characters.read_list(NEWEST)[0])))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)


def test_as_an_encoder(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads by its name, with the list's hash as its revision; vectors come in order, a few texts at a time."""
    assert encoder.revision == hashlib.sha256(characters.LISTS[-1].read_bytes()).hexdigest()
    assert encoder.dim == encoder.last == len(characters.read_list(NEWEST)[0])
    assert (encoder.name, encoder.precision) == ("characters", "float32")
    counts: list[int] = []
    texts = [*TEXTS, TEXTS[0]]
    monkeypatch.setattr("pipeline.models.encoder.NGRAM_TEXTS", 2)
    assert np.array_equal(encode(encoder, texts, counts.append), characters.encode(texts, NEWEST))
    assert counts == [2, 2, 1]
    assert encode(encoder, []).shape == (0, encoder.dim)
    with pytest.raises(BadInput, match="the encoder 'characters' has nothing to train; use tune=none"):
        Tuned(encoder, TEXTS, "full", torch.Generator())


def test_models_of_earlier_lists_score() -> None:
    """An encoder of an earlier list is found by the list's hash, so that the models trained on it still load."""
    revision = "292dddf6e8d3ec85f942649d682c335fbefb541fb336996c825fb21e6ca80924"  # of version 0.1
    encoder = load_encoder({"encoder": "characters", "encoder_revision": revision})
    assert (encoder.name, encoder.revision, encoder.dim) == ("characters", revision, 2534)
    assert encode(encoder, TEXTS).shape == (len(TEXTS), 2534)
    with pytest.raises(BadInput, match="later version"):
        load("characters@0")
