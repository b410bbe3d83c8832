"""Do sentences of one group lie together? The pragmatic and the semantic space (ImpScore, section 6.4; IMP-39)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED

Floats = npt.NDArray[np.floating]

PERPLEXITY = 30.0  # of t-SNE with enough points


class Silhouettes(NamedTuple):
    """Mean silhouette coefficients in [-1, 1]: 1 where groups are separate, 0 where they mix."""

    pragmatic: float
    semantic: float


def silhouettes(pragmatic: Floats, semantic: Floats, groups: Sequence[object]) -> Silhouettes:
    """Measure how well the groups are separated in either space of features [n, l] (figures 11 to 13).

    The paper's claim is that groups of one intent in different words are tighter in the pragmatic space. BadInput for
    fewer than two groups, or if each row is its own group.
    """
    from sklearn.metrics import silhouette_score

    _, label = np.unique(np.array([str(group) for group in groups]), return_inverse=True)
    group_count = int(label.max(initial=-1)) + 1
    if not 2 <= group_count < len(label):
        sizes = f"{len(label)} in {group_count}"
        raise BadInput(f"a silhouette needs at least two groups, one with two sentences; got {sizes}")
    scores = (silhouette_score(np.asarray(space, np.float64), label) for space in (pragmatic, semantic))
    return Silhouettes(*(round(float(score), 6) for score in scores))


def lay_out(features: Floats, seed: int = SEED) -> npt.NDArray[np.float64]:
    """Lay out features [n, l] in the plane by t-SNE for drawing: [n, 2].

    Near points stay near, other distances mean nothing. The same features give the same points. Points that are all
    equal, or fewer than three, are laid in a row.
    """
    from sklearn.manifold import TSNE

    points = np.asarray(features, np.float64)
    if len(points) < 3 or not np.ptp(points, axis=0).any():
        return np.column_stack((np.arange(len(points), dtype=np.float64), np.zeros(len(points))))
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    init = "pca" if points.shape[1] > 1 else "random"
    layout = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(points)
    return np.asarray(layout, np.float64)
