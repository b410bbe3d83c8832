"""The hf backend of NDD: what it says is what transformers says of the joined text, and each ask is one row."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.models.ndd.masked_lm import MaskedLM, load
from tests.support.rows.tiny import LENGTH, WIDTH, build_roberta

SENTENCES = [
    ["the", "salty", "soup", "is", "not", "good"],
    ["please", "close", "the", "window", ",", "it", "is", "unusually", "cold", "here"], ["good", "morning"],
    list("今天的天气不好"), [],
]  # fmt: skip
TEXTS = ["the soup that they salted is not what we like", "close the windows before it is cold", "这个碗你洗得真干净"]
NEAR = 1e-5  # what the batch that a row falls in moves log probabilities by, at most


class Loaded(NamedTuple):
    """Ours, and the tokenizer that transformers has with it."""

    model: MaskedLM
    tokenizer: Any


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_roberta(tmp_path_factory.mktemp("roberta"), TEXTS * 4, "RobertaForMaskedLM")


@pytest.fixture(scope="module")
def model(bert: Path) -> MaskedLM:
    return load(bert, batch=7)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def loaded(request: pytest.FixtureRequest) -> Loaded:
    """Word pieces, and pieces of bytes."""
    from transformers import AutoTokenizer

    folder = request.getfixturevalue(request.param)
    return Loaded(load(folder, batch=7), AutoTokenizer.from_pretrained(folder))


def list_places(sentences: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """List each place of each sentence, those around it too."""
    return [(row, place) for row, words in enumerate(sentences) for place in range(-1, len(words) + 1)]


def predict(model: MaskedLM, sentences: Sequence[Sequence[str]], places: Sequence[tuple[int, int]]) -> Tensor:
    """Log probabilities in the order of the asks, each of which is answered once."""
    distributions = list(model.distributions(sentences, *np.array(places, np.int64).T))
    rows = np.concatenate([rows for rows, _ in distributions])
    assert sorted(rows.tolist()) == list(range(len(places)))
    return torch.cat([part for _, part in distributions])[np.argsort(rows)]


@torch.no_grad()
def predict_plainly(model: MaskedLM, ids: Sequence[int]) -> Tensor:
    """Predict by the whole model of transformers at all places of one sequence: [t, vocabulary]."""
    distributions: Tensor = model.module(input_ids=torch.tensor([[*ids]])).logits[0].log_softmax(1)
    return distributions


def join(model: MaskedLM, words: Sequence[str]) -> str:
    """Join the words of one of `SENTENCES`, Chinese ones without blanks where these change pieces."""
    is_chinese = any(word > "\u3000" for word in words)
    return ("" if is_chinese and not model.word_pieces.ignores_blanks else " ").join(words)


@contextmanager
def count_batches(model: MaskedLM) -> Iterator[list[int]]:
    """Count the rows of each batch that goes through the encoder meanwhile."""
    rows: list[int] = []
    hook = model.module.base_model.register_forward_pre_hook(
        lambda _, __, options: rows.append(len(options["input_ids"])), with_kwargs=True
    )
    try:
        yield rows
    finally:
        hook.remove()


def words() -> st.SearchStrategy[list[str]]:
    """Words without blanks or control characters; some hold what tokenizers read together with what is around it."""
    kinds = ["[MASK]", "<mask>", "[SEP]</s>", "'s", "n't", "it's", "soup", "天气", "e\u0301", "\u0301", "...", "1st"]
    word = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8)
    return st.lists(word | st.sampled_from(kinds), max_size=8)


@given(words())
@example(["[MASK]", "is", "a", "[UNK]", "<mask>"])
@example(["'s", "'s", "天", "气", "\u0301"])
def test_pieces_are_those_of_the_joined_words(loaded: Loaded, sentence: list[str]) -> None:
    """Words that are cut one by one are the words joined with blanks and cut, and none is a mask (NDD-08).

    Where blanks change pieces, none stands next to Chinese words (`any_masked_lm_test`).
    """
    if not loaded.model.word_pieces.ignores_blanks:
        sentence = [word for word in sentence if max(word) < "\u3000" or min(word) > "\uffef"]
    pieces, cut = loaded.model.pieces, zip(sentence, loaded.model.tokenize(sentence), strict=True)
    word_pieces = [piece for word, ids in cut if pieces.tokenize([word])[0] for piece in ids]
    assert word_pieces == pieces.tokenize([" ".join(sentence)])[0]
    assert pieces.mask not in word_pieces


def test_a_word_without_pieces_is_an_unknown_one(loaded: Loaded, model: MaskedLM) -> None:
    """So that the places of words hold: an empty one, and where bytes are no pieces a control character."""
    assert loaded.model.tokenize([""]) == [(loaded.tokenizer.unk_token_id,)]
    cold, *none, soup = model.tokenize(["cold", "\u0000", "", "soup"])
    assert [cold, soup] == model.tokenize(["cold", "soup"])
    assert none == [(1,), (1,)]


def test_a_word_is_masked_as_in_the_joined_text(loaded: Loaded) -> None:
    """Each place of each sentence, by the whole model on the text joined with the mask in the word's place.

    Before and behind a sentence nothing is masked (NDD-09).
    """
    places = list_places(SENTENCES)
    distributions, mask = predict(loaded.model, SENTENCES, places), loaded.tokenizer.mask_token
    for distribution, (row, place) in zip(distributions, places, strict=True):
        masked_words = [mask if i == place else word for i, word in enumerate(SENTENCES[row])]
        ids = loaded.tokenizer(join(loaded.model, masked_words))["input_ids"]
        position = {-1: 0, len(masked_words): len(ids) - 1}.get(place)
        position = ids.index(loaded.tokenizer.mask_token_id) if position is None else position
        assert torch.allclose(distribution, predict_plainly(loaded.model, ids)[position], atol=NEAR * 10)
    assert distributions.dtype == torch.float32
    assert torch.allclose(distributions.exp().sum(1), torch.ones(len(places)), atol=NEAR)
    assert distributions.std(0).max() > 0.1  # no two places say the same


def test_neither_batch_nor_order_changes_what_is_said(bert: Path, model: MaskedLM) -> None:
    """Batches of 7, of 1 and of all, and the asks in another order, with some twice.

    With bfloat16 weights are cast once, but not tied embeddings; probabilities are rough, but float32, and sum to one.
    The signature names the folder and the options.
    """
    places = list_places(SENTENCES)
    distributions = predict(model, SENTENCES, places)
    for batch in (1, 64):
        assert torch.allclose(predict(load(bert, batch=batch), SENTENCES, places), distributions, atol=NEAR)
    order = np.random.default_rng(3).permutation(len(places)).tolist() * 2
    assert torch.allclose(predict(model, SENTENCES, [places[i] for i in order]), distributions[order], atol=NEAR)
    rough_model = load(bert, precision="bfloat16")
    embeddings, head = rough_model.module.base_model.embeddings, rough_model.module.cls.predictions
    assert head.decoder.weight.dtype == torch.bfloat16
    assert embeddings.word_embeddings.weight.dtype == torch.float32
    rough = predict(rough_model, SENTENCES, places)
    assert rough.dtype == torch.float32
    assert torch.allclose(rough.exp().sum(1), torch.ones(len(places)), atol=NEAR)
    assert 1e-4 < (rough.exp() - distributions.exp()).abs().max() < 0.1
    assert rough_model.signature == f"hf:{bert.name}@{model.revision[:12]}|masks:one|precision:bfloat16"


def test_each_ask_is_a_row_of_the_encoder(model: MaskedLM) -> None:
    """So many rows as asks, no more than `batch` at once; a sentence's states are one row (NDD-22)."""
    places, none = list_places(SENTENCES), np.empty(0, np.int64)
    with count_batches(model) as rows:
        predict(model, SENTENCES, places)
        assert sum(rows) == len(places)
        assert max(rows) == model.batch == 7
    with count_batches(model) as rows:
        assert sum(map(len, model.surprisals(SENTENCES))) == sum(rows)
    with count_batches(model) as rows:
        model.sentence_vectors(SENTENCES)
        assert not list(model.distributions(SENTENCES, none, none))
        assert rows == [5]


