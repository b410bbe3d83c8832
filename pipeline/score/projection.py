"""Texts on a map: places in two dimensions, near those of texts that an encoder finds alike."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline import __version__
from pipeline.models.encoder import Encoder, encode
from pipeline.progress import OnProgress
from pipeline.score.signature import name_encoder

SEED = 0
_COMPONENTS = 50  # principal ones, of which the map is made
_NEIGHBOURS = 30  # t-SNE's perplexity
_DECIMALS = 4


def sign(encoder: Encoder) -> str:
    """Build the signature of places: method, encoder, seed and code version."""
    name = name_encoder(encoder.name, encoder.revision)
    return f"projection|tsne|encoder:{name}|{encoder.precision}|seed:{SEED}|undertone:{__version__}"


def place(texts: Sequence[str], encoder: Encoder, on_progress: OnProgress = lambda _: None) -> npt.NDArray[np.float64]:
    """Place distinct texts by t-SNE of the first principal components of their embeddings: float64 [len(texts), 2].

    It starts from the first two components. One thread computes it, so that it is the same again on one machine.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    vectors = encode(encoder, texts, on_progress)
    if len(texts) < 5 or (vectors == vectors[0]).all():
        return np.zeros((len(texts), 2))
    with threadpool_limits(1):
        pca = PCA(min(_COMPONENTS, *vectors.shape), svd_solver="randomized", random_state=SEED)
        components = pca.fit_transform(vectors)
        start = components[:, :2] / components[:, 0].std() * 1e-4  # as small as scikit-learn's own
        perplexity = min(_NEIGHBOURS, (len(texts) - 1) / 3)
        tsne = TSNE(2, perplexity=perplexity, init=start, random_state=SEED, n_jobs=1)
        return np.asarray(tsne.fit_transform(components), np.float64).round(_DECIMALS)
