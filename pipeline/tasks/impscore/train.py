"""ImpScore as tasks: pairs and graded groups to a model, its numbers into `evaluations`; which model is in force."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.impscore import groups as graded
from pipeline.examples.splits import SEED, SPLIT_OF
from pipeline.score.signature import ANY
from pipeline.tasks.impscore import in_force
from pipeline.tasks.impscore import pairs as pairs_of
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.model_registry import TrainedModel

PROFILE = "undertone"
SHOWN = {
    "implicitness_accuracy": "implicit", "pragmatics_accuracy": "pragmatic", "kendall_tau": "tau",
    "spearman_rho": "rho", "choice_accuracy": "choice",
}  # fmt: skip

Done = Callable[[int], None]


def shipped_groups(lang: str) -> pl.DataFrame:
    """The graded groups of the sample: group, level, text, split."""
    return graded.with_split(graded.read(sample.GROUPS[lang]))


def train(
    day: str,
    *,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    promote: bool = False,
    done: Done = lambda _: None,
    run_id: str = "cli",
) -> str:
    """Train on all pairs, and with them on the shipped graded groups where the profile learns from groups.

    Equal pairs and numbers give an equal model. The model is promoted for the day, unless all its pairs are the
    sample's and `promote` does not ask for it: the shipped model is better than one for trying out.

    Returns:
        The model's id.
    """

    def fit() -> TrainedModel:
        rows = pairs_of.every()
        if not rows.height:
            raise Missing("the table pairs is empty; bring some in first: `undertone pairs build --help`")
        groups = {lang: shipped_groups(lang) for lang in sample.GROUPS}
        trained = fitted(rows, groups, profile, changes, done, _answered_by(rows))
        is_for_trying = set(trained.completion_models) == {sample.MODEL}
        is_bounded = all(head["recipe"]["implicitness"] == "cosine" for head in trained.config["heads"].values())
        return replace(trained, is_promoted=is_bounded and (promote or not is_for_trying))

    return model_registry.train(day, fit, run_id)


def train_file(
    rows: pl.DataFrame,
    out: Path,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    groups: Sequence[Path] | None = None,
    done: Done = lambda _: None,
) -> tuple[str, pl.DataFrame]:
    """Train on rows of `pairs` into a folder, without the tables; return the model's id and its numbers.

    Groups of one's own replace the shipped ones of their language.
    """

    def fit() -> TrainedModel:
        by_lang = {lang: shipped_groups(lang) for lang in sample.GROUPS} | own_groups(groups or ())
        answered_by = _answered_by(rows) if rows["completion_id"].null_count() < rows.height else []
        return fitted(rows, by_lang, profile, changes, done, answered_by)

    return model_registry.train_into(out, fit)


def _texts_of(rows: pl.DataFrame) -> pl.Series:
    """All texts of rows of `pairs`."""
    return pl.concat([rows[name].alias("text") for name in ("implicit", "explicit", "negative")])


def own_groups(paths: Sequence[Path]) -> dict[str, pl.DataFrame]:
    """Graded groups of files by language, which most of a group's sentences tell: group, level, text, split."""
    if not paths:
        return {}
    every = pl.concat([graded.read(path).with_columns(file=pl.lit(str(path))) for path in paths])
    twice = every.group_by("group").agg(pl.col("file").n_unique()).filter(pl.col("file") > 1)["group"].sort()
    if len(twice):
        raise BadInput(f"group {twice[0]!r} stands in more than one file; give each group a name of its own")
    told = graded.with_split(every.drop("file")).with_columns(lang=graded.lang_of_most())
    return {str(name): part.drop("lang") for (name,), part in told.partition_by("lang", as_dict=True).items()}


def _answered_by(rows: pl.DataFrame) -> list[str]:
    """Language models whose answers are among rows of `pairs`."""
    used = warehouse.scan("completions").select("completion_id", "model").unique().collect()
    return rows.join(used, on="completion_id", how="left")["model"].drop_nulls().unique().sort().to_list()


def split_of(profile: str) -> str:
    """How pairs are split for a profile."""
    if profile not in SPLIT_OF:
        raise BadInput(f"no profile {profile!r}; there are {', '.join(SPLIT_OF)}")
    return SPLIT_OF[profile]


def evaluate(rows: pl.DataFrame, model: str | None = None, done: Done = lambda _: None) -> pl.DataFrame:
    """Numbers of a model on rows of `pairs`: rows of `evaluations` without their keys. None: the shipped model.

    The pairs a model was trained on keep their splits; any others are all test.
    """
    from pipeline.tasks.impscore import scoring

    if hash_of(rows) != in_force.load_model(model).config.get("pairs_hash"):
        rows = rows.with_columns(split=pl.lit("test"))
    return evaluate_triples(rows, scoring.score_triples(rows, model, done))


