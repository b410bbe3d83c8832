"""Readers of cloze items as tasks: from items to a model, from a model to its accuracy (REC-17 to REC-31)."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.recam import building
from pipeline.examples.recam import items as cloze
from pipeline.metrics.recam import audit, reading
from pipeline.metrics.resample import Floats
from pipeline.models import word_vectors
from pipeline.models.devices import choose_device
from pipeline.models.pinned import strip_path
from pipeline.papers.recam import LEADERBOARDS
from pipeline.slices import parse_day
from pipeline.tasks.record import model_choice, model_registry, promotion, runs
from pipeline.tasks.record.encoders import hash_encoder, load_encoder
from pipeline.text import segment, wordnet
from pipeline.training import registry

EDGES = (100, 200, 400)  # words of a passage, the same for all sets of items
BLIND = ("longest", "often_right", "option_only", "question_only")  # by length, majority and words
HOME = "all"  # the subset of `evaluations` that holds a reader's results on its own kind of items


def get_kind(subtask: str) -> str:
    """Return the kind of a subtask's readers in `models`."""
    return f"reader_{subtask}"


def gather_items(paths: Sequence[Path], without: Sequence[Path] = ()) -> tuple[pl.DataFrame, dict[str, int]]:
    """Read the items of several files, except those whose article other files hold too; count the dropped by reason."""
    files = [cloze.read(path) for path in paths]
    ids = (pl.format("{}/{}", pl.lit(number), "item_id") for number in range(len(files)))
    items = pl.concat([file.rows.with_columns(item_id=name) for file, name in zip(files, ids, strict=True)])
    dropped = [file.dropped for file in files]
    if without:
        selection = cloze.drop_articles(items, pl.concat([cloze.read(path).rows for path in without]))
        items, dropped = selection.rows, [*dropped, selection.dropped]
    counts = pl.concat(dropped).group_by("reason").len().sort("reason")
    return items, dict(counts.iter_rows())


def read_items(subtask: str, *splits: str) -> pl.DataFrame:
    """Read the items of the tables that raters did not flag, in order, with their passages, label, split and upos."""
    is_flagged = pl.any_horizontal(pl.col("is_unanswerable", "is_ambiguous").fill_null(value=False))
    is_in_splits = pl.col("split").is_in(splits) if splits else pl.lit(value=True)
    items = read_all_items(subtask).filter(~is_flagged & is_in_splits)
    if not items.height:
        raise Missing(f"cloze_items holds nothing of {subtask}; make some: `undertone cloze build --help`")
    return items.select("item_id", "article", "question", "options", "label", "split", "upos")


def read_all_items(subtask: str) -> pl.DataFrame:
    """Read all items of a subtask, in the order of their ids: the columns of `cloze_items`, and article."""
    from pipeline.tasks.recam import targets

    items = warehouse.scan("cloze_items", pl.col("subtask") == subtask)
    passages = targets.scan_articles().select("source", "thread_id", article="text")
    return items.join(passages, on=["source", "thread_id"], how="inner").sort("item_id").collect()


def list_modules() -> dict[str, ModuleType]:
    """List the modules that train readers by the profiles they train."""
    from pipeline.training.recam import pretrained_reader, readers

    return {profile: module for module in (readers, pretrained_reader) for profile in module.PROFILES}


def get_module(profile: str) -> ModuleType:
    """Return the module that trains a profile, `training.recam.readers` or `training.recam.pretrained_reader`."""
    return list_modules()[check_name("profile", profile, list_modules())]


def load_vectors(texts: Sequence[str], path: Path | None = None) -> word_vectors.WordVectors:
    """Load the vectors of the words of some texts from a file in GloVe's format, else compute them with the encoder."""
    from pipeline.models.recam import word_features

    tokenize = segment.load_tokenizer("nltk").cut
    words = sorted({word.lower() for text in texts for word in segment.split_words(text, tokenize)})
    if path:
        return word_vectors.read(path, only=set(words))
    return word_features.load_or_make_vectors(settings.scratch("embeddings"), load_encoder(), words)


def list_texts(items: pl.DataFrame) -> list[str]:
    """List all that readers of some items see, each text once: passages, questions, and options or answers."""
    words = items["options"].explode() if "options" in items.columns else items["answer"]
    return pl.concat([items["article"], items["question"], words]).unique().sort().to_list()