def test_a_long_sentence_is_cut_to_what_is_around_the_ask(model: MaskedLM) -> None:
    """Of 62 pieces beside [CLS] and [SEP] one is the mask; 30 stand before it and 31 behind where there are so many."""
    sentence = (["the", "a", "is", "of", "to", "in", "it", "we", "he", "she"] * 10)[:100]
    ids = [piece for word_ids in model.tokenize(sentence) for piece in word_ids]
    assert len(ids) == 100
    assert (model.room, model.pieces.longest) == (62, LENGTH)
    mask = model.pieces.mask
    windows = {
        -1: (ids[:62], 0), 0: ([mask, *ids[1:62]], 1), 20: ([*ids[:20], mask, *ids[21:62]], 21),
        50: ([*ids[20:50], mask, *ids[51:82]], 31), 99: ([*ids[38:99], mask], 62), 100: (ids[38:], 63),
    }  # fmt: skip
    distributions = predict(model, [sentence], [(0, place) for place in windows])
    for distribution, (window, position) in zip(distributions, windows.values(), strict=True):
        assert torch.allclose(distribution, predict_plainly(model, [2, *window, 3])[position], atol=NEAR * 10)
    assert len(model.surprisals([sentence])[0]) == 100
    left_out.clear()
    assert dict(model.states([sentence[:62]]))[0].shape == (LENGTH, WIDTH)
    assert left_out.list_lines() == []
    assert dict(model.states([sentence]))[0].shape == (LENGTH, WIDTH)
    message = f"{model.name} reads 62 pieces: of longer sentences cosine and bertscore compare the beginning"
    assert left_out.list_lines() == [message]


