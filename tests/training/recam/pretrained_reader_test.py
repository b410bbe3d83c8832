"""Training the pretrained reader: what it reads, each option of the strong recipe, that it repeats and resumes."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models.recam import pretrained_reader as models
from pipeline.training import loop
from pipeline.training.loop import TrainingResult
from pipeline.training.recam import masked_lm
from pipeline.training.recam import pretrained_reader as readers
from pipeline.training.recam import pretrained_reading as reading
from pipeline.training.recam.pretrained_reader import PROFILES, Recipe, answer, compute_loss, fit, load, make_recipe
from tests.support.killed import check_resuming
from tests.training.recam.cases import check_company, duplicate_items, make_items

READINGS = {"soup": "salty", "door": "cold", "work": "late"}
GLOSSES = {"salty": ["like", "salt"], "cold": ["not", "nice"]}
TINY = Recipe(window=12, stride=6, longest_question=5, longest_gloss=4, learning_rate=0.003, batch=6, epochs=2)
MASKED = replace(TINY, style="masked")
EVERY: dict[str, Any] = {"has_gloss": True, "wrong": 0.5, "smoothing": 0.1, "windows": 2, "averaged": 1, "parts": 2}
EVERY["passage"] = "relevant"


@pytest.fixture(scope="module")
def items() -> pl.DataFrame:
    # of calm the tiny vocabulary has the letters alone
    return make_items(READINGS, ["nice", "calm"], "See the {} and the house.", " Very nice.")


@pytest.fixture(scope="module")
def result(items: pl.DataFrame, tiny_folder: Path) -> TrainingResult:
    return fit(items, TINY, tiny_folder)


@pytest.fixture(scope="module")
def pieces(tiny_folder: Path) -> models.Pieces:
    return models.make_pieces(models.describe_tokenizer(models.load_transformer(tiny_folder)))


def load_reader(result: TrainingResult) -> readers.TrainedReader:
    """The reader that was fitted, by a configuration that went through JSON."""
    return load(result.tensors, json.loads(json.dumps(result.config)))


@pytest.mark.parametrize("style", ["filled", "masked"])
def test_items_are_learnt_by_heart(items: pl.DataFrame, tiny_folder: Path, style: str) -> None:
    """The question says nothing, so the passage is read."""
    # a faster rate gets stuck on some CPUs, whose sums end in other digits
    recipe = replace(TINY, style=style, epochs=50, dropout=0.0, learning_rate=0.002, batch=4)
    result = fit(duplicate_items(items), recipe, tiny_folder)
    assert result.history["value"].max() == 1.0
    assert (answer(load_reader(result), items).argmax(axis=1) == items["label"].to_numpy()).all()


@pytest.mark.parametrize("changes", [EVERY, {"style": "masked", "masks": "each", **EVERY}])
def test_goes_on_where_it_was_stopped(
    items: pl.DataFrame, tiny_folder: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """A training killed after its first epoch and started again ends with the same bits as one that was not."""
    recipe, state = replace(TINY, **changes), tmp_path / "state"
    uninterrupted = fit(items, recipe, tiny_folder, glosses=GLOSSES)
    check_resuming(lambda: fit(items, recipe, tiny_folder, state, glosses=GLOSSES), uninterrupted)
    with pytest.raises(BadInput, match="a training on other data"):
        fit(items[1:], recipe, tiny_folder, state, glosses=GLOSSES)


@pytest.mark.parametrize("changes", [{"style": "masked"}, {"style": "masked", "masks": "each"}, EVERY])
def test_answers_do_not_depend_on_company(
    items: pl.DataFrame, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """Alone, in another order or five at a time, an item has the same probabilities; an option takes its own along."""
    result = fit(items, replace(TINY, **changes, epochs=1), tiny_folder, glosses=GLOSSES)
    trained = load_reader(result)
    expected = check_company(answer, trained, items, 1e-5)
    monkeypatch.setattr(readers, "ROWS", 5)
    assert answer(trained, items) == pytest.approx(expected, abs=1e-5)


def test_what_a_reader_was_not_trained_with(items: pl.DataFrame, tiny_folder: Path) -> None:
    """Options new to it have glosses that are given; a weight that it lacks or that is another model's is refused."""
    for style in ("filled", "masked"):
        result = fit(items, replace(TINY, style=style, epochs=1, has_gloss=True), tiny_folder, glosses=GLOSSES)
        reader, unseen = load_reader(result), items.with_columns(options=pl.lit(["rain", "wet", "snow", "no", "day"]))
        assert not np.array_equal(answer(reader, unseen), answer(reader, unseen, {"wet": ["nice", "soup"]}))
        assert reader.glosses["salty"] == "like salt"
    assert result.config["encoder_revision"] == models.load_transformer(tiny_folder).revision
    with pytest.raises(BadInput, match="of kind 'reader', not 'pretrained_reader'"):
        load(result.tensors, result.config | {"kind": "reader"})
    with pytest.raises(BadInput, match=r"lacks the weight 'ask\.weight' and 0 others"):
        load({name: value for name, value in result.tensors.items() if name != "ask.weight"}, result.config)
    with pytest.raises(BadInput, match="is of another model"):
        load({name: value[:1] for name, value in result.tensors.items()}, result.config)


