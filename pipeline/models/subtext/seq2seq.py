"""Sequence-to-sequence models for subtext recovery (CSD-03): comment and context in, meaning out.

They are commenters too (AAC-21, the pretrained option): title and content in, comment out. Any encoder-decoder of
transformers by its folder or pinned name; or one of random weights over the characters of the training texts.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from pipeline.io.atomic import check_empty, create_folder
from pipeline.models.decoding import Candidate, Decoding, Marks, State, decode
from pipeline.models.devices import choose_device
from pipeline.models.pinned import hash_model_folder, load_pretrained, locate_files, strip_path

Keep = Literal["end", "start"]
SOURCE, TARGET = 256, 192  # tokens read and written at most
BATCH = 16  # texts at a time
SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}  # T5's, in its order: 0, 1, 2


class Seq2Seq(NamedTuple):
    """A loaded encoder-decoder with its tokenizer, and what it is, for signatures."""

    name: str
    revision: str
    module: Any  # a transformers model with a head for generation
    tokenizer: Any  # transformers.PreTrainedTokenizerBase
    device: str


def load(name: str | Path, device: str | None = None) -> Seq2Seq:
    """Load a model and its tokenizer, named as for `locate_files`, by default on a GPU if there is one."""
    from transformers import AutoModelForSeq2SeqLM

    files = locate_files(name)
    device = choose_device(device)
    tokenizer, module, _ = load_pretrained(files.folder, AutoModelForSeq2SeqLM)
    return Seq2Seq(strip_path(name).partition("@")[0], files.revision, module.to(device).eval(), tokenizer, device)


def make_model(
    texts: Iterable[str], *, width: int = 64, layers: int = 2, dropout: float = 0.1, seed: int = 42
) -> Seq2Seq:
    """Make a small T5 of random weights, whose tokens are the characters of `texts`, with four heads, on the CPU."""
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = make_tokenizer(texts)
    marks = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    sizes = {"d_model": width, "d_kv": width // 4, "d_ff": 2 * width, "num_layers": layers, "num_heads": 4}
    config = T5Config(vocab_size=len(tokenizer), dropout_rate=dropout, **marks, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = T5ForConditionalGeneration(config)
    revision = hashlib.sha256(f"{seed} {tokenizer.backend_tokenizer.to_str()}".encode()).hexdigest()
    return Seq2Seq("characters", revision, module.eval(), tokenizer, "cpu")


def make_tokenizer(texts: Iterable[str]) -> Any:
    """Make a tokenizer of the single characters of `texts`, in order of code; others are one unknown token."""
    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    vocabulary = [*SPECIAL.values(), *sorted({character for text in texts for character in text})]
    end = SPECIAL["eos_token"]
    numbers = {token: number for number, token in enumerate(vocabulary)}
    inner = Tokenizer(WordLevel(numbers, unk_token=SPECIAL["unk_token"]))
    inner.pre_tokenizer = Split(Regex("(?m)."), "isolated")
    inner.decoder = decoders.Fuse()
    inner.post_processor = TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, numbers[end])]
    )
    # split_special_tokens: a comment that holds "</s>" has four characters there
    return PreTrainedTokenizerFast(tokenizer_object=inner, split_special_tokens=True, **SPECIAL)


def save(model: Seq2Seq, folder: Path, facts: dict[str, Any]) -> str:
    """Write model, tokenizer and facts (`facts.json`) as a new folder, complete or not at all; return its revision."""
    from transformers.utils import logging as transformers_logging

    check_empty(folder)
    transformers_logging.disable_progress_bar()
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, indent=1)
    with create_folder(folder) as draft:
        model.module.save_pretrained(draft)
        model.tokenizer.save_pretrained(draft)
        (draft / "facts.json").write_text(text, encoding="utf-8")
    return hash_model_folder(folder)


def encode_texts(
    model: Seq2Seq, texts: Sequence[str], contexts: Sequence[str | None], longest: int = SOURCE, keep: Keep = "end"
) -> dict[str, Tensor]:
    """Encode comments, each followed by its context: token ids and mask [n, ≤ longest].

    Of a long context the end is kept, which stands nearest to the comment: as many characters as leave room for the
    comment's. Of an article's content the start is to be kept: the tokenizer cuts the longer one's end.
    """
    context_texts = [context or "" for context in contexts]
    if keep == "end":
        sizes = [max(longest - len(text) - 2, 0) for text in texts]
        context_texts = [text[-size:] if size else "" for text, size in zip(context_texts, sizes, strict=True)]
    options: dict[str, Any] = {"truncation": "longest_first", "padding": True, "return_token_type_ids": False}
    encoded = model.tokenizer(list(texts), context_texts, max_length=longest, return_tensors="pt", **options)
    return {key: value.to(model.device) for key, value in encoded.items()}


def _iterate_inputs(
    model: Seq2Seq, texts: Sequence[str], contexts: Sequence[str | None], longest: int, keep: Keep
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Yield the inputs of some texts at a time, with the number of the first."""
    for start in range(0, len(texts), BATCH):
        part = slice(start, start + BATCH)
        yield start, encode_texts(model, texts[part], contexts[part], longest, keep)


