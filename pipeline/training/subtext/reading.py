"""The inputs of the subtext recogniser: comments and contexts as rows of vectors, and initial logits (CSD-28)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.models import ngrams
from pipeline.models.encoder import Encoder, IndexArray
from pipeline.models.subtext.recogniser import Shape
from pipeline.models.word_vectors import find_rows
from pipeline.text import segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Shape):
    """The hyperparameters of a training."""

    units: Literal["words", "characters", "pieces"] = "words"  # pieces: the tokens of a transformer
    tokenizer: Literal["jieba", "rjieba", "nltk"] = "jieba"
    vocabulary: int = 20_000  # vectors kept from the head of the list, besides those of the training texts
    longest: int = 128  # tokens of a text that are read
    has_context: bool = True  # False: every context is empty (ablation)
    is_tuned: bool = False  # also train the word vectors
    ngrams: int = 0  # fewest texts of an n-gram of the linear classifier; 0: no such classifier, as in the paper
    penalty: float = 0.5  # on the classifier's weights
    members: int = 1  # recognisers trained together, whose probabilities are averaged
    is_weighted: bool = False  # weight the classes equally
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 64
    epochs: int = 10
    seed: int = 42


@dataclass
class Inputs:
    """Distinct texts as rows of vectors, the row numbers of sentences and contexts, and the initial logits."""

    rows: list[Tensor]
    extra: Tensor | None  # rows of the vectors whose mean an unknown word gets
    texts: IndexArray
    contexts: IndexArray
    logits: Tensor | None

    def __post_init__(self) -> None:
        self.lengths = np.fromiter(map(len, self.rows), np.int64, len(self.rows))

    def __len__(self) -> int:
        return len(self.texts)

    def pad(self, rows: IndexArray) -> tuple[Tensor, Tensor]:
        """Return ids [n, t, channels], padded with 0, and lengths [n]."""
        ids = nn.utils.rnn.pad_sequence([self.rows[row] for row in rows], batch_first=True)
        return ids, torch.from_numpy(self.lengths[rows])


class Reader:
    """Turns texts into tensors, in training and in prediction."""

    def __init__(
        self, recipe: Recipe, words: Sequence[str], linear: ngrams.Ngrams | None, encoder: Encoder | None
    ) -> None:
        self.recipe, self.words, self.linear, self.encoder = recipe, words, linear, encoder
        self.place = {word: row for row, word in enumerate(words, 1)}  # row 0 is padding
        self.cut = segment.load_tokenizer(recipe.tokenizer).cut

    def tokenize(self, text: str) -> list[tuple[str, ...]]:
        """Return the tokens of a text: words, or characters, each with its word."""
        words = self.split_words(text)
        if self.recipe.units == "words":
            return [(word,) for word in words[: self.recipe.longest]]
        pairs: list[tuple[str, ...]] = [
            (letter, word) for word in words for letter in ([word] if segment.CODE.fullmatch(word) else word)
        ]
        return pairs[: self.recipe.longest]

    def read(self, texts: Sequence[str], contexts: Sequence[str]) -> Inputs:
        """Return the inputs of some texts and their contexts."""
        if not self.recipe.has_context:
            contexts = [""] * len(texts)
        distinct = {text: row for row, text in enumerate(dict.fromkeys([*texts, *contexts]))}
        rows, extra = self._index_pieces(list(distinct)) if self.encoder else self._index_words(list(distinct))
        logits = None
        if self.linear:
            logits = torch.from_numpy(self.linear.logits(texts, contexts, self.split_words)).float()
        numbers = np.array([[distinct[text] for text in column] for column in (texts, contexts)], np.int64)
        return Inputs(rows, extra, numbers[0], numbers[1], logits)

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text."""
        return segment.split_words(text, self.cut)

    def _index_words(self, texts: list[str]) -> tuple[list[Tensor], Tensor | None]:
        unknown_ids: dict[str, int] = {}

        def index(word: str) -> int:
            return self.place.get(word) or len(self.words) + 1 + unknown_ids.setdefault(word, len(unknown_ids))

        rows = []
        for text in texts:
            ids = [[index(word) for word in token] for token in self.tokenize(text)]
            channels = 1 if self.recipe.units == "words" else 2
            rows.append(torch.tensor(ids or [[0] * channels], dtype=torch.int64))
        means = [find_rows(self.place, word) or [0] for word in unknown_ids]
        width = max(map(len, means), default=1)
        return rows, torch.tensor([mean + [0] * (width - len(mean)) for mean in means]).reshape(-1, width)

    def _index_pieces(self, texts: list[str]) -> tuple[list[Tensor], None]:
        assert self.encoder is not None
        tokenizer = self.encoder.module.tokenizer
        ids = tokenizer(texts, truncation=True, max_length=min(self.recipe.longest, self.encoder.module.max_seq_length))
        return [torch.tensor(piece_ids, dtype=torch.int64).unsqueeze(1) + 1 for piece_ids in ids["input_ids"]], None
