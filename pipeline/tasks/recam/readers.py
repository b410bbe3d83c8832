"""Readers of cloze items as tasks: items to a model, a model to its accuracy on either subtask (REC-17 to REC-31)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.recam import building
from pipeline.examples.recam import items as cloze
from pipeline.slices import parse_day
from pipeline.tasks.record import model_registry, runs
from pipeline.tasks.record.model_registry import TrainedModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pipeline.models.word_vectors import WordVectors
    from pipeline.training.registry import Model

PROFILE = "gated"
EDGES = (100, 200, 400)  # words of a passage, the same for all sets of items
HOME = "all"  # the subset that numbers on a model's own kind of items are filed under


def get_kind(subtask: str) -> str:
    """What a reader of a subtask is called in `models`."""
    return f"reader_{subtask}"


def read(path: Path) -> pl.DataFrame:
    """Items of a file in the official format; those with two equal options, as the trial files have, are left out."""
    return cloze.read(path, strict=False).items


def gather_items(paths: Sequence[Path], without: Sequence[Path] = ()) -> tuple[pl.DataFrame, dict[str, int]]:
    """Items of several files, those left out whose article is in others; how many were, by reason."""
    found = [cloze.read(path, strict=False) for path in paths]
    every = pl.concat([each.items.with_columns(item_id=pl.format("{}/{}", pl.lit(number), "item_id"))
                       for number, each in enumerate(found)])  # fmt: skip
    dropped = [each.dropped for each in found]
    if without:
        kept = cloze.without_articles(every, pl.concat([read(path) for path in without]))
        every, dropped = kept.items, [*dropped, kept.dropped]
    counts = pl.concat(dropped).group_by("reason").len().sort("reason")
    return every, dict(counts.iter_rows())


def read_items(subtask: str, *splits: str) -> pl.DataFrame:
    """Items of the tables with their passages, in the order of their ids; those that raters found at fault left out.

    Returns:
        item_id, article, question, options, label, split, upos.

    Raises:
        Missing: there are none.
    """
    sound = ~pl.col("is_unanswerable").fill_null(value=False) & ~pl.col("is_ambiguous").fill_null(value=False)
    found = read_all_items(subtask).filter(sound & (pl.col("split").is_in(splits) if splits else pl.lit(value=True)))
    if not found.height:
        raise Missing(f"cloze_items holds nothing of {subtask}; make some: `undertone cloze build --help`")
    return found.select("item_id", "article", "question", "options", "label", "split", "upos")


def read_all_items(subtask: str) -> pl.DataFrame:
    """All items of a subtask, in the order of their ids: the columns of `cloze_items`, and article."""
    rows = warehouse.scan("cloze_items", pl.col("subtask") == subtask)
    return rows.join(scan_passages(), on=["source", "thread_id"], how="inner").sort("item_id").collect()


def scan_passages() -> pl.LazyFrame:
    """The passages of items: source, thread_id, article."""
    from pipeline.tasks.recam import targets as build

    return build.scan_articles().select("source", "thread_id", article="text")


def list_profiles() -> dict[str, Any]:
    """The recipes of all readers by name."""
    from pipeline.training.recam import pretrained_reader, readers

    return {**readers.PROFILES, **pretrained_reader.PROFILES}


def get_module(profile: str) -> ModuleType:
    """What trains and asks the readers of a profile, `training.recam.readers` or `training.recam.pretrained_reader`.

    Raises:
        BadInput: there is no such profile.
    """
    from pipeline.training.recam import pretrained_reader, readers

    if profile not in list_profiles():
        raise BadInput(f"no profile {profile!r}; there are {', '.join(list_profiles())}")
    return readers if profile in readers.PROFILES else pretrained_reader


def load_vectors(texts: Sequence[str], path: Path | None = None) -> "WordVectors":
    """Word vectors for readers: of a file in GloVe's format, else what the encoder makes of the words of some texts."""
    from pipeline.models import encoder, word_vectors
    from pipeline.models.recam import word_features
    from pipeline.text import segment

    cut = segment.load_tokenizer("nltk").cut
    words = sorted({word.lower() for text in texts for word in segment.split_words(text, cut)})
    if path:
        return word_vectors.read(path, only=set(words))
    by = encoder.load(settings.encoder(), settings.precision(), settings.threads())
    return word_features.kept(settings.scratch("embeddings"), by, words)


def list_texts(rows: pl.DataFrame) -> list[str]:
    """All that readers of some items see, each text once: passages, questions, and options or answers."""
    said = [rows["article"], rows["question"]]
    said.append(rows["options"].explode() if "options" in rows.columns else rows["answer"])
    return pl.concat(said).unique().sort().to_list()


