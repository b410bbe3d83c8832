"""Distributions of masked words by a transformer: the `hf` backend of NDD (sections 2.1 and 4.2; NDD-01, 02, 08, 29).

A word is replaced by one mask, as in the released code, or by one for each of its pieces, for models with whole-word
masking. Words are joined by blanks, but for Chinese words whose pieces blanks would change. Every ask is one row of the
encoder. Where the head is modules one after another (BERT, RoBERTa, ALBERT, ELECTRA), it is computed at the masks only.
Else (DistilBERT, DeBERTa) the whole model runs.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline import left_out
from pipeline.errors import BadInput, check_name
from pipeline.models.devices import move
from pipeline.models.encoder import PRECISIONS, IndexArray
from pipeline.models.recam import pretrained_reader as models
from pipeline.models.recam.pretrained_reader import Pieces

MASK_WORD = "\ue000mask"  # a word that is the mask; compared by identity, so that no text can contain it
_WORDS = 65_536  # words whose pieces are cached
_ANCHORS = "。的一"  # what stands before a word in a text; the first that makes no piece with the word is used
_UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")  # Chinese, kana and their marks
Before = Literal["start", "blank", "word"]  # what stands before a word: nothing, a blank or another word


class WordPieces:
    """Split sentences into the pieces of their words; a word without pieces, such as an empty one, is unknown."""

    def __init__(self, pieces: Pieces, unknown: int) -> None:
        self.pieces, self.unknown = pieces, unknown
        self.ignores_blanks = pieces.tokenize(["天 气"]) == pieces.tokenize(["天气"])
        self._split_word = lru_cache(_WORDS)(self._split_word)  # type: ignore[method-assign]

    def split(self, sentence: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the pieces of each word; text that looks like a special piece is a word."""
        before: list[Before] = ["blank"] * len(sentence)
        before[:1] = ["start"] * len(before[:1])
        if not self.ignores_blanks:
            for index in range(1, len(sentence)):
                if _UNSPACED.match(sentence[index - 1][-1:]) or _UNSPACED.match(sentence[index]):
                    before[index] = "word"
        if "word" not in before and MASK_WORD not in sentence:
            return [*map(self._split_word, sentence, before)]
        pieces = self._split_text(sentence, before) if "word" in before else [()] * len(sentence)
        return [
            (self.pieces.mask,) if word is MASK_WORD else word_pieces or self._split_word(word, context)
            for word, word_pieces, context in zip(sentence, pieces, before, strict=True)
        ]

    def _split_text(self, sentence: Sequence[str], before: Sequence[Before]) -> list[tuple[int, ...]]:
        """Return the pieces of each word in the joined text; none of words that share a piece with another one."""
        parts = [" " * (context == "blank") + word for word, context in zip(sentence, before, strict=True)]
        ends = np.cumsum([*map(len, parts)])
        encoding = self.pieces.tokenizer.encode("".join(parts), add_special_tokens=False)
        start, stop = np.array(encoding.offsets, np.int64).reshape(-1, 2).T
        first, last = (np.searchsorted(ends, place, "right") for place in (start, np.maximum(start, stop - 1)))
        shared = {word for a, b in zip(first, last, strict=True) if a < b for word in range(a, b + 1)}
        word_ids: list[list[int]] = [[] for _ in sentence]
        for piece, word in zip(encoding.ids, first, strict=True):
            if word not in shared:
                word_ids[word].append(piece)
        return [*map(tuple, word_ids)]

    def _split_word(self, word: str, before: Before) -> tuple[int, ...]:
        for anchor in _ANCHORS if before == "word" else "":
            encoding = self.pieces.tokenizer.encode(anchor + word, add_special_tokens=False)
            if all(start >= 1 or stop <= 1 for start, stop in encoding.offsets):
                ids = [piece for piece, (start, _) in zip(encoding.ids, encoding.offsets, strict=True) if start]
                return tuple(ids) or (self.unknown,)
        text = f" {word}" if before == "blank" else word
        return tuple(self.pieces.tokenize([text])[0]) or (self.unknown,)


Masks = Literal["one", "pieces"]  # the masks of a word: one, or as many as it has pieces
Floats = npt.NDArray[np.float64]
Sentence = Sequence[str]
_CPU_BATCH, _GPU_BATCH = 64, 1_024  # rows
_GPU_FLOATS = 1 << 28  # of distributions that are kept on a GPU: 1 GiB
_LOGITS = 1 << 27  # outputs of the whole model at a time, 4 bytes each
_LONGEST = 1 << 16  # pieces of a sequence where neither model nor tokenizer states a limit


