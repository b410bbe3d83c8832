"""Any masked language model of transformers: tiny ones of random weights against its own predictions, by hand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from pipeline.metrics.ndd.distance import distances
from pipeline.models.ndd.masked_lm import MASK_WORD, MaskedLM, WordPieces, load
from pipeline.models.recam.pretrained_reader import Pieces
from tests.support.rows.tiny import LENGTH, WIDTH

FIRST = ["the", "salty", "soup", "is", "not", "good", "here"]
SECOND = ["the", "soup", "is", "very", "good"]
SIZES = {
    "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": WIDTH,
    "max_position_embeddings": LENGTH, "initializer_range": 0.5,
}  # fmt: skip


class Architecture(NamedTuple):
    """A kind of model, what its configuration needs, and whether its head is modules one after another."""

    kind: str
    is_plain: bool
    changes: Mapping[str, Any] = MappingProxyType({})


_DISTIL: dict[str, Any] = {"dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": WIDTH}
_PLACES = {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1}
_BART: dict[str, Any] = {"d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1, "init_std": 0.5}
_BART |= {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("attention_heads", "ffn_dim")}
ARCHITECTURES = [
    Architecture("bert", True), Architecture("distilbert", False, _DISTIL),
    Architecture("deberta-v2", False, {"legacy": False, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    Architecture("deberta-v2", True, {"legacy": True, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    Architecture("ernie", True, {"use_task_id": True}), Architecture("roformer", True),
    Architecture("electra", True, {"embedding_size": 16}), Architecture("albert", True, {"embedding_size": 16}),
    Architecture("xlm-roberta", True, _PLACES),
    Architecture(
        "modernbert", True, {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "global_rope_theta": 9.0}
    ),
    Architecture("fnet", True), Architecture("bart", True, _BART),
    Architecture("xlm", False, {"emb_dim": WIDTH, "n_layers": 2, "n_heads": 2, "embed_init_std": 0.5}),
]  # fmt: skip


def make_folder(folder: Path, bert: Path, architecture: Architecture) -> Path:
    """Write a model of random weights with the tiny tokenizer of word pieces."""
    from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert)
    sizes = SIZES if architecture.kind not in ("distilbert", "bart", "xlm") else {"max_position_embeddings": LENGTH}
    options = {"vocab_size": len(tokenizer), "pad_token_id": 0, **sizes, **architecture.changes}
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(architecture.kind, **options))
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@torch.no_grad()
def predict_by_hand(model: MaskedLM, tokenizer: Any, sentence: Sequence[str], place: int) -> Tensor:
    """Probabilities at the mask of the joined text, by the whole model of transformers on one sequence."""
    text = " ".join("[MASK]" if i == place else word for i, word in enumerate(sentence))
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    position = ids[0].tolist().index(tokenizer.mask_token_id)
    probabilities: Tensor = model.module(input_ids=ids).logits[0, position].double().softmax(0)
    return probabilities


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda item: f"{item.kind}-{item.is_plain}")
def test_any_architecture(bert: Path, tmp_path: Path, architecture: Architecture) -> None:
    """The distance is the mean of Hellinger's over shared words, computed by hand; both ways to predict agree."""
    from transformers import AutoTokenizer

    model, tokenizer = load(make_folder(tmp_path, bert, architecture)), AutoTokenizer.from_pretrained(bert)
    assert model.is_whole is not architecture.is_plain
    values = []
    for word in ("the", "soup", "is", "good"):
        places = FIRST.index(word), SECOND.index(word)
        p, q = (predict_by_hand(model, tokenizer, *ask) for ask in zip((FIRST, SECOND), places, strict=True))
        values.append(math.sqrt(((p.sqrt() - q.sqrt()) ** 2).sum() / 2))
    ways = [model] if model.is_whole else [model, replace(model, is_whole=True)]
    for way in ways:
        assert distances(way, [FIRST], [SECOND]) == pytest.approx(np.mean(values), abs=1e-5)
    assert np.mean(values) > 1e-3
    long = [FIRST * 10]
    places = np.arange(-1, 71)
    whole, plain = (
        torch.cat([part for _, part in way.distributions(long, np.zeros_like(places), places)])
        for way in (ways[0], ways[-1])
    )
    assert torch.allclose(whole, plain, atol=1e-5)
    assert whole.isfinite().all()
    assert [len(value) for value in model.surprisals(long)] == [len(long[0])]
    assert model.sentence_vectors([FIRST]).shape == (1, WIDTH)


def make_pieces(pre_tokenizer: Any) -> tuple[WordPieces, list[str]]:
    """Make word pieces of a SentencePiece-like vocabulary, in which `的天` reaches over two words; and their names."""
    from tokenizers import Tokenizer, models, normalizers

    scores = {"<unk>": 0, "<mask>": -1, "\u2581": -3, "\u2581今天": -4, "今天": -4.5, "的": -5, "天": -5, "气": -5}
    scores |= {"天气": -8, "的天": -6, "不": -6, "不好": -4, "好": -6, "。": -3, "\u2581ok": -4, "ok": -6, "，": -3}
    tokenizer = Tokenizer(models.Unigram([*scores.items()], unk_id=0))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFC(), pre_tokenizer
    return WordPieces(Pieces(tokenizer, [], [], [], [0, 0], 1, 0, 64), 0), [*scores]


@pytest.mark.parametrize("kind", ["xlm-r", "mt5"])
def test_chinese_has_no_blanks(kind: str) -> None:
    """Words find their pieces in the text without blanks; a piece over two words is split between them."""
    from tokenizers import pre_tokenizers

    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    split = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace]) if kind == "xlm-r" else metaspace
    word_pieces, names = make_pieces(split)
    cases: list[tuple[list[str], list[list[str]]]] = [
        (["今天", "不好", "。"], [["\u2581今天"], ["不好"], ["。"]]),
        (["今天", "的", "天气", "不", "好"], [["\u2581今天"], ["的"], ["天气"], ["不"], ["好"]]),
        (["今天", MASK_WORD, "不好"], [["\u2581今天"], ["<mask>"], ["不好"]]),
        (["ok", "ok", "，", "", "今天", "ok"], [["\u2581ok"], ["\u2581ok"], ["，"], ["<unk>"], ["今天"], ["ok"]]),
        (["今天", "龙", "龟"], [["\u2581今天"], ["<unk>"], ["<unk>"]]),
        ([], []),
    ]
    assert not word_pieces.ignores_blanks
    for words, expected in cases:
        assert [[names[piece] for piece in ids] for ids in word_pieces.split(words)] == expected
