"""Distributions of masked words by a transformer: the `hf` backend of NDD (sections 2.1 and 4.2; NDD-01, 02, 08, 29).

A sentence is its words with a blank between them, Chinese ones too, as the released code has it. A word is masked by
one mask however many pieces it has, as there, or by one for each of its pieces, as models with whole-word masking have
learnt to read it. Every ask is a row that goes through the encoder once; the head is asked at the masks alone.

The states of a sentence without masks, which cosines and BERTScore-like comparisons take, are here as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.encoder import PRECISIONS
from pipeline.models.recam import pretrained_reader as models

Masks = Literal["one", "pieces"]
"""What stands for a masked word: one mask, or as many as it has pieces."""

IndexArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Sentence = Sequence[str]

MASK_WORD = "\ue000mask"  # a word that is the mask itself: this very object, so that no text can say it

_WORDS = 65_536  # whose pieces are remembered


class _Asks(NamedTuple):
    """What is masked in which sentence, by places among the pieces of all sentences: [m] each."""

    begin: IndexArray  # of the sentence
    start: IndexArray  # of what is masked
    end: IndexArray
    stop: IndexArray  # of the sentence
    masks: IndexArray  # that stand there; where there is none the piece is asked that stands next
    is_before: npt.NDArray[np.bool_]  # the piece that stands before, not behind


@dataclass(frozen=True, slots=True, eq=False)
class MaskedLM:
    """A masked language model that is asked for words; `load` makes it.

    A sentence that is longer than the model reads is cut to the pieces around what is asked, as many on either side,
    and more on one where the other has fewer; of a masked word that is longer itself, so many pieces as are read.

    Held at once: the pieces of the sentences; of `batch` rows the encoder's states; and at most five times their log
    probabilities, 4 bytes for each piece of the vocabulary. On a CPU values differ by up to 1e-5 with the batch a row
    falls in.
    """

    module: Any  # a transformers model with its head
    pieces: models.Pieces
    word_pieces: Callable[[str], tuple[int, ...]]  # of a word, with a blank before it if it is not the first
    name: str
    revision: str
    masks: Masks
    batch: int
    precision: str

    @property
    def signature(self) -> str:
        """Kind, name, revision and options: what distances by it depend on."""
        return f"hf:{self.name}@{self.revision[:12]}|masks:{self.masks}|precision:{self.precision}"

    @property
    def mask_word(self) -> str:
        """A word that is read as a mask (the mask edit of section 5.2)."""
        return MASK_WORD

    @property
    def room(self) -> int:
        """Pieces of a sentence that the model reads."""
        return self.pieces.longest - len(self.pieces.before) - len(self.pieces.after)

    def cut(self, sentence: Sentence) -> list[tuple[int, ...]]:
        """The pieces of each word, which together are those of the words joined with blanks (NDD-08).

        What looks like a special piece is a word. A word is one without blanks in it; one without any piece, such as
        an empty one or a control character, has the piece of unknown words.
        """
        return [
            (self.pieces.mask,) if word is MASK_WORD else self.word_pieces(f" {word}" if at else word)
            for at, word in enumerate(sentence)
        ]

    def distributions(
        self, sentences: Sequence[Sentence], sentence: IndexArray, place: IndexArray
    ) -> Iterator[tuple[IndexArray, Tensor]]:
        """Log probabilities of the vocabulary where one word is masked, a batch at a time.

        Place -1 is what stands before the first word ([CLS]), place n what stands behind the last of n ([SEP]); nothing
        is masked there (NDD-09). With several masks a distribution is the mean of theirs.

        Args:
            sentences: each of its words.
            sentence: of each ask, [m].
            place: of the word in it, [m].

        Yields:
            Rows of the asks [b], the longest first, each once; and the log probabilities [b, vocabulary], float32, on
            the model's device. They are tensors of inference mode: not to be changed in place.

        Raises:
            BadInput: a sentence has no such place.
        """
        used, owner = np.unique(sentence, return_inverse=True)
        cut = [self.cut(sentences[at]) for at in used]
        count = np.array([len(words) for words in cut], np.int64)[owner]
        if (is_off := (place < -1) | (place > count)).any():
            at = int(is_off.argmax())
            raise BadInput(
                f"sentence {sentence[at]} has {count[at]} words: expected a place from -1 to {count[at]}, "
                f"found {place[at]}"
            )
        ids, bounds, first = _flat(cut)
        begin, stop = bounds[first[owner]], bounds[first[owner + 1]]
        word = first[owner] + np.maximum(place, 0)
        is_word = (place >= 0) & (place < count)
        start, end = bounds[word], bounds[word + is_word]
        masks = np.where(is_word & (self.masks == "one"), 1, end - start)
        yield from self._said(ids, _Asks(begin, start, end, stop, masks, place < 0))

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """-log p in nats of each piece of each sentence, each masked alone (section 2.1; NDD-01)."""
        ids, bounds, first = _flat([self.cut(sentence) for sentence in sentences])
        ends = bounds[first]
        sizes, start = np.diff(ends), np.arange(len(ids))
        one = np.ones_like(start)
        asks = _Asks(np.repeat(ends[:-1], sizes), start, start + 1, np.repeat(ends[1:], sizes), one, one < 0)
        found = np.empty(len(ids))
        for rows, said in self._said(ids, asks):
            truth = torch.from_numpy(ids[rows]).to(said.device)
            found[rows] = -said.gather(1, truth.unsqueeze(1)).squeeze(1).double().cpu().numpy()
        return np.split(found, ends[1:-1]) if sentences else []

    def states(self, sentences: Sequence[Sentence]) -> Iterator[tuple[int, Tensor]]:
        """The last hidden states of sentences without masks, each read once.

        Yields:
            Row of the sentence, the longest first; and its states [t, d], float32, on the model's device: of what
            stands before it ([CLS]), of its pieces, of what stands behind ([SEP]). Of a sentence longer than the model
            reads they are the first pieces.
        """
        cut = [np.fromiter(chain(*self.cut(sentence)), np.int64)[: self.room] for sentence in sentences]
        for rows in self._batches(np.array([len(ids) for ids in cut], np.int64)):
            found = self._encoded([cut[row] for row in rows])
            around = self.pieces.longest - self.room
            for row, states in zip(rows.tolist(), found, strict=True):
                yield row, states[: len(cut[row]) + around].float()

    def sentence_vectors(self, sentences: Sequence[Sentence]) -> Tensor:
        """The states of what stands before each sentence ([CLS]), for cosines (NDD-02): [n, d] float32, on the CPU."""
        found = torch.empty(len(sentences), self.module.config.hidden_size)
        for row, states in self.states(sentences):
            found[row] = states[0].cpu()
        return found

    def _said(self, ids: IndexArray, asks: _Asks) -> Iterator[tuple[IndexArray, Tensor]]:
        """Rows of the asks [b] and log probabilities [b, vocabulary]."""
        behind = asks.stop - asks.end
        masks = np.minimum(asks.masks, self.room)
        spare = self.room - masks
        left = np.minimum(asks.start - asks.begin, np.maximum(spare // 2, spare - behind))
        right = np.minimum(behind, spare - left)
        at = len(self.pieces.before) + left - asks.is_before
        for rows in self._batches(left + masks + right):
            sequences = [
                np.concatenate([ids[start - a : start], np.full(width, self.pieces.mask), ids[end : end + b]])
                for start, end, width, a, b in zip(
                    *(each[rows].tolist() for each in (asks.start, asks.end, masks, left, right)), strict=True
                )
            ]
            yield rows, self._asked(sequences, torch.from_numpy(at[rows]), torch.from_numpy(masks[rows].clip(min=1)))

    def _batches(self, lengths: IndexArray) -> Iterator[IndexArray]:
        """Rows by falling length, so that little is spent on padding, and too large a batch fails at once."""
        order = np.argsort(-lengths, kind="stable")
        for start in range(0, len(order), self.batch):
            yield order[start : start + self.batch]

    @torch.inference_mode()
    def _asked(self, sequences: list[IndexArray], at: Tensor, width: Tensor) -> Tensor:
        """Log probabilities at places [b] and so many after them [b], the mean of each row's: [b, vocabulary]."""
        states = self._encoded(sequences)
        at, width, row = at.to(states.device), width.to(states.device), torch.arange(len(at), device=states.device)
        found = self._head(states[row, at])
        for after in range(1, int(width.max())):  # one mask of each row at a time: no more than `batch` at once
            has = row[width > after]
            found[has] = torch.logaddexp(found[has], self._head(states[has, at[has] + after]))
        return found.sub_(width.log().unsqueeze(1))

    @torch.inference_mode()
    def _encoded(self, sequences: list[IndexArray]) -> Tensor:
        """States [b, t, d] of sequences, which get here what stands around them."""
        pieces, device = self.pieces, self.module.device
        around = len(pieces.before) + len(pieces.after)
        lengths = np.array([len(ids) + around for ids in sequences])
        ids = np.full((len(sequences), lengths.max()), pieces.pad)
        for row, sequence in zip(ids, sequences, strict=True):
            row[: len(sequence) + around] = [*pieces.before, *sequence, *pieces.after]
        is_there = np.arange(ids.shape[1]) < lengths[:, None]
        told = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(is_there.astype(np.int64))}
        if getattr(self.module.config, "type_vocab_size", 0) > 1:
            told["token_type_ids"] = torch.full(ids.shape, pieces.types[0])
        with self._cast():
            states: Tensor = self.module.base_model(
                **{name: each.to(device) for name, each in told.items()}
            ).last_hidden_state
        return states

    def _head(self, states: Tensor) -> Tensor:
        """Log probabilities [b, vocabulary] of states [b, d]."""
        with self._cast():
            said = models.logits(self.module, states)
        return said.float().log_softmax(dim=1)

    def _cast(self) -> Any:
        return torch.autocast(self.module.device.type, PRECISIONS["bfloat16"], enabled=self.precision == "bfloat16")


