"""How well a model tells implicit from explicit (ImpScore, section 5.1), with the length baseline beside it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


def implicitness_accuracy(implicit: Floats, explicit: Floats) -> float:
    """Share of pairs with I(implicit) > I(explicit); a tie is wrong, as in the released code (IMP-25)."""
    return float(np.mean(implicit > explicit))


def pragmatics_accuracy(positive: Floats, negative: Floats) -> float:
    """Share of triples whose positive pair is closer than the negative one, ΔP+ < ΔP- (IMP-26)."""
    return float(np.mean(positive < negative))


def longer_is_implicit(implicit: Sequence[str], explicit: Sequence[str]) -> float:
    """Accuracy of calling the longer sentence the implicit one: what a model must beat to have learnt more."""
    one, other = (np.fromiter(map(len, texts), int, len(texts)) for texts in (implicit, explicit))
    return float(np.mean(one > other))
