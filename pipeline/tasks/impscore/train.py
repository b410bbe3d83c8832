"""Train ImpScore models on pairs and graded groups, evaluate them, and import the authors' checkpoint (IMP-45)."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing, check_name, refuse_damage
from pipeline.examples.impscore import groups as graded
from pipeline.examples.splits import SEED, SPLIT_OF
from pipeline.io.hashes import hash_file
from pipeline.metrics.impscore import artefacts
from pipeline.metrics.resample import Floats
from pipeline.progress import OnProgress
from pipeline.score.signature import ANY
from pipeline.tasks.impscore import scoring
from pipeline.tasks.impscore.pairs import load_all_pairs
from pipeline.tasks.record import model_registry, promotion
from pipeline.tasks.record.encoders import load_encoder
from pipeline.tasks.record.model_registry import TrainedModel
from pipeline.training.registry import Model

PROFILE = "undertone"
UNBOUNDED = "its scores are not bounded by 2"  # why a model is never promoted
SHOWN_METRICS = {
    "implicitness_accuracy": "implicit", "pragmatics_accuracy": "pragmatic", "kendall_tau": "tau",
    "spearman_rho": "rho", "choice_accuracy": "choice",
}  # fmt: skip


def read_shipped_groups(lang: str) -> pl.DataFrame:
    """Read the graded groups of the sample: group, level, text, split."""
    return graded.add_split(graded.read(sample.GROUPS[lang]))


def train(day: str, *, promote: bool = False, run_id: str = "cli", **options: Any) -> str:
    """Train with options of `fit_model`; a model of the sample's pairs is promoted by request only. Return its id."""

    def fit() -> TrainedModel:
        rows = load_all_pairs()
        if not rows.height:
            raise Missing("the table pairs is empty; add pairs first: `undertone pairs build --help`")
        groups = {lang: read_shipped_groups(lang) for lang in sample.GROUPS}
        trained = fit_model(rows, groups, completion_models=_list_completion_models(rows), **options)
        is_trial = set(trained.completion_models) == {sample.MODEL}
        is_bounded = all(head["recipe"]["implicitness"] == "cosine" for head in trained.config["heads"].values())
        return replace(
            trained,
            doubt="a trial: it saw the sample's pairs alone" if is_trial else None,
            bar=None if is_bounded else UNBOUNDED,
            make_held_out=lambda: make_held_out(rows),
        )

    return model_registry.train(day, fit, run_id, promote=promote)


def train_file(
    rows: pl.DataFrame, out: Path, groups: Sequence[Path] | None = None, *, force: bool = False, **options: Any
) -> tuple[str, pl.DataFrame]:
    """Train on rows of `pairs` and groups of files into a folder; return its id and its evaluations."""

    def fit() -> TrainedModel:
        by_lang = {lang: read_shipped_groups(lang) for lang in sample.GROUPS} | read_groups(groups or ())
        completion_models = _list_completion_models(rows) if rows["completion_id"].null_count() < rows.height else []
        return fit_model(rows, by_lang, completion_models=completion_models, **options)

    return model_registry.train_into(out, fit, force=force)


def make_held_out(pairs: pl.DataFrame) -> list[promotion.HeldOut]:
    """Hold out pairs, by both accuracies of which models are compared, the first with surface baselines too."""
    rows, train_pairs = promotion.select_held_out(pairs), pairs.filter(pl.col("split") == "train")

    def answer(model: Model, value: pl.Expr) -> Floats:
        return promotion.count_shares(scoring.score_triples(rows, model.model_id).select(value).to_series())

    if not rows.height:
        return []
    baselines = {}
    for name in artefacts.BASELINES if train_pairs.height else ():
        scores = artefacts.score_pairs(train_pairs, rows, name)
        wins = [np.sign(scores[0] - foreign) + 1 for foreign in scores[1:]]
        baselines[name] = promotion.count_shares((wins[0] + wins[1]) / 4)
    i1, i2, i3 = map(pl.col, ("i1", "i2", "i3"))
    implicitness = ((i1 > i2).cast(pl.Float64) + (i1 > i3).cast(pl.Float64)) / 2
    pragmatics = (pl.col("near") < pl.col("far")).cast(pl.Float64)
    held_out = partial(promotion.HeldOut, texts=rows["implicit"])
    return [
        held_out(metric="implicitness_accuracy", answer=partial(answer, value=implicitness), baselines=baselines),
        held_out(metric="pragmatics_accuracy", answer=partial(answer, value=pragmatics)),
    ]


