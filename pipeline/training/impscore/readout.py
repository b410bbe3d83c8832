"""Fit what a distilled head reads its implicitness from: ridge regression of a judge's values on embeddings."""

import numpy as np
import torch

from pipeline.metrics.resample import Floats
from pipeline.models.encoder import Vectors
from pipeline.models.impscore import Readout

ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Penalties of the squared weights, of which that with the least error on validation texts is taken."""


def fit_readout(
    vectors: Vectors, values: Floats, validation_vectors: Vectors, validation_values: Floats
) -> tuple[Readout, float]:
    """Fit the readout to embeddings [n, dim] and values [n]; return it with its penalty.

    Without validation texts the penalty is 10.
    """
    from sklearn.linear_model import Ridge

    has_validation = len(validation_values) > 0
    models = [Ridge(alpha).fit(vectors, values) for alpha in (ALPHAS if has_validation else ALPHAS[2:3])]
    best = models[0]
    if has_validation:
        best = min(models, key=lambda m: float(np.mean((m.predict(validation_vectors) - validation_values) ** 2)))
    weight, bias = (torch.tensor(part, dtype=torch.float32) for part in (best.coef_, best.intercept_))
    return Readout(weight, bias), float(best.alpha)