def test_an_adapted_encoder_keeps_its_head(items: pl.DataFrame, tiny_folder: Path, tmp_path: Path) -> None:
    """Without an epoch a masked reader says what the adapted model says of its mask, recomputed by transformers."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    recipe = masked_lm.Recipe(longest=12, epochs=1)
    masked_lm.write(tmp_path / "adapted", masked_lm.fit(items["article"].to_list(), recipe, tiny_folder))
    result = fit(items, replace(MASKED, epochs=0, window=30), tmp_path / "adapted")
    assert result.history.is_empty()
    assert result.config["best_epoch"] == 0
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "adapted").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "adapted")
    ids = tokenizer("It was a [MASK] day.", items["article"][0], return_tensors="pt")
    log_probabilities = model(**ids).logits[0, ids["input_ids"][0] == tokenizer.mask_token_id].log_softmax(-1)[0]
    options = [tokenizer(option, add_special_tokens=False)["input_ids"] for option in items["options"].to_list()[0]]
    expected = torch.stack([log_probabilities[option].mean() for option in options]).softmax(0)
    assert answer(load_reader(result), items[:1])[0] == pytest.approx(expected.detach().numpy(), abs=1e-5)


def test_sequences_are_what_they_are_said_to_be(items: pl.DataFrame, pieces: models.Pieces) -> None:
    """Filled: an option and its gloss in each of five; masked: one mask for all, or as many as pieces; then padding."""

    def read(recipe: Recipe) -> tuple[list[str], models.Batch]:
        gloss_of = reading.list_glosses(items, GLOSSES, recipe)
        inputs = reading.read(items[:1], recipe, pieces, gloss_of)
        batch = reading.make_batch(inputs, [0])
        texts = [
            pieces.tokenizer.decode(ids[is_piece].tolist(), skip_special_tokens=False)
            for ids, is_piece in zip(batch.ids, batch.is_piece, strict=True)
        ]
        return texts, batch

    options = items["options"].to_list()[0]
    texts, batch = read(replace(TINY, has_gloss=True))
    assert len(texts) == 5
    salty = options.index("salty")
    assert texts[salty] == "[CLS] it was a salty day. [SEP] like salt [SEP] see the soup and the house. [SEP]"
    assert batch.serves.tolist() == torch.eye(5, dtype=torch.bool).tolist()
    assert pieces.tokenizer.decode(batch.ids[salty][batch.start[salty] :][: batch.width[salty]].tolist()) == "salty"
    calm = options.index("calm")
    assert (batch.width[salty].item(), batch.width[calm].item()) == (1, 4)
    separators = [place for place, piece in enumerate(batch.ids[salty].tolist()) if piece == 3]
    assert batch.types[salty].tolist().index(1) == separators[1] + 1
    texts, batch = read(MASKED)
    assert texts == ["[CLS] it was a [MASK] day. [SEP] see the soup and the house. [SEP]"]
    assert batch.serves.all()
    texts, batch = read(replace(MASKED, masks="each"))
    assert [text.count("[MASK]") for text in texts] == [1, 4]
    assert batch.serves.sum(dim=1).tolist() == [4, 1]
    assert (batch.options[0] >= 0).sum(dim=1).tolist() == [4 if option == "calm" else 1 for option in options]


@given(st.integers(0, 200), st.integers(1, 30), st.integers(1, 30))
def test_windows_cover_every_piece(length: int, window: int, stride: int) -> None:
    """Each piece is in a window, none is longer than it may be, all begin a stride apart but the last."""
    recipe = replace(TINY, window=window, stride=min(stride, window))
    windows = reading.list_windows(length, recipe)
    assert {place for start, end in windows for place in range(start, end)} == set(range(length))
    assert all(end - start <= window for start, end in windows)
    starts = [start for start, _ in windows]
    assert starts[:-1] == list(range(0, len(windows) * recipe.stride - recipe.stride, recipe.stride))


def test_a_long_passage_is_read_in_windows(items: pl.DataFrame, tiny_folder: Path) -> None:
    """An option's score is the mean of its windows': those are scored one by one here."""
    recipe = replace(TINY, window=4, stride=3, windows=2, windows_by="mean", epochs=0)
    trained = load_reader(fit(items, recipe, tiny_folder))
    inputs = reading.read(items[:1], recipe, trained.pieces, {})
    passage = inputs.passages[0]
    assert len(passage) == 7  # of eight: so many two windows hold
    with torch.no_grad():
        scores, *alone = (
            readers._score_options(trained.model, inputs._replace(passages=[part]), np.array([0]))[0][0].tolist()
            for part in (passage, passage[:4], passage[3:])
        )
    assert scores == pytest.approx([sum(two) / 2 for two in zip(*alone, strict=True)], abs=1e-5)


def test_the_most_relevant_sentences_are_read() -> None:
    """Of four sentences those that share rare pieces with the question come first, in the passage's order."""
    sentences = [[1, 2, 3, 4], [5, 6, 7, 1], [8, 9, 1, 2], [1, 2, 3, 4]]
    assert reading.select_sentences(sentences, [5, 9], 16) == [piece for sentence in sentences for piece in sentence]
    assert reading.select_sentences(sentences, [5, 9], 8) == [5, 6, 7, 1, 8, 9, 1, 2]
    assert reading.select_sentences(sentences, [1, 9], 6) == [1, 2, 8, 9, 1, 2]  # the first of equals, cut
    assert reading.select_sentences(sentences, [], 5) == [1, 2, 3, 4, 5]
    assert reading.select_sentences([], [1], 5) == []


