"""The pretrained reader's network: how texts become sequences, how sequences become scores, what is loaded."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.recam import pretrained_reader as models
from pipeline.models.recam.pretrained_reader import Batch, LoadedTransformer, PretrainedReader, Shape, load_transformer
from pipeline.training import loop


@pytest.fixture(scope="module")
def bare(tiny_folder: Path) -> LoadedTransformer:
    return load_transformer(tiny_folder)


@pytest.fixture(scope="module")
def headed(tiny_folder: Path) -> LoadedTransformer:
    torch.manual_seed(3)
    return load_transformer(tiny_folder, is_masked=True)


def batch(**changes: Tensor) -> Batch:
    """Two items, each in two sequences, which serve all five options; the option or mask stands at places 1 and 2."""
    ids = torch.arange(5, 29).view(4, 6)
    is_piece, start, width = torch.ones(4, 6, dtype=torch.bool), torch.full((4,), 1), torch.full((4,), 2)
    item, serves = torch.tensor([0, 0, 1, 1]), torch.ones(4, 5, dtype=torch.bool)
    options = torch.tensor([[[20, -1], [21, 22], [23, -1], [24, 25], [26, 27]]] * 2)
    glosses = torch.tensor([[[30, 31, -1]] * 5] * 2)
    defaults = Batch(ids, is_piece, torch.zeros_like(ids), start, width, item, serves, options, glosses)
    return defaults._replace(**changes)


def reader(transformer: LoadedTransformer, **shape: Any) -> PretrainedReader:
    """A reader that drops nothing out."""
    torch.manual_seed(4)
    return PretrainedReader(transformer.module, Shape(**shape)).eval()


def test_sequences_become_scores_of_options() -> None:
    """Two windows of item 0 and one of item 1, where options 2 to 4 have a sequence of their own: by hand."""
    scores = torch.tensor([[1.0, 2, 9, 9, 9], [3, 0, 9, 9, 9], [9, 9, 5, 6, 7], [4, 5, 9, 9, 9], [9, 9, 1, 2, 3]])
    first, rest = [True, True, False, False, False], [False, False, True, True, True]
    windows = batch(item=torch.tensor([0, 0, 0, 1, 1]), serves=torch.tensor([first, first, rest, first, rest]))
    assert models.combine_windows(scores, windows, "max").tolist() == [[3, 2, 5, 6, 7], [4, 5, 1, 2, 3]]
    assert models.combine_windows(scores, windows, "mean").tolist() == [[2, 1, 5, 6, 7], [4, 5, 1, 2, 3]]


def test_the_wrong_answer_ensemble_excludes_likely_but_wrong_options() -> None:
    """softmax(0, ln 3, …) is (1, 3, 0, 0, 0)/4; not wrong are 3/4 and 1/4: 3/4 : 3/4 of 3, so that both are at 1/2."""
    right = torch.tensor([[0.0, 3.0, 0, 0, 0]]).log()
    right[0, 0] = 0.0
    wrong = torch.tensor([[-1.0, 1.0, 0, 0, 0]]) * torch.tensor(3.0).log()  # 1 - sigmoid: 3/4 and 1/4
    assert models.combine_heads(right, None, 1.0).exp()[0].tolist() == pytest.approx([0.25, 0.75, 0, 0, 0])
    assert models.combine_heads(right, wrong, 1.0).exp()[0].tolist() == pytest.approx([0.5, 0.5, 0, 0, 0])
    assert models.combine_heads(right, wrong, 2.0).exp()[0].tolist() == pytest.approx([0.75, 0.25, 0, 0, 0])
    assert models.combine_heads(right, wrong, 0.0).exp()[0].tolist() == pytest.approx([0.25, 0.75, 0, 0, 0])


@pytest.mark.parametrize("pool", ["option", "first", "mean"])
def test_a_filled_reader_scores_the_states_it_pools(bare: LoadedTransformer, pool: str) -> None:
    """The score is the head's of the option's states, the first or all, recomputed here; wrong answers have another."""
    model, sequences = reader(bare, pool=pool), batch()
    right, wrong = model(sequences)
    assert wrong is None
    states = bare.module(input_ids=sequences.ids).last_hidden_state
    pooled = {"option": states[:, 1:3].mean(1), "first": states[:, 0], "mean": states.mean(1)}[pool]
    expected = model.predict(model.dense(pooled).tanh())[:, 0]
    assert right[:, 0].tolist() == pytest.approx(expected.view(2, 2).amax(1).tolist(), abs=1e-5)
    right, wrong = reader(bare, pool=pool, wrong=1.0)(sequences)
    assert wrong is not None
    assert right.shape == wrong.shape == (2, 5)
    assert not torch.equal(right, wrong)


def test_a_masked_reader_scores_log_probabilities(headed: LoadedTransformer) -> None:
    """An option's score is the mean log probability of its pieces, by the whole model of transformers itself."""
    model = reader(headed, style="masked", windows_by="mean")
    sequences = batch(ids=batch().ids.index_fill(1, torch.tensor([1, 2]), 4))
    log_probabilities = headed.module(input_ids=sequences.ids).logits.log_softmax(-1)
    of_two = (log_probabilities[:, 1, 21] + log_probabilities[:, 2, 22]) / 2
    right, _ = model(sequences)
    assert right[:, 0].tolist() == pytest.approx(log_probabilities[:, 1, 20].view(2, 2).mean(1).tolist(), abs=1e-4)
    assert right[:, 1].tolist() == pytest.approx(of_two.view(2, 2).mean(1).tolist(), abs=1e-4)
    right, _ = model(sequences._replace(width=torch.tensor([1, 1, 1, 1])))  # one mask for all pieces
    of_two = (log_probabilities[:, 1, 21] + log_probabilities[:, 1, 22]) / 2
    assert right[:, 1].tolist() == pytest.approx(of_two.view(2, 2).mean(1).tolist(), abs=1e-4)