class _Asks(NamedTuple):  # the masked spans, as positions among the pieces of all sentences: [m] each
    begin: IndexArray  # of the sentence
    start: IndexArray  # of the masked span
    end: IndexArray
    stop: IndexArray  # of the sentence
    masks: IndexArray  # number of masks; without one, the adjacent piece is predicted
    is_before: npt.NDArray[np.bool_]  # whether that piece is the one before, not behind


@dataclass(frozen=True, slots=True, eq=False)
class MaskedLM:
    """A masked language model; `load` makes it.

    A sentence longer than the model's input is cut to the pieces around the masked span, equally on both sides where
    possible; a longer span is truncated. Memory holds the encoder's states of `batch` rows, and at most five times
    their log probabilities; where the whole model runs, those of up to 2^27 pieces. On a CPU values differ by up to
    1e-5 with the batch.
    """

    module: Any  # a transformers model with its head
    pieces: models.Pieces
    word_pieces: WordPieces
    name: str
    revision: str
    masks: Masks
    batch: int
    precision: str
    is_whole: bool = False  # whether the whole model predicts, and not its head at the masks

    @property
    def signature(self) -> str:
        """Return kind, name, revision and options: what distances by it depend on."""
        return f"hf:{self.name}@{self.revision[:12]}|masks:{self.masks}|precision:{self.precision}"

    @property
    def cache_size(self) -> int:
        """Return how many distributions may be kept: on a GPU many, so that its batches are full; 0 for the default."""
        return _GPU_FLOATS // self.module.config.vocab_size if self.module.device.type == "cuda" else 0

    @property
    def mask_word(self) -> str:
        """Return the word that stands for a mask (the mask edit of section 5.2)."""
        return MASK_WORD

    @property
    def room(self) -> int:
        """Return how many pieces of a sentence the model reads."""
        return self.pieces.longest - len(self.pieces.before) - len(self.pieces.after)

    def tokenize(self, sentence: Sentence) -> list[tuple[int, ...]]:
        """Return the pieces of each word (NDD-08)."""
        return self.word_pieces.split(sentence)

    def distributions(
        self, sentences: Sequence[Sentence], sentence: IndexArray, place: IndexArray
    ) -> Iterator[tuple[IndexArray, Tensor]]:
        """Compute log probabilities at masked words, in batches, as `metrics.ndd.distance.MaskedModel` has them.

        With several masks it is their mean. The longest sentences come first, float32 tensors of inference mode on the
        model's device. BadInput if a sentence has no such place.
        """
        used, owner = np.unique(sentence, return_inverse=True)
        sentence_pieces = [self.tokenize(sentences[i]) for i in used]
        count = np.array([len(words) for words in sentence_pieces], np.int64)[owner]
        if (is_outside := (place < -1) | (place > count)).any():
            i = int(is_outside.argmax())
            message = f"expected a place from -1 to {count[i]}, found {place[i]}"
            raise BadInput(f"sentence {sentence[i]} has {count[i]} words: {message}")
        ids, bounds, first = _flatten(sentence_pieces)
        begin, stop = bounds[first[owner]], bounds[first[owner + 1]]
        word = first[owner] + np.maximum(place, 0)
        is_word = (place >= 0) & (place < count)
        start, end = bounds[word], bounds[word + is_word]
        masks = np.where(is_word & (self.masks == "one"), 1, end - start)
        yield from self._predict(ids, _Asks(begin, start, end, stop, masks, place < 0))

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """Compute -log p in nats of each piece of each sentence, masked alone (section 2.1; NDD-01)."""
        ids, bounds, first = _flatten([self.tokenize(sentence) for sentence in sentences])
        ends = bounds[first]
        sizes, start = np.diff(ends), np.arange(len(ids))
        single = np.ones_like(start)
        asks = _Asks(np.repeat(ends[:-1], sizes), start, start + 1, np.repeat(ends[1:], sizes), single, single < 0)
        values = np.empty(len(ids))
        for rows, log_probabilities in self._predict(ids, asks):
            truth = torch.from_numpy(ids[rows]).to(log_probabilities.device)
            values[rows] = -log_probabilities.gather(1, truth.unsqueeze(1)).squeeze(1).double().cpu().numpy()
        return np.split(values, ends[1:-1]) if sentences else []

    def states(self, sentences: Sequence[Sentence]) -> Iterator[tuple[int, Tensor]]:
        """Compute the last hidden states of unmasked sentences, truncated to the model's input.

        Yields the row of a sentence, the longest first; and its states [t, d], float32, of [CLS], its pieces and [SEP].
        """
        ids, bounds, first = _flatten([self.tokenize(sentence) for sentence in sentences])
        start, stop = bounds[first[:-1]], bounds[first[1:]]
        counts = np.minimum(stop - start, self.room)
        if (counts < stop - start).any():
            note = "of longer sentences cosine and bertscore compare the beginning"
            left_out.record_note(f"{self.name} reads {self.room} pieces: {note}")
        columns = np.stack([start, start, *np.zeros((2, len(counts)), np.int64), counts], axis=1)
        for rows in self._batches(counts):
            features = self._build_features(ids, columns[rows])
            for row, states in zip(rows.tolist(), self._compute(features, is_whole=False), strict=True):
                yield row, states[: counts[row] + self.pieces.longest - self.room].float()

    def sentence_vectors(self, sentences: Sequence[Sentence]) -> Tensor:
        """Compute the [CLS] states of sentences, for cosines (NDD-02): [n, d] float32, on the CPU."""
        vectors = torch.empty(len(sentences), self.module.config.hidden_size)
        for row, states in self.states(sentences):
            vectors[row] = states[0].cpu()
        return vectors

    def _predict(self, ids: IndexArray, asks: _Asks) -> Iterator[tuple[IndexArray, Tensor]]:
        """Yield rows of the asks [b] and log probabilities [b, vocabulary]."""
        behind = asks.stop - asks.end
        masks = np.minimum(asks.masks, self.room)
        spare = self.room - masks
        before_count = np.minimum(asks.start - asks.begin, np.maximum(spare // 2, spare - behind))
        after_count = np.minimum(behind, spare - before_count)
        positions = len(self.pieces.before) + before_count - asks.is_before
        columns = np.stack([asks.start, asks.end, before_count, masks, after_count], axis=1)
        for rows in self._batches(before_count + masks + after_count):
            features = self._build_features(ids, columns[rows])
            yield rows, self._predict_masks(features, positions[rows], masks[rows].clip(min=1))

    def _batches(self, lengths: IndexArray) -> Iterator[IndexArray]:
        """Yield batches of rows, the longest first: little is padded, and too large a batch fails at once."""
        order, start = np.argsort(-lengths, kind="stable"), 0
        while start < len(order):
            width = (int(lengths[order[start]]) + self.pieces.longest - self.room) * self.module.config.vocab_size
            size = min(self.batch, max(1, _LOGITS // width)) if self.is_whole else self.batch
            yield order[start : start + size]
            start += size

    @torch.inference_mode()
    def _predict_masks(self, features: dict[str, Tensor], positions: IndexArray, width: IndexArray) -> Tensor:
        """Compute log probabilities, the mean over each row's masks from a position [b] on: [b, vocabulary]."""
        outputs = self._compute(features, self.is_whole)
        place, row = self._move(positions), torch.arange(len(positions), device=outputs.device)
        log_probabilities = self._predict_outputs(outputs[row, place])
        for offset in range(1, width.max()):  # one mask of each row at a time: no more than `batch` at once
            wide_rows = self._move(np.flatnonzero(width > offset))
            offset_values = self._predict_outputs(outputs[wide_rows, place[wide_rows] + offset])
            log_probabilities[wide_rows] = torch.logaddexp(log_probabilities[wide_rows], offset_values)
        return log_probabilities.sub_(self._move(np.log(width, dtype=np.float32)).unsqueeze(1))

    @torch.inference_mode()
    def _compute(self, features: dict[str, Tensor], is_whole: bool) -> Tensor:
        """Compute the states of sequences [b, t, d], or the whole model's logits [b, t, vocabulary]."""
        module, name = (self.module, "logits") if is_whole else (self.module.base_model, "last_hidden_state")
        with self._cast():
            outputs: Tensor = getattr(module(**features), name)
        return outputs

    def _predict_outputs(self, outputs: Tensor) -> Tensor:
        """Compute log probabilities [b, vocabulary] of states [b, d], or of the whole model's logits."""
        with self._cast():
            logits = outputs if self.is_whole else models.compute_logits(self.module, outputs)
        return logits.float().log_softmax(dim=1)

    def _build_features(self, ids: IndexArray, columns: IndexArray) -> dict[str, Tensor]:
        """Build the model's input [b, t]: some of `ids` before a span, masks in its place, and some behind it.

        The columns [b, 5] are the start and end of the span, and the counts of pieces before, masks and pieces behind.
        """
        pieces, (start, end, before, masks, after) = self.pieces, columns.T[..., None]
        count = before + masks + after
        column = np.arange(count.max() + len(pieces.before) + len(pieces.after)) - len(pieces.before)
        place = column + np.where(column < before, start - before, end - before - masks)
        sequences = np.append(ids, pieces.pad)[place.clip(0, len(ids))]
        sequences[(column >= before) & (column < before + masks)] = pieces.mask
        sequences[:, : len(pieces.before)] = pieces.before
        for offset, piece in enumerate(pieces.after):
            sequences[column - count == offset] = piece
        is_piece = column - count < len(pieces.after)
        sequences[~is_piece] = pieces.pad
        features = {"input_ids": sequences, "attention_mask": is_piece.astype(np.int64)}
        if getattr(self.module.config, "type_vocab_size", 0) > 1:
            features["token_type_ids"] = np.full_like(sequences, pieces.types[0])
        names = inspect.signature(self.module.forward).parameters
        return {name: self._move(array) for name, array in features.items() if name in names}

    def _move(self, array: npt.NDArray[Any]) -> Tensor:
        return move(torch.from_numpy(array), self.module.device.type)

    def _cast(self) -> Any:
        return torch.autocast(self.module.device.type, PRECISIONS["bfloat16"], enabled=self.precision == "bfloat16")


def _flatten(sentence_pieces: list[list[tuple[int, ...]]]) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the pieces of all sentences [p], the start of each word [words + 1], and each sentence's word [n + 1]."""
    words = list(chain.from_iterable(sentence_pieces))
    bounds, first = (np.cumsum([0, *map(len, parts)]) for parts in (words, sentence_pieces))
    return np.fromiter(chain.from_iterable(words), np.int64, bounds[-1]), bounds, first


def load(
    source: str | Path,
    *,
    masks: Masks = "one",
    batch: int | None = None,
    precision: str = "float32",
    device: str = "cpu",
) -> MaskedLM:
    """Load any `AutoModelForMaskedLM` of transformers, named as for `load_transformer`.

    That is a folder, such as `undertone train masked-lm` writes, or `bert-base-cased@<commit>`. A word has one mask, as
    released; or as many as it has `pieces`, for models with whole-word masking such as
    `hfl/chinese-roberta-wwm-ext@<commit>`. A batch is rows of the encoder at a time, by default 64, or 1,024 on a GPU;
    the precision is float32, or bfloat16 for matrix products. BadInput if an option is invalid; or the model cannot be
    loaded, has no head, or has no unknown piece.
    """
    check_name("masks", masks, get_args(Masks))
    check_name("precision", precision, PRECISIONS)
    batch = batch if batch is not None else _CPU_BATCH if device == "cpu" else _GPU_BATCH
    if batch < 1:
        raise BadInput(f"expected a batch of one row or more; found {batch}")
    transformer = models.load_transformer(source, is_masked=True)
    if not transformer.is_headed:
        problem = f"{source}: has no head for masked words, so its predictions are random; train one with"
        raise BadInput(f"{problem} `undertone train masked-lm`, or choose a model that has one")
    pieces, unknown = models.make_pieces(models.describe_tokenizer(transformer)), transformer.tokenizer.unk_token_id
    if unknown is None or not (pieces.before and pieces.after):
        expected = "a tokenizer with an unknown piece, and special pieces before and behind texts"
        raise BadInput(f"{source}: expected {expected}")
    pieces = pieces._replace(longest=_longest(transformer.module, pieces))
    module = transformer.module.to(device).eval()
    if "attention_mask" not in inspect.signature(module.forward).parameters:
        batch = 1  # padding would change what is predicted
    words, is_whole = WordPieces(pieces, unknown), not models.has_plain_head(module)
    if precision == "bfloat16":
        _cast_weights(module)
    return MaskedLM(module, pieces, words, transformer.name, transformer.revision, masks, batch, precision, is_whole)


def _cast_weights(module: Any) -> None:
    """Cast the weights of matrix products once, as autocast would in each batch; embeddings tied to one stay as is."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            for name, value in [*layer.named_parameters(recurse=False)]:
                setattr(layer, name, torch.nn.Parameter(value.to(PRECISIONS["bfloat16"]), requires_grad=False))


def _longest(module: Any, pieces: models.Pieces) -> int:
    """Return the longest sequence; RoBERTa numbers positions after its padding piece and has fewer than it states."""
    table: Any = getattr(getattr(module.base_model, "embeddings", None), "position_embeddings", None)
    if getattr(table, "padding_idx", None) is None:
        return min(pieces.longest, _LONGEST)
    return int(min(pieces.longest, table.num_embeddings - table.padding_idx - 1))