def evaluate_triples(rows: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """The same of what a model said of the rows (`scoring.score_triples`)."""
    from pipeline.training.impscore import evaluation

    return evaluation.evaluate(rows, measured, SEED).drop("epoch")


def headline(numbers: pl.DataFrame) -> dict[str, object]:
    """The two accuracies over all pairs of the test part, or of whatever part there is."""
    part = numbers.filter((pl.col("subset") == "all") & (pl.col("split") == _shown_split(numbers)))
    named = {row["metric"]: row["value"] for row in part.iter_rows(named=True)}
    found = {name: named.get(name) for name in ("implicitness_accuracy", "pragmatics_accuracy")}
    return {"accuracy": found["implicitness_accuracy"], **found}


def _shown_split(numbers: pl.DataFrame) -> str:
    """The split that baselines stand beside: test where there is one."""
    beside = pl.col("baseline").is_not_null() & ~pl.col("subset").str.starts_with("groups:")
    splits = numbers.filter(beside)["split"]
    return str(splits[0]) if len(splits) else "test"


def overview(numbers: pl.DataFrame) -> pl.DataFrame:
    """Numbers as people read them: a row a subset of the held-out part, the best artefact baseline beside."""
    of_groups = pl.col("subset").str.starts_with("groups:") & (pl.col("split") == "test")
    here = (pl.col("split") == _shown_split(numbers)) & ~pl.col("subset").str.starts_with("groups:")
    rows = numbers.filter((here | of_groups) & pl.col("metric").is_in(SHOWN))
    rows = rows.with_columns(pl.col("metric").replace_strict(SHOWN))
    best = rows.filter(pl.col("baseline").is_not_null()).select("subset", "baseline", by="baseline_name")
    rows = rows.rename({"pair_count": "n"})
    wide = rows.pivot("metric", index=["split", "subset", "n"], values="value", maintain_order=True)
    wide = wide.join(best.unique("subset", keep="first"), on="subset", how="left", maintain_order="left")
    order = ["split", "subset", "n", "implicit", "pragmatic", "tau", "rho", "choice", "baseline", "by"]
    return wide.select(name for name in order if name in wide.columns)


def fitted(
    pairs: pl.DataFrame,
    groups: Mapping[str, pl.DataFrame],
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    done: Done = lambda _: None,
    completion_models: Sequence[str] = (),
) -> TrainedModel:
    """Fit a model on rows of `pairs` and, where the profile learns from them, on graded groups by language.

    One head for every language; a head a language where groups are learnt from. `completion_models` are the language
    models that answered some of the pairs.
    """
    from pipeline.models import encoder as encoders
    from pipeline.training.impscore import evaluation, fit, heads

    recipe = fit.recipe_of(profile, **(changes or {}))
    if (pairs["source"] == "all").any():
        raise BadInput("no source can be called all: that is what numbers over all sources are called")
    used = groups if recipe.group_sharpness else {}
    data_hash = hash_of(pairs, *(used[lang] for lang in sorted(used)))
    names = sorted(used) or [ANY]
    made = {}
    for name in names:
        of_name = encoder_for(name)
        own = replace(recipe, tune="none") if of_name == "characters" else recipe  # which has nothing to train
        encoder = encoders.load(of_name, settings.precision(), settings.threads(), pooling=recipe.pooling)
        mine = pairs.filter(_belongs(name, sorted(used)))
        state = model_registry.locate_state(data_hash, name, encoder.revision, encoder.precision, asdict(own))
        made[name] = heads.fit(mine, used.get(name), own, encoder, settings.scratch("embeddings"), state, done)
    config = {
        "kind": in_force.KIND, "profile": profile, "data_hash": data_hash, "pairs_hash": hash_of(pairs),
        "completion_models": list(completion_models),
        "heads": {name: head.config for name, head in made.items()},
    }  # fmt: skip
    tensors = {f"{name}.{key}": value for name, head in made.items() for key, value in head.tensors.items()}
    return describe_model(
        tensors, config, evaluation.evaluations(pairs, list(made.items()), recipe.seed), _texts_of(pairs)
    )


def describe_model(
    tensors: dict[str, Any], config: dict[str, Any], evaluations: pl.DataFrame, texts: pl.Series | None = None
) -> TrainedModel:
    """A model with what the tables say of it: its encoders and the recipe of each head."""
    heads = config["heads"]
    names, revisions = (
        ", ".join(sorted({head[key] for head in heads.values()})) for key in ("encoder", "encoder_revision")
    )
    return TrainedModel(
        kind=in_force.KIND, tensors=tensors, config=config, evaluations=evaluations, texts=texts, encoder=names,
        summary={name: head["recipe"] for name, head in heads.items()}, encoder_revision=revisions,
        completion_models=config["completion_models"],
    )  # fmt: skip


def encoder_for(head: str) -> str:
    """The encoder a head is fitted on: the one that is set, but n-grams for Chinese where that is the embedded one."""
    chosen = settings.encoder()
    return "characters" if head == "zh" and chosen == "embedded" else chosen


def _belongs(name: str, names: list[str]) -> pl.Expr:
    """Pairs that a head learns from: its language's, and for English those of languages without a head."""
    if name == ANY:
        return pl.lit(value=True)
    mine = pl.col("lang") == name
    return mine | ~pl.col("lang").is_in(names) if name == "en" else mine


def hash_of(*frames: pl.DataFrame) -> str:
    """SHA-256 over rows in their order: what a model was trained on."""
    digest = hashlib.sha256()
    for frame in frames:
        lines = frame.select(pl.concat_str(pl.all().cast(pl.String), separator="\t", ignore_nulls=True)).to_series()
        digest.update("\n".join(lines).encode())
    return digest.hexdigest()
