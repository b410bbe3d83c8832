"""A masked language model of no sense, for tests: each context has distributions of its own, drawn from its hash."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch

WORDS = 7  # of its vocabulary
BATCH = 5


class Drawn:
    """Distributions that depend on every word but the masked one; it counts what it is asked."""

    signature = "drawn"

    def __init__(self) -> None:
        self.ask_count = 0

    def distributions(
        self, sentences: Sequence[Sequence[str]], sentence: np.ndarray, place: np.ndarray
    ) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """In batches, backwards."""
        order = np.arange(len(sentence))[::-1].copy()
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            logits = self._draw([(sentences[sentence[row]], int(place[row])) for row in rows])
            yield rows, logits.float().log_softmax(dim=1)

    def surprisals(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Of words."""
        values = []
        for words in sentences:
            logits = self._draw([(words, place) for place in range(len(words))])
            number = torch.tensor([_number(word) % WORDS for word in words], dtype=torch.int64)
            values.append(-logits.log_softmax(dim=1)[torch.arange(len(words)), number].numpy())
        return values

    def sentence_vectors(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """One call a sentence."""
        return self._draw([(words, -1) for words in sentences])

    def _draw(self, asks: Sequence[tuple[Sequence[str], int]]) -> torch.Tensor:
        self.ask_count += len(asks)
        rows = np.empty((len(asks), WORDS))
        for row, (words, place) in zip(rows, asks, strict=True):
            is_word = 0 <= place < len(words)
            texts = ["\0" if is_word and i == place else word for i, word in enumerate(words)]
            key = _number("\1".join([*texts, "" if is_word else str(place)]))
            row[:] = np.random.default_rng(key).normal(size=WORDS)
        return torch.tensor(rows)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
