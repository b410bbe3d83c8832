"""Implicitness of texts by a trained ImpScore model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pipeline.errors import BadInput
from pipeline.models.encoder import Encoder, encode
from pipeline.models.impscore import ImpScore

DECIMALS = 6  # float32 sums move with the batch by some 1e-7


def model_from(tensors: dict[str, torch.Tensor], config: dict[str, Any], encoder: Encoder) -> ImpScore:
    """The model of a registry entry, for this encoder and no other."""
    if encoder.revision != config["encoder_revision"]:
        raise BadInput(
            f"the model was trained on encoder {config['encoder']} at {config['encoder_revision'][:12]}, "
            f"not on {encoder.name} at {encoder.revision[:12]}"
        )
    model = ImpScore(encoder.dim, config["recipe"]["features"])
    model.load_state_dict(tensors)
    return model.eval()


def implicitness(
    texts: Sequence[str], encoder: Encoder, model: ImpScore, done: Callable[[int], None] = lambda _: None
) -> npt.NDArray[np.float64]:
    """I of each text (equation 4): float64 [len(texts)] in [0, 2], rounded to 6 decimals."""
    vectors = torch.from_numpy(encode(encoder, texts, done))
    with torch.inference_mode():
        values = model(vectors).implicitness.numpy() if len(texts) else np.empty(0)
    return np.round(values.astype(np.float64), DECIMALS).clip(0.0, 2.0)