def generate(
    model: Seq2Seq,
    texts: Sequence[str],
    contexts: Sequence[str | None],
    beams: int = 4,
    max_tokens: int = TARGET,
    longest: int = SOURCE,
) -> list[str]:
    """Generate the most likely meaning of each comment by beam search; `longest` tokens are read, as in training."""
    unknown = model.tokenizer.unk_token_id
    options: dict[str, Any] = {"num_beams": beams, "do_sample": False, "max_new_tokens": max_tokens}
    options["suppress_tokens"] = None if unknown is None else [unknown]
    meanings: list[str] = []
    for _, inputs in _iterate_inputs(model, texts, contexts, longest, "end"):
        with torch.inference_mode():
            output = model.module.generate(**inputs, **options)
        meanings += _decode_texts(model, output)
    return meanings


def _decode_texts(model: Seq2Seq, token_ids: Any) -> list[str]:
    texts = model.tokenizer.batch_decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return [text.strip() for text in texts]


class GeneratedText(NamedTuple):
    """A text that was written."""

    text: str
    log_probability: float  # natural, as the model has it, whatever it was drawn by


def generate_candidates(
    model: Seq2Seq,
    texts: Sequence[str],
    contexts: Sequence[str | None],
    decoding: Decoding,
    *,
    longest: int = SOURCE,
    keep: Keep = "end",
) -> list[list[GeneratedText]]:
    """Write texts by beam search or sampling with their log probabilities, `decoding.best` of each.

    `generate` leaves the search to transformers; samples of this one do not depend on batches. A word is a token here.
    """
    rows: list[list[GeneratedText]] = []
    for start, inputs in _iterate_inputs(model, texts, contexts, longest, keep):
        for candidates in _search(model, inputs, decoding, start):
            decoded = _decode_texts(model, [ids for ids, _ in candidates])
            rows.append([GeneratedText(text, value) for text, (_, value) in zip(decoded, candidates, strict=True)])
    return rows


@torch.inference_mode()
def _search(model: Seq2Seq, inputs: dict[str, Tensor], decoding: Decoding, first: int) -> list[list[Candidate]]:
    from transformers import DynamicCache, EncoderDecoderCache
    from transformers.modeling_outputs import BaseModelOutput

    module, tokenizer, width = model.module, model.tokenizer, decoding.width
    values = module.get_encoder()(**inputs).last_hidden_state, inputs["attention_mask"]
    states, mask = (value.repeat_interleave(width, dim=0) for value in values)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    rows = torch.arange(len(states), device=model.device)

    def step(last: Tensor, state: State) -> tuple[Tensor, State]:
        """Continue each hypothesis from the row that the state holds; hypotheses of a source read the same."""
        cache.self_attention_cache.reorder_cache(state[0].flatten())
        inputs = {"encoder_outputs": BaseModelOutput(states), "attention_mask": mask}
        logits = module(**inputs, decoder_input_ids=last.reshape(-1, 1), past_key_values=cache, use_cache=True).logits
        return logits.float().log_softmax(dim=2).reshape(*last.shape, -1), (rows.reshape(last.shape),)

    never = tuple(token for token in (tokenizer.pad_token_id, tokenizer.unk_token_id) if token is not None)
    marks = Marks(module.config.decoder_start_token_id, tokenizer.eos_token_id, never)
    return decode(step, (rows[::width],), len(states) // width, decoding, marks, model.device, first)