def _flat(cut: list[list[tuple[int, ...]]]) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Pieces of all sentences [p]; where each word begins in them [words + 1]; and each sentence in those [n + 1]."""
    words = list(chain.from_iterable(cut))
    bounds = np.cumsum([0, *map(len, words)])
    return np.fromiter(chain.from_iterable(words), np.int64, bounds[-1]), bounds, np.cumsum([0, *map(len, cut)])


def load(
    source: str | Path, *, masks: Masks = "one", batch: int = 64, precision: str = "float32", device: str = "cpu"
) -> MaskedLM:
    """Load a masked language model.

    Args:
        source: any model of transformers with a head for masked words, as `pretrained_reader.opened` names it: a
            folder, such as `undertone train masked-lm` writes, or `bert-base-cased@<commit>`.
        masks: one for a word, as released; or as many as it has pieces, for models with whole-word masking such as
            `hfl/chinese-roberta-wwm-ext@<commit>`.
        batch: rows that go through the encoder at once.
        precision: float32, or bfloat16 for what is multiplied.
        device: cpu or cuda.

    Raises:
        BadInput: an option is none; or the model cannot be opened, has no head, or says of no piece that it is unknown.
    """
    for told, known in ((masks, get_args(Masks)), (precision, PRECISIONS)):
        if told not in known:
            raise BadInput(f"expected one of {', '.join(known)}; found {told!r}")
    if batch < 1:
        raise BadInput(f"expected a batch of one row or more; found {batch}")
    found = models.opened(source, is_masked=True)
    if not found.is_headed:
        raise BadInput(
            f"{source}: has no head for masked words, so what it says of them is chance; give it one with "
            "`undertone train masked-lm`, or take a model that has one"
        )
    pieces, unknown = models.pieces(models.pieces_of(found)), found.tokenizer.unk_token_id
    if unknown is None or not (pieces.before and pieces.after):
        raise BadInput(
            f"{source}: expected a tokenizer with a piece for unknown words, and one before and behind texts"
        )
    pieces = pieces._replace(longest=_longest(found.module, pieces))
    word_pieces = lru_cache(_WORDS)(lambda word: tuple(pieces.cut([word])[0]) or (unknown,))
    name = Path(source).name if Path(source).is_dir() else found.name  # a folder's place says nothing of the model
    module = found.module.to(device).eval()
    return MaskedLM(module, pieces, word_pieces, name, found.revision, masks, batch, precision)


def _longest(module: Any, pieces: models.Pieces) -> int:
    """Pieces of a sequence; RoBERTa counts places from behind its padding piece, so that it has fewer than it says."""
    table: Any = getattr(getattr(module.base_model, "embeddings", None), "position_embeddings", None)
    if getattr(table, "padding_idx", None) is None:
        return pieces.longest
    return int(min(pieces.longest, table.num_embeddings - table.padding_idx - 1))