def read_groups(paths: Sequence[Path]) -> dict[str, pl.DataFrame]:
    """Read graded groups of files by the language of most of a group: group, level, text, split."""
    if not paths:
        return {}
    files = [graded.read(path) for path in paths]
    names = Counter(name for file in files for name in file["group"].unique())
    if duplicates := sorted(name for name, count in names.items() if count > 1):
        raise BadInput(f"group {duplicates[0]!r} is in more than one file; give each group its own name")
    rows = graded.add_split(pl.concat(files)).with_columns(lang=graded.find_language())
    return {str(lang): part.drop("lang") for (lang,), part in rows.partition_by("lang", as_dict=True).items()}


def _list_completion_models(rows: pl.DataFrame) -> list[str]:
    completions = warehouse.scan("completions").select("completion_id", "model").unique().collect()
    return rows.join(completions, on="completion_id", how="left")["model"].drop_nulls().unique().sort().to_list()


def choose_split(profile: str) -> str:
    """Choose how pairs are split for a profile."""
    return SPLIT_OF[check_name("profile", profile, SPLIT_OF)]


def evaluate(rows: pl.DataFrame, model: str | None = None, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Evaluate a model on rows of `pairs`; those of other pairs than its own are test unless it learned from them."""
    trained = scoring.load_model(model)
    if hash_in_order(rows) != trained.config.get("pairs_hash"):
        rows = model_registry.split_seen(rows, "implicit", trained.model_id)
    return evaluate_triples(rows, scoring.score_triples(rows, model, on_progress))


def evaluate_triples(rows: pl.DataFrame, triples: pl.DataFrame) -> pl.DataFrame:
    """Evaluate the `scoring.score_triples` of rows of `pairs`; return rows of `evaluations` without keys."""
    from pipeline.training.impscore import heads

    return heads.evaluate(rows, triples, SEED).drop("epoch")


def select_headline(evaluations: pl.DataFrame) -> dict[str, object]:
    """Select both accuracies over all pairs of the shown split."""
    rows = evaluations.filter(subset="all", split=_find_shown_split(evaluations))
    values = dict(rows.select("metric", "value").iter_rows())
    accuracies = {name: values.get(name) for name in ("implicitness_accuracy", "pragmatics_accuracy")}
    return {"accuracy": accuracies["implicitness_accuracy"], **accuracies}


def _find_shown_split(evaluations: pl.DataFrame) -> str:
    """Find the split that has baselines: test where there is one."""
    has_baseline = pl.col("baseline").is_not_null() & ~pl.col("subset").str.starts_with("groups:")
    splits = evaluations.filter(has_baseline)["split"]
    return str(splits[0]) if len(splits) else "test"


def summarize_evaluations(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Show one row for each subset of the held-out split, beside its best artefact baseline."""
    is_group = pl.col("subset").str.starts_with("groups:")
    is_shown_split = pl.col("split") == _find_shown_split(evaluations)
    is_held_out = (~is_group & is_shown_split) | (is_group & (pl.col("split") == "test"))
    rows = evaluations.filter(is_held_out & pl.col("metric").is_in(SHOWN_METRICS))
    rows = rows.with_columns(pl.col("metric").replace_strict(SHOWN_METRICS)).rename({"pair_count": "n"})
    baselines = rows.filter(pl.col("baseline").is_not_null()).select("subset", "baseline", by="baseline_name")
    wide = rows.pivot("metric", index=["split", "subset", "n"], values="value", maintain_order=True)
    wide = wide.join(baselines.unique("subset", keep="first"), on="subset", how="left", maintain_order="left")
    order = ["split", "subset", "n", *SHOWN_METRICS.values(), "baseline", "by"]
    return wide.select(name for name in order if name in wide.columns)


def fit_model(
    pairs: pl.DataFrame,
    groups: Mapping[str, pl.DataFrame],
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    on_progress: OnProgress = lambda _: None,
    completion_models: Sequence[str] = (),
) -> TrainedModel:
    """Fit a model on rows of `pairs`, with one head, or a head for each language of the groups that it uses."""
    from pipeline.models import encoder as encoders
    from pipeline.training.impscore import fit, heads

    recipe = fit.make_recipe(profile, **(changes or {}))
    if (pairs["source"] == "all").any():
        raise BadInput("a source cannot be named all: that names the numbers over all sources")
    if "pooling" not in (changes or {}) and not encoders.is_layered(settings.encoder()):
        recipe = replace(recipe, pooling="model")
    groups = groups if recipe.group_sharpness else {}
    langs = sorted(groups)
    data_hash = hash_in_order(pairs, *(groups[lang] for lang in langs))
    trained_heads = {}
    embeddings = settings.scratch("embeddings")
    for name in langs or [ANY]:
        encoder_name = choose_encoder(name)
        head_recipe = replace(recipe, tune="none") if encoder_name == "characters" else recipe  # it has no weights
        encoder = load_encoder(name=encoder_name, pooling=recipe.pooling, normalize=recipe.normalize)
        state = model_registry.locate_state(data_hash, name, encoder.key, asdict(head_recipe))
        is_of_head = pl.lit(name == ANY) | (pl.col("lang") == name)
        if name == "en":  # also pairs of the languages without a head
            is_of_head |= ~pl.col("lang").is_in(langs)
        inputs = (pairs.filter(is_of_head), groups.get(name))
        trained_heads[name] = heads.fit(*inputs, head_recipe, encoder, embeddings, state, on_progress)
    config = {
        "kind": scoring.KIND, "profile": profile, "data_hash": data_hash, "pairs_hash": hash_in_order(pairs),
        "groups": graded.hash_groups(*(rows.filter(pl.col("split") != "test") for rows in groups.values())),
        "completion_models": list(completion_models),
        "heads": {name: head.config for name, head in trained_heads.items()},
    }  # fmt: skip
    tensors = {f"{name}.{key}": value for name, head in trained_heads.items() for key, value in head.tensors.items()}
    evaluations = heads.evaluate_heads(pairs, list(trained_heads.items()), recipe.seed)
    trained = describe_model(tensors, config, evaluations)
    return replace(trained, texts=_list_texts(pairs), labelled=_list_texts(pairs.filter(pl.col("split") != "test")))


def _list_texts(pairs: pl.DataFrame) -> pl.Series:
    return pl.concat([pairs[name].alias("text") for name in ("implicit", "explicit", "negative")])


def describe_model(tensors: dict[str, Any], config: dict[str, Any], evaluations: pl.DataFrame) -> TrainedModel:
    """Describe a model for the tables: its encoders and the recipe of each head; without its training texts."""
    heads = config["heads"]
    names = ("encoder", "encoder_revision")
    encoders: dict[str, Any] = {name: ", ".join(dict.fromkeys(head[name] for head in heads.values())) for name in names}
    return TrainedModel(
        kind=scoring.KIND,
        tensors=tensors,
        config=config,
        evaluations=evaluations,
        texts=None,
        summary={name: head["recipe"] for name, head in heads.items()},
        completion_models=config["completion_models"],
        **encoders,
    )


def choose_encoder(head: str) -> str:
    """Choose the encoder of a head: that of the setting, but character n-grams for Chinese instead of the embedded."""
    encoder = settings.encoder()
    return "characters" if head == "zh" and encoder == "embedded" else encoder


def hash_in_order(*frames: pl.DataFrame) -> str:
    """Hash rows in their order by SHA-256, to name what a model was trained on."""
    digest = hashlib.sha256()
    for frame in frames:
        lines = frame.select(pl.concat_str(pl.all().cast(pl.String), separator="\t", ignore_nulls=True)).to_series()
        digest.update("\n".join(lines).encode())
    return digest.hexdigest()


CONVERT = (
    'python -c "import torch, safetensors.torch as s; s.save_file({k: v.clone().contiguous() for k, v in '
    "torch.load('model_state_dict_v_0_1_0.pth', 'cpu', weights_only=True).items()}, 'impscore.safetensors')\""
)


def read_checkpoint(path: Path, changes: Mapping[str, Any] | None = None) -> model_registry.TrainedModel:
    """Read the state of the authors' model from safetensors, with changes to the profile `official`."""
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
            problem = f"{path}: was trained with another encoder than {encoder.name}, whose weight {name} differs; set"
            raise BadInput(f"{problem} UNDERTONE_ENCODER to the paper's all-mpnet-base-v2")
    head = {**describe_encoder(encoder), "recipe": asdict(recipe)}
    facts = {"kind": scoring.KIND, "profile": "official", "data_hash": hash_file(path), "completion_models": []}
    evaluations = model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    named_matrices = {f"en.{name}": matrix for name, matrix in matrices.items()}
    trained = describe_model(named_matrices, {**facts, "heads": {"en": head}}, evaluations)
    bar = None if recipe.implicitness == "cosine" else UNBOUNDED
    return replace(trained, doubt="an imported model is promoted by request only", bar=bar)
