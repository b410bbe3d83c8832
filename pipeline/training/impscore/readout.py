"""Fit what a distilled head reads its implicitness from: ridge regression of a judge's values on embeddings."""

import numpy as np
import numpy.typing as npt
import torch

from pipeline.metrics.resample import Floats
from pipeline.models.impscore import Readout

ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Penalties of the squared weights, of which that with the least error on validation texts is taken."""

Vectors = npt.NDArray[np.float32]


def fit_readout(
    vectors: Vectors, values: Floats, validation_vectors: Vectors, validation_values: Floats
) -> tuple[Readout, float]:
    """Fit the readout to embeddings [n, dim] and values [n]; return it with its penalty.

    Without validation texts the middle penalty is taken.
    """
    from sklearn.linear_model import Ridge

    if not len(validation_values):
        models = [Ridge(ALPHAS[len(ALPHAS) // 2]).fit(vectors, values)]
        best = 0
    else:
        models = [Ridge(alpha).fit(vectors, values) for alpha in ALPHAS]
        errors = [np.mean((model.predict(validation_vectors) - validation_values) ** 2) for model in models]
        best = int(np.argmin(errors))
    weight, bias = (torch.tensor(part, dtype=torch.float32) for part in (models[best].coef_, models[best].intercept_))
    return Readout(weight, bias), float(models[best].alpha)
