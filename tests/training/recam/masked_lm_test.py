"""Adapting a transformer to masked words: what is masked, what is learnt, that it can be resumed and loaded."""

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models.recam import pretrained_reader as models
from pipeline.training import loop
from pipeline.training.loop import TrainingResult
from pipeline.training.recam import masked_lm
from pipeline.training.recam.masked_lm import Recipe, fit, make_recipe, mask_pieces, write
from tests.support.killed import check_resuming, equal_weights

WORDS = product(("i", "we", "you", "they", "he", "she"), ("a", "the", "this", "that", "some", "it"))
TEXTS = [f"{first} see {second} nice day at the door" for first, second in WORDS]
SMALL = Recipe(longest=12, held=0.2, learning_rate=0.01, batch=8, epochs=2, masked=0.3)


@pytest.fixture(scope="module")
def gentle(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny transformer with smaller weights, as those that learn have: random states drown what is learnt else."""
    from transformers import AutoConfig, AutoTokenizer, BertModel

    folder, config = tmp_path_factory.mktemp("gentle"), AutoConfig.from_pretrained(tiny_folder)
    config.initializer_range = 0.1
    torch.manual_seed(1)
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_folder).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def result(tiny_folder: Path) -> TrainingResult:
    return fit(TEXTS, SMALL, tiny_folder)


def test_what_is_masked() -> None:
    """Of 40,000 places 15 % are drawn, of those 80 % masked, 10 % another piece, 10 % as they were (Devlin et al.)."""
    ids, is_allowed = torch.full((200, 200), 7), torch.ones(200, 200, dtype=torch.bool)
    is_allowed[:, 0] = False
    masked_ids, is_target = mask_pieces(ids, is_allowed, 0.15, 4, 1000, torch.Generator().manual_seed(1))
    assert not is_target[:, 0].any()
    assert is_target[:, 1:].float().mean().item() == pytest.approx(0.15, abs=0.01)
    assert torch.equal(masked_ids[~is_target], ids[~is_target])
    targets = masked_ids[is_target]
    for share, expected in (((targets == 4), 0.8), ((targets == 7), 0.1), ((targets != 4) & (targets != 7), 0.1)):
        assert share.float().mean().item() == pytest.approx(expected, abs=0.02)


def test_masked_words_are_learnt(gentle: Path) -> None:
    """Held-out cross entropy falls below what guessing by frequency alone comes to, 2.53 nats.

    Of eight pieces six are always the same and two are one of six each: Σ p log 1/p over 6 of 1/8 and 12 of 1/48.
    """
    result = fit(TEXTS, replace(SMALL, epochs=15), gentle)
    assert result.history["cross_entropy"][0] > 2.53
    assert result.history["cross_entropy"].min() < 1.5
    assert result.history["accuracy"].max() > 0.4
    assert result.history["count"].n_unique() == 1
    assert result.config["best_epoch"] == result.history["cross_entropy"].arg_min() + 1


def test_a_new_head_begins_at_how_frequent_pieces_are(tiny_folder: Path) -> None:
    """The bias is log((count + 1) / (all + vocabulary)) of the training texts; word embeddings do not learn."""
    torch.manual_seed(0)
    transformer = models.load_transformer(tiny_folder, is_masked=True)
    assert not transformer.is_headed
    bias = transformer.module.get_output_embeddings().bias
    masked_lm._set_unigram_bias(transformer.module, [torch.tensor([9, 9, 8])])
    assert bias[[9, 8, 7]].tolist() == pytest.approx([math.log(n / (3 + len(bias))) for n in (3, 2, 1)], abs=1e-5)
    frozen = fit(TEXTS, replace(SMALL, epochs=1), tiny_folder)
    words = "embeddings.word_embeddings.weight"
    assert torch.equal(frozen.tensors[f"bert.{words}"], dict(transformer.module.base_model.named_parameters())[words])
    tuned = fit(TEXTS, replace(SMALL, epochs=1, is_embedding_tuned=True, tuned_layers=0), tiny_folder)
    assert not torch.equal(tuned.tensors[f"bert.{words}"], frozen.tensors[f"bert.{words}"])


def test_goes_on_where_it_was_stopped(tiny_folder: Path, tmp_path: Path, result: TrainingResult) -> None:
    """Killed after its first epoch and started again it ends with the same bits; a text counts once."""
    state = tmp_path / "state"
    check_resuming(lambda: fit([*TEXTS, TEXTS[0]], SMALL, tiny_folder, state), result)
    assert not equal_weights(fit(TEXTS, replace(SMALL, seed=1, epochs=1), tiny_folder).tensors, result.tensors)
    with pytest.raises(BadInput, match="a training on other data"):
        fit(TEXTS[1:], SMALL, tiny_folder, state)


def test_written_it_is_a_folder_of_transformers(tiny_folder: Path, tmp_path: Path, result: TrainingResult) -> None:
    """AutoModelForMaskedLM and AutoTokenizer load it; it holds no pickle; trained on, it keeps its head."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = tmp_path / "adapted"
    write(folder, result)
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".safetensors", ".txt"}
    model, loading_info = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not any(loading_info.values())
    assert equal_weights(loop.copy_weights(model), result.tensors)
    pieces = models.make_pieces(models.describe_tokenizer(models.load_transformer(tiny_folder)))
    ids = AutoTokenizer.from_pretrained(folder)("a nice day", add_special_tokens=False)["input_ids"]
    assert ids == pieces.tokenize(["a nice day"])[0]
    transformer = models.load_transformer(folder, is_masked=True)
    assert transformer.is_headed
    bias = transformer.module.get_output_embeddings().bias.detach().clone()
    continued = fit(TEXTS, replace(SMALL, learning_rate=1e-9, epochs=1), folder)
    assert torch.allclose(continued.tensors["cls.predictions.bias"], bias, atol=1e-6)  # and does not start again
    facts = json.loads((folder / "undertone.json").read_text())
    assert facts["encoder_revision"] == models.load_transformer(tiny_folder).revision
    assert len(facts["history"]) == 2
    with pytest.raises(OSError, match="not empty"):
        write(folder, result)
    assert not list(tmp_path.glob(".draft-*"))