def _list_training_texts(rows: pl.DataFrame) -> pl.Series:
    """The passages of items, and their summaries: the question with its answer in it."""
    answer = pl.col("answer") if "options" not in rows.columns else pl.col("options").list.get(pl.col("label"))
    summaries = rows.select(pl.col("question").str.replace("@placeholder", answer, literal=True)).to_series()
    return pl.concat([rows["article"], summaries.alias("article")])


def look_up_glosses(words: Sequence[str]) -> dict[str, list[str]]:
    """What WordNet says of words, as readers read it (appendix D; REC-20); words it lacks are left out."""
    from pipeline.text import segment, wordnet

    cut = segment.load_tokenizer("nltk").cut
    told = {word: wordnet.join_glosses(word) for word in sorted({word.lower() for word in words})}
    return {word: segment.split_words(text, cut) for word, text in told.items() if text}


def choose_device() -> str:
    """A GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def fit(
    rows: pl.DataFrame, profile: str = PROFILE, changes: Mapping[str, Any] | None = None, path: Path | None = None,
    subtask: str | None = None,
) -> TrainedModel:  # fmt: skip
    """A reader, with the epochs' numbers and those on the test part, where there is one.

    Args:
        rows: item_id, article, question, options, label; split, where there is one.
        profile: one of `list_profiles`.
        changes: to its numbers.
        path: of word vectors, for those readers that have some; or the folder or name of an encoder, for the others.
        subtask: whose reader it is in the tables.
    """
    module = get_module(profile)
    recipe = module.recipe_of(profile, **(changes or {}))
    option_glosses = look_up_glosses(rows["options"].explode().to_list()) if recipe.has_gloss else None
    source, name = _load_source(module, rows, path)
    state = model_registry.locate_state(hash_items(rows), asdict(recipe), name)
    done = module.fit(rows, recipe, source, state, glosses=option_glosses, device=choose_device())
    config = {**done.config, "profile": profile, "data_hash": hash_items(rows), "source": name}
    tested = rows.filter(pl.col("split") == "test") if "split" in rows.columns else rows.clear()
    return TrainedModel(
        kind=get_kind(subtask) if subtask else config["kind"], tensors=done.tensors, config=config,
        texts=_list_training_texts(rows),
        evaluations=model_registry.build_epoch_rows(done.history, {"value": ("accuracy", "validation")}),
        evaluate=(lambda model: measure(tested, model)) if tested.height else None,
        summary={"profile": profile, **{name: config[name] for name in module.Recipe.__slots__}},
        encoder="word vectors", encoder_revision=name,
    )  # fmt: skip


def _load_source(module: ModuleType, rows: pl.DataFrame, path: Path | None) -> tuple[Any, str]:
    """What a reader stands on, and its name: word vectors, or an encoder."""
    from pipeline.training.recam import readers

    if module is not readers:
        return (str(path) if path else settings.encoder()), (path.name if path else settings.encoder())
    found = load_vectors(list_texts(rows), path)
    return found, f"{path.name if path else settings.encoder()} {found.revision[:12]}"


def hash_items(rows: pl.DataFrame) -> str:
    """SHA-256 of what a reader is trained and chosen on."""
    every = ("item_id", "article", "question", "answer", "options", "label", "split")
    names = [name for name in every if name in rows.columns]
    return hashlib.sha256(rows.select(names).sort("item_id").write_ndjson().encode()).hexdigest()


def train_file(
    rows: pl.DataFrame, out: Path, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    path: Path | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Train into a folder; its numbers on the rows' own parts, those of validation where there is no test part."""
    return model_registry.train_into(out, lambda: fit(rows, profile, changes, path))[1]


def train(
    day: str, subtask: str, *, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    path: Path | None = None, run_id: str = "cli",
) -> str:  # fmt: skip
    """Train on the items of a subtask into the registry, in force from that day on; the model's id."""
    return model_registry.train(day, lambda: fit(read_items(subtask), profile, changes, path, subtask), run_id)


def cross_evaluate(day: str, trained_on: str, tested_on: str, model_id: str, run_id: str = "cli") -> int:
    """Subtask 3: a reader of one kind of abstractness on test items of the other; rows of `evaluations` (section 4.3).

    Their subset is the kind they were tested on.
    """
    from pipeline.training import registry

    began = runs.start()
    found = measure(read_items(tested_on, "test"), registry.fetch(settings.models(), model_id), tested_on)
    stamp = {"kind": pl.lit(get_kind(trained_on)), "day": pl.lit(parse_day(day)), "model_id": pl.lit(model_id)}
    where = {**warehouse.slice_of(kind=get_kind(trained_on), day=day), "model_id": model_id, "subset": tested_on}
    mine = found.filter(pl.col("subset") == tested_on)
    count = warehouse.overwrite("evaluations", where, mine.with_columns(**stamp), run_id)
    config = {"model_id": model_id}
    runs.record_step(get_kind(trained_on), day, f"on {tested_on}", "test", count, None, config, run_id, began)
    return count


