"""What the distance asks of a masked language model, whichever it is (NDD, section 2.1)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
Sentence = Sequence[str]


class MaskedModel(Protocol):
    """Distributions over a vocabulary for words that are masked one at a time."""

    @property
    def signature(self) -> str:
        """Return kind, name, revision and options, on which distances depend."""

    def distributions(
        self, sentences: Sequence[Sentence], sentence: IndexArray, place: IndexArray
    ) -> Iterator["tuple[IndexArray, Tensor]"]:
        """Yield log probabilities of the vocabulary with one word masked, a batch at a time.

        An ask is a sentence and the place of a word in it, [m] each. Place -1 is what stands before the first word
        ([CLS]), place n what stands behind the last of n ([SEP]); nothing is masked there (NDD-09).

        Yields:
            Rows of the asks [b], in any order, each once; and the log probabilities, [b, vocabulary].
        """

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """Return -log p in nats of each unit (piece or word) of each sentence, masked alone (section 2.1; NDD-01)."""