def test_new_heads_of_a_masked_reader_say_nothing_yet(headed: LoadedTransformer) -> None:
    """Glosses and wrong answers begin at silence; once learnt, a gloss counts by the mean of its embeddings."""
    model, plain = reader(headed, style="masked", has_gloss=True, wrong=1.0), reader(headed, style="masked")
    sequences = batch()
    right, wrong = model(sequences)
    assert torch.equal(right, plain(sequences)[0])
    assert wrong is not None
    assert wrong.tolist() == [[0.0] * 5] * 2
    torch.nn.init.eye_(model.ask.weight)
    states = headed.module.base_model(input_ids=sequences.ids).last_hidden_state[:, 1:3].mean(1)
    table = headed.module.get_input_embeddings().weight
    more = (states @ ((table[30] + table[31]) / 2)).view(2, 2)
    alone = sequences._replace(item=torch.arange(4), options=sequences.options[[0, 0, 1, 1]])
    expected = (plain(alone)[0][:, 0].view(2, 2) + more).amax(1)
    assert model(sequences)[0][:, 0].tolist() == pytest.approx(expected.tolist(), abs=1e-3)


def test_what_learns(tiny_folder: Path) -> None:
    """No layer, the last one, or all and what stands before them; word embeddings only on request."""
    for layers, is_embedding_tuned, number in ((0, False, 0), (1, False, 16), (100, False, 36), (1, True, 17)):
        module = load_transformer(tiny_folder).module
        models.freeze(module, layers, is_embedding_tuned)
        trainable = {name for name, value in module.named_parameters() if value.requires_grad}
        assert len(trainable) == number
        assert ("embeddings.word_embeddings.weight" in trainable) == is_embedding_tuned
        assert any(".0." in name for name in trainable) == (layers == 100)


def test_pieces_of_one_text_and_two(bare: LoadedTransformer) -> None:
    """What BERT and RoBERTa put around texts is found out; a piece that is written in a text is a word."""
    config = models.describe_tokenizer(bare)
    pieces = models.make_pieces(config)
    assert (pieces.before, pieces.between, pieces.after, pieces.types) == ([2], [3], [3], [0, 1])
    assert (pieces.mask, pieces.pad, pieces.longest) == (4, 0, 64)
    first, second = pieces.tokenize(["a nice day", "it [MASK] cold"])
    expected = bare.tokenizer("a nice day", "a")["input_ids"]
    assert [*pieces.before, *first, *pieces.between] == expected[: len(first) + 2]
    assert pieces.mask not in second
    roberta = models.describe_tokenizer(bare._replace(tokenizer=_roberta()))
    assert (roberta["before"], roberta["between"], roberta["after"]) == ([0], [2, 2], [2])
    assert roberta["types"] == [0, 0]


def _roberta() -> Any:
    """A tokenizer of words that puts around them what RoBERTa does."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.processors import RobertaProcessing
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3, "a": 4, "b": 5}, unk_token="<pad>"))
    inner.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", mask_token="<mask>", model_max_length=9)


def test_weights_go_back_where_they_were(headed: LoadedTransformer) -> None:
    """Built from its configuration and given its weights, a transformer says the same; other weights are refused."""
    architecture = models.describe_architecture(headed.module)
    assert not {"_name_or_path", "transformers_version"} & set(architecture)
    rebuilt = models.build_transformer(architecture, is_masked=True).eval()
    weights = loop.copy_weights(headed.module)
    assert not any("decoder" in name for name in weights)  # tied, so that it is there once
    loop.load_weights(rebuilt, weights)
    ids = batch().ids
    assert torch.equal(rebuilt(input_ids=ids).logits, headed.module.eval()(input_ids=ids).logits)
    with pytest.raises(BadInput, match=r"'elsewhere' \[3\] is of another model"):
        loop.load_weights(rebuilt, {"elsewhere": torch.zeros(3)})


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """A name without a commit, a folder without safetensors, a head that is not of one piece."""
    with pytest.raises(BadInput, match="needs a pinned revision: bert-base-cased@<commit>"):
        load_transformer("bert-base-cased")
    with pytest.raises(BadInput, match=r"no \.safetensors weights"):
        load_transformer(tmp_path)
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    config = DistilBertConfig(vocab_size=9, dim=8, n_layers=1, n_heads=1, hidden_dim=8, max_position_embeddings=8)
    assert not models.has_plain_head(DistilBertForMaskedLM(config))