def load_model(ref: str | None, subtask: str = building.SUBTASKS[0], day: str | None = None) -> "Model":
    """A reader by its folder or id; without one that of a subtask which is in force for a day."""
    model = model_registry.load_model(
        get_kind(subtask), ref, day, f"no reader of {subtask} is in force; train one: `undertone train reader --help`"
    )
    if model.config.get("profile") not in list_profiles():
        raise BadInput(f"model {model.model_id[:12]}: it is no reader of cloze items")
    return model


def answer(model: "Model", rows: pl.DataFrame) -> "npt.NDArray[np.float64]":
    """Probabilities of the options of each item [n, 5]."""
    module = get_module(model.config["profile"])
    trained = model.build(module.load, choose_device())
    told = look_up_glosses(rows["options"].explode().to_list()) if trained.recipe.has_gloss else None
    found: npt.NDArray[np.float64] = module.answer(trained, rows, told)
    return found


def is_right(model: "Model", rows: pl.DataFrame) -> "npt.NDArray[np.bool_]":
    """Whether a reader takes the right option of each item [n]; of equally likely ones it takes the first."""
    found: npt.NDArray[np.bool_] = answer(model, rows).argmax(axis=1) == rows["label"].to_numpy()
    return found


def measure(rows: pl.DataFrame, model: "Model", subset: str = HOME) -> pl.DataFrame:
    """Accuracy with its interval over articles, by part of speech and by length of the passage (REC-28, REC-30).

    Beside it stands what the best way to answer without reading reaches on the same items (REC-32).

    Args:
        rows: item_id, article, question, options, label; upos, where it is known.
        model: a reader.
        subset: name of the items.

    Returns:
        Rows of `evaluations` without their keys, of the split test.
    """
    from pipeline.metrics.recam import audit, reading

    right = is_right(model, rows)
    groups = rows.select(cloze.normalised()).to_series()
    all_of = reading.accuracy(right, groups)
    blind = audit.audit(rows).sort("accuracy", descending=True).row(0, named=True)
    beside = {"baseline": blind["accuracy"], "baseline_name": blind["baseline"]}
    found: list[dict[str, Any]] = [
        {"metric": "accuracy", "subset": subset, "value": all_of.value, "pair_count": all_of.n, **beside},
        {"metric": "accuracy_low", "subset": subset, "value": all_of.low, "pair_count": all_of.n},
        {"metric": "accuracy_high", "subset": subset, "value": all_of.high, "pair_count": all_of.n},
    ]
    for name, values in _group_items(rows).items():
        for part in reading.measure_groups(right, values, groups).iter_rows(named=True):
            shown = f"{name}:{part['group']}"
            for metric, value in (("accuracy", "accuracy"), ("accuracy_low", "low"), ("accuracy_high", "high")):
                found.append({"metric": metric, "subset": shown, "value": part[value], "pair_count": part["n"]})
    frame = pl.DataFrame(found, infer_schema_length=None)
    return model_registry.complete_evaluations(frame.with_columns(split=pl.lit("test"), epoch=pl.lit(0, pl.Int64)))


def _group_items(rows: pl.DataFrame) -> dict[str, pl.Series]:
    from pipeline.metrics.recam import reading

    words = rows["article"].str.count_matches(r"\S+").cast(pl.Int64)
    told = {"words": reading.bin_lengths(words, edges=EDGES)}
    return {"upos": rows["upos"], **told} if "upos" in rows.columns else told


def compare(rows: pl.DataFrame, one: "Model", other: "Model") -> dict[str, Any]:
    """Two readers on the same items: how much more often the first is right, with its interval and p."""
    from pipeline.metrics.recam import reading

    groups = rows.select(cloze.normalised()).to_series()
    return dict(reading.compare(is_right(one, rows), is_right(other, rows), groups)._asdict())


def summarize(found: pl.DataFrame) -> pl.DataFrame:
    """Numbers as people read them: a row a set of items."""
    rows = found.filter((pl.col("split") == "test") & pl.col("metric").str.starts_with("accuracy"))
    best = rows.filter(pl.col("metric") == "accuracy").select("subset", "baseline", by="baseline_name")
    wide = rows.rename({"pair_count": "n"}).pivot("metric", index=["subset", "n"], values="value", maintain_order=True)
    return wide.join(best, on="subset", how="left", maintain_order="left")
