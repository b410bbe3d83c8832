"""Import the checkpoint that the authors of ImpScore published, as a model on the encoder in force (IMP-45)."""

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput, refuse_damage
from pipeline.io.hashes import hash_file
from pipeline.tasks.impscore import in_force, train
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.encoders import load_encoder

CONVERT = (
    'python -c "import torch, safetensors.torch as s; s.save_file({k: v.clone().contiguous() for k, v in '
    "torch.load('model_state_dict_v_0_1_0.pth', 'cpu', weights_only=True).items()}, 'impscore.safetensors')\""
)


def read_checkpoint(path: Path, changes: Mapping[str, Any] | None = None) -> model_registry.TrainedModel:
    """Read the state of the authors' model from safetensors, with changes to the profile `official`.

    BadInput for another format, for other matrices, and for an encoder whose weights are not those in the file.
    """
    from safetensors.torch import load_file

    from pipeline.models.encoder import describe_encoder
    from pipeline.models.impscore import ImpScore, convert_checkpoint
    from pipeline.training.impscore import fit

    if path.suffix != ".safetensors":
        reason = "expected safetensors; a file of torch can run code and is not read"
        raise BadInput(f"{path}: {reason}. Convert: {CONVERT}")
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    with refuse_damage(path, "convert the checkpoint again"):
        tensors = load_file(path)
    matrices = convert_checkpoint(tensors)
    if "transform" not in matrices:
        raise BadInput(f"{path}: expected weight_p, weight_s and weight_t; found {', '.join(sorted(tensors)[:3])}")
    if changes and not {"profile", "features"}.isdisjoint(changes):
        raise BadInput("--set profile and --set features: the file decides them")
    recipe = fit.make_recipe("official", **(changes or {}), features=len(matrices["transform"]))
    encoder = load_encoder(normalize=recipe.normalize)
    try:
        ImpScore(encoder.dim, recipe.features, design=recipe.design).load_state_dict(matrices)
    except RuntimeError as error:
        raise BadInput(f"{path}: does not fit the encoder {encoder.name} and space={recipe.space}: {error}") from error
    weights = {re.sub(r"^encoder\.0\.(auto_)?model\.", "", name): value for name, value in tensors.items()}
    state = encoder.module[0].model.state_dict() if encoder.module else {}
    for name in weights.keys() & state.keys():
        if not weights[name].to(state[name].dtype).equal(state[name].cpu()):
            raise BadInput(
                f"{path}: was trained with another encoder than {encoder.name}, whose weight {name} differs; set "
                "UNDERTONE_ENCODER to the paper's all-mpnet-base-v2"
            )
    head = {**describe_encoder(encoder), "recipe": asdict(recipe)}
    facts = {"kind": in_force.KIND, "profile": "official", "data_hash": hash_file(path), "completion_models": []}
    evaluations = model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    named_matrices = {f"en.{name}": matrix for name, matrix in matrices.items()}
    trained = train.describe_model(named_matrices, {**facts, "heads": {"en": head}}, evaluations)
    bar = None if recipe.implicitness == "cosine" else train.UNBOUNDED
    return replace(trained, doubt="an imported model is promoted by request only", bar=bar)
