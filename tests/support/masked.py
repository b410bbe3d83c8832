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
        self.asked = 0

    def distributions(
        self, sentences: Sequence[Sequence[str]], sentence: np.ndarray, place: np.ndarray
    ) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """In batches, backwards."""
        order = np.arange(len(sentence))[::-1].copy()
        self.asked += len(order)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            said = [self._said(list(sentences[sentence[row]]), int(place[row])) for row in rows]
            yield rows, torch.tensor(np.array(said), dtype=torch.float32).log_softmax(dim=1)

    def surprisals(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Of words."""
        found = []
        for words in sentences:
            self.asked += len(words)
            said = torch.tensor(np.array([self._said(list(words), at) for at in range(len(words))]).reshape(-1, WORDS))
            own = torch.tensor([_number(word) % WORDS for word in words], dtype=torch.int64)
            found.append(-said.log_softmax(dim=1)[torch.arange(len(words)), own].double().numpy())
        return found

    def sentence_vectors(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """One call a sentence."""
        self.asked += len(sentences)
        return torch.tensor(np.array([self._said(list(words), -1) for words in sentences]))

    def states(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, torch.Tensor]]:
        """A vector a word and one before and behind, the last sentence first."""
        for row in reversed(range(len(sentences))):
            self.asked += 1
            words = list(sentences[row])
            yield row, torch.tensor(np.array([self._said(list(words), at) for at in range(-1, len(words) + 1)]))

    def _said(self, words: list[str], place: int) -> np.ndarray:
        if 0 <= place < len(words):
            words[place] = "\0"
        key = _number("\1".join([*words, str(place) if not 0 <= place < len(words) else ""]))
        return np.random.default_rng(key).normal(size=WORDS)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