def look_up_glosses(words: Iterable[str]) -> dict[str, list[str]]:
    """Look up the glosses of words in WordNet, tokenized (appendix D; REC-20); words it lacks have none."""
    tokenize = segment.load_tokenizer("nltk").cut
    glosses = {word: wordnet.join_glosses(word) for word in sorted({word.lower() for word in words})}
    return {word: segment.split_words(gloss, tokenize) for word, gloss in glosses.items() if gloss}


def fit(
    items: pl.DataFrame,
    subtask: str | None = None,
    *,
    profile: str = "gated",
    changes: Mapping[str, Any] | None = None,
    path: Path | None = None,
) -> model_registry.TrainedModel:
    """Fit a reader, with the results of its epochs and those on the test part, where there is one.

    The path is that of a file of word vectors, for readers that use them; for the others the folder or name of an
    encoder. The subtask is that of items of the tables.
    """
    from pipeline.training.recam import readers as recurrent

    module = get_module(profile)
    recipe = module.make_recipe(profile, **(changes or {}))
    glosses = look_up_glosses(items["options"].explode()) if recipe.has_gloss else None
    source: Any = str(path or settings.encoder())
    encoder_hash = hash_encoder(source)
    source_name = strip_path(source) if path is None else path.name
    if module is recurrent:
        source = load_vectors(list_texts(items), path)
        source_name = f"{source_name} {source.revision[:12]}"
    data_hash = hash_items(items)
    state = model_registry.locate_state(data_hash, asdict(recipe), encoder_hash, source_name)
    model = module.fit(items, recipe, source, state, glosses=glosses, device=choose_device())
    config = {**model.config, "profile": profile, "data_hash": data_hash, "source": source_name}
    summary = pl.col("question").str.replace(cloze.PLACEHOLDER, cloze.select_right_option(), literal=True)
    test_items = items.filter(pl.col("split") == "test") if "split" in items.columns else items.clear()
    chance = 1 / len(items["options"][0])
    return model_registry.TrainedModel(
        kind=get_kind(subtask) if subtask else config["kind"],
        tensors=model.tensors,
        config=config,
        texts=pl.concat([items["article"], items.select(summary.alias("article")).to_series()]),
        evaluations=model_registry.build_epoch_rows(model.history, {"value": ("accuracy", "validation")}, chance),
        evaluate=(lambda registered: measure(test_items, registered)) if test_items.height else None,
        make_held_out=lambda: make_held_out(items),
        summary={"profile": profile, **asdict(recipe)},
        encoder="word vectors",
        encoder_revision=source_name,
    )


def hash_items(items: pl.DataFrame) -> str:
    """Return the SHA-256 of all columns that training a reader depends on."""
    columns = ("item_id", "article", "question", "answer", "options", "label", "split")
    rows = items.select(name for name in columns if name in items.columns).sort("item_id")
    return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()


def train(day: str, subtask: str, *, promote: bool = False, run_id: str = "cli", **options: Any) -> str:
    """Train on the items of a subtask into the registry; return the model's id."""
    return model_registry.train(day, lambda: fit(read_items(subtask), subtask, **options), run_id, promote=promote)


def make_held_out(items: pl.DataFrame) -> list[promotion.HeldOut]:
    """Hold out items, by the accuracy on which readers are compared, also with answers without reading."""
    rows = promotion.select_held_out(items) if "split" in items.columns else items.clear()
    if not rows.height:
        return []
    shares = audit.answer_blindly(rows)
    baselines = {name: promotion.count_shares(shares[name]) for name in BLIND}

    def answer(model: registry.Model) -> Floats:
        return promotion.count_shares(is_right(model, rows))

    units = rows.select(cloze.normalise()).to_series()
    return [promotion.HeldOut(metric="accuracy", answer=answer, baselines=baselines, units=units)]


def evaluate_crossed(day: str, trained_on: str, tested_on: str, model_id: str, run_id: str = "cli") -> int:
    """Evaluate a reader of one subtask on test items of the other (section 4.3), the subset; return the row count."""
    timer, kind = runs.start(), get_kind(trained_on)
    results = measure(read_items(tested_on, "test"), registry.fetch(settings.models(), model_id), tested_on)
    rows = results.filter(pl.col("subset") == tested_on).with_columns(
        kind=pl.lit(kind), day=pl.lit(parse_day(day)), model_id=pl.lit(model_id)
    )
    partition = {**warehouse.make_slice(kind=kind, day=day), "model_id": model_id, "subset": tested_on}
    count = warehouse.overwrite("evaluations", partition, rows, run_id)
    runs.record_step(kind, day, f"on {tested_on}", "test", count, None, {"model_id": model_id}, run_id, timer)
    return count


