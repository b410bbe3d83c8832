"""Implicitness and pragmatic distance of texts by a trained ImpScore model.

A model has one head for every language (`any`), or a head a language; each head knows the encoder it was fitted on.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from pipeline.errors import BadInput
from pipeline.models.adapter import load_adapter
from pipeline.models.encoder import Encoder, check_kind, encode
from pipeline.models.impscore import Design, ImpScore, Meaning, Readout, pragmatic_distance
from pipeline.progress import OnProgress

DECIMALS = 6  # float32 sums move with the batch by some 1e-7

LoadEncoder = Callable[[dict[str, Any]], Encoder]  # from a head's configuration


class Head(NamedTuple):
    """An encoder and what was fitted on it."""

    encoder: Encoder
    model: ImpScore
    readout: Readout | None = None


def load_heads(tensors: dict[str, torch.Tensor], config: dict[str, Any], load: LoadEncoder) -> dict[str, Head]:
    """Load the heads of a registry entry, by language, from its tensors (`<language>.<name>`) and configuration.

    `registry.Model.build` makes BadInput of files that do not fit together; an encoder that is another one than the
    head was fitted on is BadInput, and so is a variant that does not score within [0, 2].
    """
    check_kind(config, "impscore")
    heads = {}
    for name, head_config in config["heads"].items():
        encoder, recipe = load(head_config), head_config["recipe"]
        if encoder.revision != head_config["encoder_revision"]:
            trained_encoder = f"{head_config['encoder']} at {head_config['encoder_revision'][:12]}"
            this_encoder = f"{encoder.name} at {encoder.revision[:12]}"
            raise BadInput(f"the model was trained on encoder {trained_encoder}, not on {this_encoder}")
        if recipe.get("implicitness", "cosine") != "cosine":
            problem = "this model measures implicitness by Euclidean distance, for comparison only"
            raise BadInput(f"{problem}; it has no bound")
        head_tensors = _select_tensors(tensors, f"{name}.")
        weights = _select_tensors(head_tensors, "encoder.")
        design = Design(**{key: recipe[key] for key in Design._fields if key in recipe})
        options = {"hidden": recipe.get("hidden", 0), "last": encoder.last}
        model = ImpScore(encoder.dim, recipe["features"], design=design, **options)
        model_tensors = {k: v for k, v in head_tensors.items() if not k.startswith(("encoder.", "readout."))}
        model.load_state_dict({key: value.float() for key, value in model_tensors.items()})
        encoder = load_adapter(encoder, weights) if weights else encoder
        readout = {key: value.to(encoder.device) for key, value in _select_tensors(head_tensors, "readout.").items()}
        heads[name] = Head(encoder, model.eval().to(encoder.device), Readout(**readout) if readout else None)
    return heads


def _select_tensors(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def compute_meanings(texts: Sequence[str], head: Head, on_progress: OnProgress = lambda _: None) -> Meaning:
    """Compute the meanings of texts by one head, in their order."""

    def join_fields(vectors: torch.Tensor) -> torch.Tensor:
        meaning = _apply_head(head, vectors)
        return torch.cat([meaning.implicitness[:, None], meaning.pragmatic, meaning.semantic], dim=1)

    features = head.model.transform.shape[0]
    width = 1 + 2 * features
    values = torch.from_numpy(encode(head.encoder, texts, on_progress, reduce=join_fields, width=width))
    return Meaning(values[:, 0], values[:, 1 : 1 + features], values[:, 1 + features :])


def _apply_head(head: Head, vectors: torch.Tensor) -> Meaning:
    meaning: Meaning = head.model(vectors)
    return meaning._replace(implicitness=head.readout(vectors)) if head.readout else meaning


def implicitness(texts: Sequence[str], head: Head, on_progress: OnProgress = lambda _: None) -> npt.NDArray[np.float64]:
    """Compute I of each text (equation 4): float64 [len(texts)] in [0, 2], rounded to 6 decimals."""

    def apply(vectors: torch.Tensor) -> torch.Tensor:
        return _apply_head(head, vectors).implicitness[:, None]

    return _round_values(torch.from_numpy(encode(head.encoder, texts, on_progress, reduce=apply, width=1))[:, 0])


def _round_values(values: torch.Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(np.round(values.double().numpy(), DECIMALS).clip(0.0, 2.0), np.float64)


def widen(head: Head) -> Head:
    """Return the head in float64, on the CPU."""
    readout = head.readout and Readout(*(tensor.cpu().double() for tensor in head.readout))
    return head._replace(model=copy.deepcopy(head.model).cpu().double(), readout=readout)


def score_vectors(vectors: npt.NDArray[np.float16], head: Head) -> npt.NDArray[np.float64]:
    """Compute I of each embedding by a head in float64: the value does not depend on the rows next to it."""
    with torch.inference_mode():
        return _round_values(_apply_head(head, torch.from_numpy(vectors.astype(np.float64))).implicitness)


def measure_distances(
    first: Sequence[str], second: Sequence[str], head: Head, on_progress: OnProgress = lambda _: None
) -> npt.NDArray[np.float64]:
    """Compute ΔP of texts row by row (equation 6): float64 [len(first)], rounded to 6 decimals."""
    meaning = compute_meanings([*first, *second], head, on_progress)
    rows = torch.arange(len(first))
    values = pragmatic_distance(meaning.select(rows), meaning.select(rows + len(first)), head.model.design.pragmatics)
    return np.asarray(np.round(values.double().numpy(), DECIMALS), np.float64)


def score_triples(rows: pl.DataFrame, head: Head, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Compute I of the implicit, explicit and foreign sentence of each row, and ΔP of the first with each other.

    Returns i1, i2, i3, near, far: a row a row of `pairs`.
    """
    texts = [rows[side].to_list() for side in ("implicit", "explicit", "negative")]
    meaning = compute_meanings([text for side in texts for text in side], head, on_progress)
    s1, s2, s3 = (meaning.select(torch.arange(n * rows.height, (n + 1) * rows.height)) for n in range(3))
    values = {f"i{n}": s.implicitness for n, s in enumerate((s1, s2, s3), 1)}
    for name, side in (("near", s2), ("far", s3)):
        values[name] = pragmatic_distance(s1, side, head.model.design.pragmatics)
    return pl.DataFrame({name: value.double().numpy().round(DECIMALS) for name, value in values.items()})
