"""What the subtext recogniser reads: comments and contexts as rows of vectors, and where its logits begin (CSD-28)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pipeline.models import ngrams
from pipeline.models.encoder import Encoder
from pipeline.models.subtext.recogniser import Comparison, Pooling
from pipeline.models.word_vectors import rows_of
from pipeline.text import segment

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training."""

    units: Literal["words", "characters", "pieces"] = "words"  # pieces: those of a transformer
    tokenizer: Literal["jieba", "rjieba", "nltk"] = "jieba"
    vocabulary: int = 20_000  # first words of the vectors that are kept beside those of the training texts
    longest: int = 128  # tokens of a text that are read
    hidden: int = 128
    meaning: int = 64
    pooling: Pooling = "last"
    is_bidirectional: bool = False
    comparison: Comparison = "linear"
    has_context: bool = True  # without: every context is empty (ablation)
    is_tuned: bool = False  # train the words' vectors along
    ngrams: int = 0  # texts that an n-gram of the linear classifier stands in; 0: there is none, as in the paper
    penalty: float = 0.5  # on its weights
    members: int = 1  # recognisers trained side by side, whose probabilities are averaged
    is_weighted: bool = False  # rare classes count more, so that each has the same weight
    dropout: float = 0.0
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 64
    epochs: int = 10
    seed: int = 42


class Inputs:
    """Texts as rows of vectors, each distinct one once; which are sentences and which contexts; where logits begin."""

    def __init__(
        self, rows: list[Tensor], extra: Tensor | None, texts: list[int], contexts: list[int],
        said: Floats | None,
    ) -> None:  # fmt: skip
        self.rows, self.extra = rows, extra
        self.said = None if said is None else torch.from_numpy(said).float()
        self.texts, self.contexts = np.array(texts, np.int64), np.array(contexts, np.int64)
        self.lengths = np.fromiter(map(len, rows), np.int64, len(rows))

    def __len__(self) -> int:
        return len(self.texts)

    def padded(self, rows: IndexArray) -> tuple[Tensor, Tensor]:
        """Ids [n, t, channels], 0 where a text has ended, and lengths [n]."""
        ids = nn.utils.rnn.pad_sequence([self.rows[row] for row in rows], batch_first=True)
        return ids, torch.from_numpy(self.lengths[rows])


class Reader:
    """Makes tensors of texts: the same way when a recogniser learns and when it is asked."""

    def __init__(
        self, recipe: Recipe, words: Sequence[str], linear: ngrams.Ngrams | None, encoder: Encoder | None
    ) -> None:
        self.recipe, self.words, self.linear, self.encoder = recipe, words, linear, encoder
        self.place = {word: row for row, word in enumerate(words, 1)}  # row 0 is padding
        self.cut = segment.load_tokenizer(recipe.tokenizer).cut

    def tokens(self, text: str) -> list[tuple[str, ...]]:
        """The tokens of a text: words; or characters, each with the word it stands in."""
        words = self.words_of(text)
        if self.recipe.units == "words":
            return [(word,) for word in words[: self.recipe.longest]]
        pairs: list[tuple[str, ...]] = [
            (letter, word) for word in words for letter in ([word] if segment.CODE.fullmatch(word) else word)
        ]
        return pairs[: self.recipe.longest]

    def read(self, texts: Sequence[str], contexts: Sequence[str]) -> Inputs:
        """Everything of some texts that batches are made of."""
        if not self.recipe.has_context:
            contexts = [""] * len(texts)
        distinct = {text: row for row, text in enumerate(dict.fromkeys([*texts, *contexts]))}
        rows, extra = self._pieces(list(distinct)) if self.encoder else self._rows(list(distinct))
        said = self.linear.logits(texts, contexts, self.words_of) if self.linear else None
        return Inputs(rows, extra, [distinct[text] for text in texts], [distinct[text] for text in contexts], said)

    def words_of(self, text: str) -> list[str]:
        """The words of a text."""
        return segment.split_words(text, self.cut)

    def _rows(self, texts: list[str]) -> tuple[list[Tensor], Tensor | None]:
        unknown: dict[str, int] = {}
        found = []
        for text in texts:
            ids = [
                [self.place.get(word) or len(self.words) + 1 + unknown.setdefault(word, len(unknown)) for word in token]
                for token in self.tokens(text)
            ]
            channels = 1 if self.recipe.units == "words" else 2
            found.append(torch.tensor(ids or [[0] * channels], dtype=torch.int64))
        means = [rows_of(self.place, word) or [0] for word in unknown]
        width = max(map(len, means), default=1)
        return found, torch.tensor([mean + [0] * (width - len(mean)) for mean in means]).reshape(-1, width)

    def _pieces(self, texts: list[str]) -> tuple[list[Tensor], None]:
        assert self.encoder is not None
        cut = self.encoder.module.tokenizer
        ids = cut(texts, truncation=True, max_length=min(self.recipe.longest, self.encoder.module.max_seq_length))
        return [torch.tensor(one, dtype=torch.int64).unsqueeze(1) + 1 for one in ids["input_ids"]], None
