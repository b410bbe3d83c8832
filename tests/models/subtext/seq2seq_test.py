"""Sequence-to-sequence models: the tokenizer of characters, what is read of a comment, models as folders (CSD-03)."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models.decoding import Decoding
from pipeline.models.subtext import seq2seq
from pipeline.models.subtext.seq2seq import Seq2Seq

TEXTS = ["又陪老板看月亮。", "公交等了一小时\n散步就是养生嘛 ok"]


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    """A model of random weights that knows the characters above."""
    return seq2seq.make_model(TEXTS, width=32, layers=1)


def read(model: Seq2Seq, text: str, context: str | None, longest: int = 99, keep: seq2seq.Keep = "end") -> str:
    """Return what the model reads of a comment, with the marks between."""
    (ids,) = seq2seq.encode_texts(model, [text], [context], longest, keep)["input_ids"]
    return str(model.tokenizer.decode(ids))


@settings(deadline=None)
@given(st.text(st.sampled_from(sorted(set("".join(TEXTS)))), max_size=20))
def test_characters_come_back(text: str) -> None:
    """Every text of known characters, blanks and line feeds among them, is a token each, an end, and itself again."""
    tokenizer = seq2seq.make_tokenizer(TEXTS)
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == len(text) + 1
    assert ids[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False) == text


def test_other_characters_are_unknown() -> None:
    """A character that the texts lack has the unknown token; the order of texts does not matter."""
    tokenizer = seq2seq.make_tokenizer(["好好", "好"])
    assert tokenizer("好坏")["input_ids"] == [3, tokenizer.unk_token_id, tokenizer.eos_token_id]
    assert tokenizer.get_vocab() == {"<pad>": 0, "</s>": 1, "<unk>": 2, "好": 3}
    assert seq2seq.make_tokenizer(["乙甲", "甲"]).get_vocab() == seq2seq.make_tokenizer(["甲", "甲乙"]).get_vocab()


def test_a_comment_holds_no_marks_of_ours(model: Seq2Seq) -> None:
    """`</s>` in a comment is four characters and ends nothing."""
    ids = model.tokenizer("老</s>板<pad>")["input_ids"]
    assert len(ids) == 12
    assert ids.count(model.tokenizer.eos_token_id) == 1
    assert model.tokenizer.pad_token_id not in ids


@pytest.mark.parametrize(
    ("text", "longest", "keep", "expected"),
    [
        ("看月亮", 99, "end", "看月亮</s>公交等了一小</s>"),
        # what stands nearest to the comment is read, and the comment whole
        ("看月亮", 9, "end", "看月亮</s>等了一小</s>"),
        ("看月亮", 6, "end", "看月亮</s>小</s>"),
        ("看月亮", 5, "end", "看月亮</s></s>"),
        # what a content begins with is read, after a title that is shorter than it
        ("看月亮", 12, "start", "看月亮</s>公交等了一小</s>"),
        ("看月亮", 9, "start", "看月亮</s>公交等了</s>"),
        ("看月亮", 8, "start", "看月亮</s>公交等</s>"),
        # a comment longer than the model reads loses its end, not its mark
        ("又陪老板看月亮。", 6, "end", "又陪老板</s></s>"),
    ],
)
def test_what_is_read_of_long_texts(model: Seq2Seq, text: str, longest: int, keep: seq2seq.Keep, expected: str) -> None:
    """The comment comes first, then its context (CSD-01), of a long one the end or the start, as asked for."""
    assert read(model, text, "公交等了一小", longest, keep) == expected
    assert read(model, "看月亮", None) == read(model, "看月亮", "") == "看月亮</s></s>"


COMMENTS = ["看月亮", "养生", "魑魅", "公交等了一小时"], ["公交", None, "", "又陪老板看月亮"]


def sharpen(model: Seq2Seq) -> Seq2Seq:
    """Return the model with larger weights, so that some words are much likelier than others."""
    tensors = {name: value * 3 for name, value in model.module.state_dict().items()}
    other = seq2seq.make_model(TEXTS, width=32, layers=1)
    other.module.load_state_dict(tensors)
    return other


def make_bart() -> Seq2Seq:
    """Make a BART of random weights, which begins with the mark that ends."""
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = seq2seq.make_tokenizer(TEXTS)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64, init_std=0.7,
        pad_token_id=0, bos_token_id=2, eos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(4)
    return Seq2Seq("bart", "0" * 40, BartForConditionalGeneration(config).eval(), tokenizer, "cpu")


@pytest.mark.parametrize("kind", ["t5", "bart"])
@pytest.mark.parametrize("beams", [1, 3])
def test_log_probabilities_are_the_models(model: Seq2Seq, kind: str, beams: int) -> None:
    """What search tells of a text is the loss of the model given that text; greedy it is what transformers writes."""
    seq2seq_model = sharpen(model) if kind == "t5" else make_bart()
    read = seq2seq.encode_texts(seq2seq_model, *COMMENTS)
    candidates = seq2seq._search(seq2seq_model, read, Decoding(beams=beams, best=beams, longest=6), 0)
    for i, row in enumerate(candidates):
        for tokens, log_probability in row:
            end = [seq2seq_model.tokenizer.eos_token_id] if len(tokens) < 6 else []  # the longest has no end
            labels = tokens + end
            alone = {key: value[i : i + 1] for key, value in read.items()}
            with torch.no_grad():
                loss = seq2seq_model.module(**alone, labels=torch.tensor([labels])).loss
            assert log_probability == pytest.approx(-float(loss) * len(labels), abs=1e-3)
    if beams == 1 and kind == "t5":
        greedy = seq2seq.generate_candidates(seq2seq_model, *COMMENTS, Decoding(method="greedy", longest=6))
        assert [row[0].text for row in greedy] == seq2seq.generate(seq2seq_model, *COMMENTS, beams=1, max_tokens=6)


def test_samples_depend_on_their_seed_alone(model: Seq2Seq, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same texts in batches of any size; beam search has no chance, nor unknown tokens."""
    seq2seq_model = sharpen(model)

    def sample(seed: int = 42) -> list[list[str]]:
        decoding = Decoding(method="sample", best=3, longest=6, seed=seed)
        rows = seq2seq.generate_candidates(seq2seq_model, *COMMENTS, decoding)
        return [[candidate.text for candidate in row] for row in rows]

    texts = sample()
    assert "<unk>" not in str(texts)
    assert sample(7) != texts
    for batch in (1, 3):
        monkeypatch.setattr(seq2seq, "BATCH", batch)
        assert sample() == texts
    assert seq2seq.generate_candidates(seq2seq_model, [], [], Decoding()) == seq2seq.generate(model, [], []) == []
    meanings = seq2seq.generate(model, *COMMENTS, beams=3, max_tokens=7)
    torch.manual_seed(1)
    assert meanings == seq2seq.generate(model, *COMMENTS, beams=3, max_tokens=7)
    assert all(len(text) <= 7 and "<unk>" not in text for text in meanings)


def test_a_saved_model_is_loaded_as_any_other(model: Seq2Seq, tmp_path: Path) -> None:
    """The folder holds safetensors and JSON alone; what is loaded of it writes the same; its hash is its revision."""
    revision = seq2seq.save(model, tmp_path / "models" / "one", {"epochs": 3})
    folder = tmp_path / "models" / "one"
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert [path.name for path in folder.parent.iterdir()] == ["one"]
    assert json.loads((folder / "facts.json").read_text()) == {"epochs": 3}
    loaded = seq2seq.load(folder, device="cpu")
    assert (loaded.name, loaded.revision) == ("one", revision)
    arguments = (["看月亮", "养生"], ["公交</s>", None], 2, 9)
    assert seq2seq.generate(loaded, *arguments) == seq2seq.generate(model, *arguments)
    assert len(loaded.tokenizer("老</s>板")["input_ids"]) == 7
    with pytest.raises(BadInput, match="is there already"):
        seq2seq.save(model, folder, {})