def test_long_texts_are_cut_into_equal_parts(tiny_folder: Path) -> None:
    """A text of 10 pieces in sequences of 5 of its own becomes two of 5; each begins and ends as one text does."""
    pieces = models.make_pieces(models.describe_tokenizer(models.load_transformer(tiny_folder)))
    rows, is_held = masked_lm._make_sequences(["day " * 10, "day", ""], pieces, replace(SMALL, longest=7, held=0.4))
    assert sorted(map(len, rows)) == [3, 7, 7]
    assert {(int(row[0]), int(row[-1])) for row in rows} == {(2, 3)}
    assert 0 < is_held.sum() < 3


def test_precision_and_memory_are_options(tiny_folder: Path, result: TrainingResult) -> None:
    """In bfloat16 or with states computed again nearly the same is learnt; matrices alone decay."""
    for changes, rel in (({"precision": "bfloat16"}, 0.1), ({"is_checkpointed": True}, 1e-4)):
        history = fit(TEXTS, replace(SMALL, **changes), tiny_folder).history
        for name in ("loss", "cross_entropy"):
            assert history[name].to_list() == pytest.approx(result.history[name].to_list(), rel=rel)
    slow, new = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    slow.bias.requires_grad_(False)
    optimiser = masked_lm.make_optimiser(torch.nn.ModuleList([slow, new]), 0.1, 0.5, faster=10.0, slow=slow)
    groups = [(group["lr"], group["weight_decay"], len(group["params"])) for group in optimiser.param_groups]
    assert sorted(groups) == [(0.1, 0.5, 1), (1.0, 0.0, 1), (1.0, 0.5, 1)]


def test_the_learning_rate_rises_and_falls() -> None:
    """Of ten steps two rise to the full rate, then it falls to an eighth of it; or it stays."""
    value = torch.nn.Parameter(torch.zeros(2, 2))
    optimiser = masked_lm.make_optimiser(torch.nn.ParameterList([value]), 0.8, 0.0)
    rates = []
    for step in range(10):
        masked_lm.set_learning_rate(optimiser, step, 10, 0.2)
        rates.append(optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.4, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    masked_lm.set_learning_rate(optimiser, 9, 10, 0.2, is_falling=False)
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.8)


def test_what_cannot_be_learnt_is_refused(tiny_folder: Path) -> None:
    """One text, sequences longer than the encoder reads, a loss that is no number, and a share of everything."""
    with pytest.raises(BadInput, match="two that are not empty at least, found 1"):
        fit(["a day", "a day", "", " "], SMALL, tiny_folder)
    with pytest.raises(BadInput, match="longest should be from 3 to 64; found 65"):
        fit(TEXTS, replace(SMALL, longest=65), tiny_folder)
    with pytest.raises(BadInput, match="the loss is nan in epoch"):
        fit(TEXTS, replace(SMALL, learning_rate=math.inf), tiny_folder)
    with pytest.raises(BadInput, match="held should be a number above 0 to below 1"):
        make_recipe("embedded", held=1.0)