def load_model(ref: str | None, subtask: str = building.SUBTASKS[0], day: str | None = None) -> registry.Model:
    """Load a reader by its folder or id; without `ref`, the one of a subtask that is in force for a day."""
    missing = f"no reader of {subtask} is in force; train one: `undertone train reader --help`"
    model = model_choice.load_model(get_kind(subtask), ref, day, missing)
    if model.config.get("profile") not in list_modules():
        raise BadInput(f"model {model.model_id[:12]}: it is no reader of cloze items")
    return model


def is_right(model: registry.Model, items: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether a reader chooses the right option of each item [n]; of equally likely options it chooses the first."""
    module = get_module(model.config["profile"])
    reader = model.build(module.load, choose_device())
    glosses = look_up_glosses(items["options"].explode()) if reader.recipe.has_gloss else None
    choices = module.answer(reader, items, glosses).argmax(axis=1)
    return np.asarray(choices == items["label"].to_numpy(), np.bool_)


def measure(items: pl.DataFrame, model: registry.Model, subset: str = HOME) -> pl.DataFrame:
    """Measure accuracy with its interval over articles, by part of speech and by length of passage (REC-28, REC-30).

    The baseline is the best way to answer the same items without reading (REC-32). Items may have upos. Return rows of
    `evaluations` without their keys.
    """
    matches = is_right(model, items)
    articles = items.select(cloze.normalise()).to_series()
    overall = reading.accuracy(matches, articles)
    blind = audit.audit(items).sort("accuracy", descending=True).row(0, named=True)
    parts: list[tuple[Any, ...]] = [(subset, overall.n, *overall[:3])]
    lengths = reading.bin_lengths(items["article"].str.count_matches(r"\S+"), EDGES)
    for name, values in (("upos", items.get_column("upos", default=None)), ("words", lengths)):
        if values is not None:
            groups = reading.measure_groups(matches, values, articles).iter_rows()
            parts += [(f"{name}:{group}", *numbers) for group, *numbers in groups]
    rows = [
        {"metric": metric, "subset": part, "value": value, "pair_count": n}
        for part, n, *numbers in parts
        for metric, value in zip(("accuracy", "accuracy_low", "accuracy_high"), numbers, strict=True)
    ]
    rows[0] |= {"baseline": blind["accuracy"], "baseline_name": blind["baseline"]}
    return model_registry.complete_evaluations(pl.DataFrame(rows, infer_schema_length=None))


def rank_among_submissions(accuracy: float, tested_on: str, model_id: str = "") -> pl.DataFrame:
    """Rank a reader among the submissions (tables 6, 7; REC-29); `away` is of those trained on the other subtask."""
    kinds: list[str] = []
    with suppress(Missing):  # without tables it is a reader of a folder
        kinds = warehouse.scan("models", pl.col("model_id") == model_id).collect()["kind"].to_list()
    column = "away" if kinds and get_kind(tested_on) not in kinds else "accuracy"
    rows = [(team, *(value and round(value / 100, 3) for value in pair)) for team, *pair in LEADERBOARDS[tested_on]]
    table = pl.DataFrame([*rows, ("this reader", None, None)], schema=["reader", "accuracy", "away"], orient="row")
    is_own = pl.col("reader") == "this reader"
    table = table.with_columns(pl.when(is_own).then(round(accuracy, 3)).otherwise(column).alias(column))
    table = table.drop_nulls(column).sort(column, is_own, descending=[True, False])
    return table.select(pl.col(column).rank("min", descending=True).cast(pl.Int64).alias("rank"), pl.all())


def compare(items: pl.DataFrame, model: registry.Model, other: registry.Model) -> dict[str, Any]:
    """Compare two readers on the same items: how much more often the first is right, with its interval and p."""
    articles = items.select(cloze.normalise()).to_series()
    return dict(reading.compare(is_right(model, items), is_right(other, items), articles)._asdict())


def summarize(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Summarize evaluations for display: one row for each set of items."""
    rows = evaluations.filter((pl.col("split") == "test") & pl.col("metric").str.starts_with("accuracy"))
    best = rows.filter(pl.col("metric") == "accuracy").select("subset", "baseline", by="baseline_name")
    wide = rows.rename({"pair_count": "n"}).pivot("metric", index=["subset", "n"], values="value", maintain_order=True)
    return wide.join(best, on="subset", how="left", maintain_order="left")