def test_label_smoothing_and_wrong_answers_by_hand() -> None:
    """Smoothed by .2 the truth is .84 and four times .04; a wrong head at 0 costs ln 2 an option."""
    right = torch.tensor([[0.2, 0.2, 0.2, 0.3, 0.1]]).log()
    truth = torch.tensor([3])
    smoothed = compute_loss(right, None, truth, replace(TINY, smoothing=0.2)).item()
    assert smoothed == pytest.approx(-(0.84 * math.log(0.3) + 0.04 * (3 * math.log(0.2) + math.log(0.1))))
    wrong = torch.zeros(1, 5)
    plain = -math.log(0.3)
    assert compute_loss(right, wrong, truth, replace(TINY, wrong=0.5)).item() == pytest.approx(plain + math.log(2) / 2)
    sure = torch.tensor([[9.0, 9, 9, -9, 9]])  # each wrong option is known to be wrong, and the right one not to be
    assert compute_loss(right, sure, truth, replace(TINY, wrong=1.0)).item() == pytest.approx(plain, abs=1e-3)


def test_weights_are_averaged_over_the_last_epochs(
    items: pl.DataFrame, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is the mean of the weights after each of the last two of three epochs."""
    epoch_weights: list[dict[str, torch.Tensor]] = []
    average = readers._Training._average

    def record_weights(self: Any, *args: Any) -> None:
        epoch_weights.append(loop.copy_weights(self.model, is_trained=True))
        average(self, *args)

    monkeypatch.setattr(readers._Training, "_average", record_weights)
    result = fit(items, replace(TINY, epochs=3, averaged=2), tiny_folder)
    assert len(epoch_weights) == 3
    for name, value in epoch_weights[0].items():
        assert torch.allclose(result.tensors[name], (epoch_weights[1][name] + epoch_weights[2][name]) / 2, atol=1e-6)
        assert value.shape == result.tensors[name].shape
    assert result.config["best_epoch"] is None
    assert 0 <= result.config["averaged_value"] <= 1


def test_only_what_is_tuned_changes(items: pl.DataFrame, tiny_folder: Path, result: TrainingResult) -> None:
    """Without layers the heads learn alone; with all of them everything but word embeddings does."""
    before = loop.copy_weights(models.load_transformer(tiny_folder).module)
    headed = fit(items, replace(TINY, tuned_layers=0, epochs=1), tiny_folder)
    for name, value in before.items():
        assert torch.equal(headed.tensors[f"transformer.{name}"], value)
        if not name.endswith(("word_embeddings.weight", "key.bias")):  # keys' biases cancel in the softmax
            assert not torch.equal(result.tensors[f"transformer.{name}"], value)
    words = "embeddings.word_embeddings.weight"
    assert torch.equal(result.tensors[f"transformer.{words}"], before[words])


def test_a_batch_in_parts_is_the_same_batch(items: pl.DataFrame, tiny_folder: Path, result: TrainingResult) -> None:
    """Gradients of parts add up to those of the whole; states computed anew or in bfloat16 give about the same loss."""
    recipe = replace(TINY, dropout=0.0)
    losses = fit(items, recipe, tiny_folder).history["loss"].to_list()
    for changes, rel in (({"parts": 3}, 1e-3), ({"is_checkpointed": True}, 1e-3), ({"precision": "bfloat16"}, 0.2)):
        history = fit(items, replace(recipe, **changes), tiny_folder).history
        assert history["loss"].to_list() == pytest.approx(losses, rel=rel)


def test_hypernyms_make_more_items_to_learn_from(
    items: pl.DataFrame, tiny_folder: Path, result: TrainingResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small words of passages and options are replaced; none comes to equal another; validation items stay alone."""
    hypernym_of = {"soup": "dish", "cold": "nice", "late": "time", "see": "perceive"}
    monkeypatch.setattr(reading, "find_hypernym", hypernym_of.get)
    more = reading.augment(items, 1.0, 1)
    assert more["item_id"].to_list() == [f"i{i}+hypernyms" for i in range(12)]
    assert more["article"][0] == "See the dish and the house."  # capitals may be a name
    assert more["label"].to_list() == items["label"].to_list()
    for old, new in zip(items["options"].to_list(), more["options"].to_list(), strict=True):
        assert new == ["time" if option == "late" else option for option in old]  # nice is there already
    assert reading.augment(items, 0.0, 1).is_empty()
    half = reading.augment(items, 0.5, 1)
    assert half.equals(reading.augment(items, 0.5, 1))
    assert not half.equals(reading.augment(items, 0.5, 2))
    augmented = fit(items, replace(TINY, epochs=1, hypernyms=0.9), tiny_folder)
    assert augmented.history["count"].to_list() == [1]
    assert augmented.history["loss"][0] != result.history["loss"][0]


@pytest.mark.usefixtures("wordnet")
def test_hypernyms_are_wordnets() -> None:
    """A dog is a canine, years are time periods; to see is no noun, an entity a root, a qxv no word."""
    hypernym_of = {word: reading.find_hypernym(word) for word in ("dog", "years", "see", "entity", "qxv")}
    assert hypernym_of == {"dog": "canine", "years": "time period", "see": None, "entity": None, "qxv": None}


def test_long_questions_are_cut_around_the_placeholder(pieces: models.Pieces, items: pl.DataFrame) -> None:
    """Of a question the pieces next to the placeholder are read; letters glued to it do not hide it."""
    question = "day " * 9 + "[@placeholder]s " + "soup " * 9
    inputs = reading.read(items[:1].with_columns(question=pl.lit(question)), TINY, pieces, {})
    assert pieces.tokenizer.decode(inputs.before[0]) == "day day day day ["
    assert pieces.tokenizer.decode(inputs.after[0]) == "] s soup soup soup"
    with pytest.raises(BadInput, match="item i0: field 'question' should hold @placeholder, found 'none'"):
        reading.read(items[:1].with_columns(question=pl.lit("none")), TINY, pieces, {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stride": 41}, "stride should be 40 at most, the window, so that no piece is skipped; found 41"),
        ({"averaged": 2}, "averaged should be 1 at most, the epochs; found 2"),
        ({"parts": 17}, "parts should be 16 at most, the batch; found 17"),
        ({"smoothing": 1.0}, "smoothing should be a number from 0 to below 1"),
    ],
)
def test_recipes_are_checked(changes: dict[str, Any], message: str) -> None:
    """A number that is none, or does not go with the others, is refused with what was expected; no profile is."""
    for profile, recipe in PROFILES.items():
        assert make_recipe(profile, **asdict(recipe)) == recipe
    with pytest.raises(BadInput, match=message):
        make_recipe("filled", **changes)


def test_what_cannot_be_learnt_is_refused(items: pl.DataFrame, tiny_folder: Path) -> None:
    """One article only, sequences longer than the encoder reads, and a loss that is no number."""
    with pytest.raises(BadInput, match="at least two articles"):
        fit(items[:1], TINY, tiny_folder)
    with pytest.raises(BadInput, match=r"window of 40 pieces comes to 69 .* reads 64: take a window of 35 at most"):
        fit(items, replace(TINY, window=40), tiny_folder)
    with pytest.raises(BadInput, match="the loss is nan in epoch"):
        fit(items, replace(TINY, learning_rate=math.inf), tiny_folder)