def test_roberta_reads_two_pieces_less_than_it_has_places(roberta: Path) -> None:
    """Its places begin behind that of padding: 50 are for 48 pieces, and longer sentences do not fail."""
    model = load(roberta)
    assert model.pieces.longest == 48
    sentence = ["the", "soup", "is", "cold"] * 20
    assert predict(model, [sentence], list_places([sentence])).isfinite().all()
    assert np.isfinite(model.surprisals([sentence])[0]).all()


def test_a_mask_for_each_piece(bert: Path, model: MaskedLM) -> None:
    """The distribution is the mean of those at the word's masks; a word longer than is read has as many as fit."""
    model_by_pieces = load(bert, masks="pieces", batch=3)
    sentence = ["it", "is", "unusually", "cold", "z" * 99]
    cut = model_by_pieces.tokenize(sentence)
    assert [*map(len, cut)] == [1, 1, 9, 1, 99]
    before, after = [2, *cut[0], *cut[1]], [*cut[3], *cut[4]][: LENGTH - 2 - 2 - 9]
    masked = predict_plainly(model_by_pieces, [*before, *[4] * 9, *after, 3])[3:12]
    distributions = predict(model_by_pieces, [sentence], list_places([sentence]))
    assert torch.allclose(distributions[3], masked.exp().mean(0).log(), atol=NEAR * 10)
    masked = predict_plainly(model_by_pieces, [2, *[4] * 62, 3])[1:-1]
    assert torch.allclose(distributions[5], masked.exp().mean(0).log(), atol=NEAR * 10)
    assert torch.allclose(distributions.exp().sum(1), torch.ones(7), atol=NEAR)
    single = SENTENCES[:1], list_places(SENTENCES[:1])
    assert torch.equal(*(predict(load(bert, masks=masks), *single) for masks in ("one", "pieces")))
    assert not torch.allclose(predict(model, [sentence], [(0, 2)]), distributions[3:4], atol=0.1)


def test_surprisals_are_those_of_single_pieces(model: MaskedLM) -> None:
    """Each piece masked alone, by a plain loop over the whole model (section 2.1)."""
    surprisals = model.surprisals(SENTENCES)
    assert [*map(len, surprisals)] == [sum(map(len, model.tokenize(sentence))) for sentence in SENTENCES]
    for sentence, values in zip(SENTENCES, surprisals, strict=True):
        ids = [2, *(piece for word_ids in model.tokenize(sentence) for piece in word_ids), 3]
        rows = ([*ids[:i], 4, *ids[i + 1 :]] for i in range(1, len(ids) - 1))
        expected = [-predict_plainly(model, row)[i, ids[i]].item() for i, row in enumerate(rows, 1)]
        assert values.tolist() == pytest.approx(expected, abs=NEAR * 10)
    assert model.surprisals([]) == []


def test_states_without_masks(loaded: Loaded) -> None:
    """Each piece's last state and those around, and the first of them as the sentence's vector (NDD-02)."""
    states, vectors = dict(loaded.model.states(SENTENCES)), loaded.model.sentence_vectors(SENTENCES)
    for row, sentence in enumerate(SENTENCES):
        ids = torch.tensor([loaded.tokenizer(join(loaded.model, sentence))["input_ids"]])
        with torch.no_grad():
            expected = loaded.model.module.base_model(input_ids=ids).last_hidden_state[0]
        assert torch.allclose(states[row], expected, atol=NEAR * 10)
        assert torch.allclose(vectors[row], expected[0], atol=NEAR * 10)
    assert loaded.model.sentence_vectors([]).shape == (0, WIDTH)


def test_what_is_refused(bert: Path, model: MaskedLM, tmp_path: Path, tiny_folder: Path) -> None:
    """A transformer without a head, an option that is none, no piece for unknown words, a place outside."""
    config_file = shutil.copytree(bert, tmp_path / "nameless") / "tokenizer_config.json"
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None}
    config_file.write_text(json.dumps(json.loads(config_file.read_text()) | config))
    cases: list[tuple[Path, dict[str, Any], str]] = [
        (tiny_folder, {}, "has no head for masked words.*undertone train masked-lm"),
        (bert, {"masks": "words"}, "no masks 'words'; there are one, pieces"),
        (bert, {"precision": "float16"}, "no precision 'float16'; there are float32, bfloat16"),
        (config_file.parent, {}, "expected a tokenizer with an unknown piece"),
        (bert, {"batch": 0}, "a batch of one row or more; found 0"),
    ]
    for folder, options, message in cases:
        with pytest.raises(BadInput, match=message):
            load(folder, **options)
    for place in (-2, 3):
        with pytest.raises(BadInput, match=f"sentence 2 has 2 words: expected a place from -1 to 2, found {place}"):
            predict(model, SENTENCES, [(0, 1), (2, place)])
