"""Load the masked language model of a language, count the corpus at hand, and adapt encoders (REC-31)."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from pipeline import __version__, logs, sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import draw_uniform
from pipeline.io.atomic import check_empty
from pipeline.io.lines import read_json_lines
from pipeline.metrics.ndd.distance import MaskedModel
from pipeline.metrics.resample import Floats, sum_units
from pipeline.models.devices import choose_device
from pipeline.models.pinned import locate_files
from pipeline.slices import parse_day
from pipeline.tasks.record import model_choice, model_registry, promotion, runs
from pipeline.tasks.record.encoders import choose_precision, hash_encoder
from pipeline.text import sentences
from pipeline.text.language import detect_language
from pipeline.training import registry

if TYPE_CHECKING:
    from pipeline.models.ndd.count_lm import CountLM

PROFILE = "embedded"
COUNT = "count"  # the kind of a model of counts, and the ref of the one in force
SAMPLE = "sample"  # the id of counts of the shipped sample
LANGS = ("en", "zh")
MOST_FREQUENT = "most frequent word"
_MODEL_ID = re.compile("[0-9a-f]{64}")
HELD_OUT = 0.05  # share of the texts that a model of counts is measured on


class LoadedModel(NamedTuple):
    """A masked language model and its id in tables."""

    model: MaskedModel
    model_id: str


def load_model(ref: str | None = None, lang: str = "en", day: str | None = None, cache: float = 0.0) -> LoadedModel:
    """Load a masked language model for texts of a language; by default that of UNDERTONE_MASKED_LM.

    `ref` is `count`, the counts of the corpus in force for a day, or those of the shipped sample where there are none;
    `sample`; the id or folder of counts; a folder of transformers; or a hub name with a pinned revision. It may name
    several, `en=…,zh=…`. A transformer may end in `|pieces`: then a word is masked piece by piece, as models with
    whole-word masking have learnt (NDD-29). `cache` is the share that the other words of a sentence have in counts.
    """
    ref, _, masks = settings.masked_lm(lang, ref).partition("|")
    folder = _parse_path(ref)
    if ref in (COUNT, SAMPLE) or _MODEL_ID.fullmatch(ref) or _is_count_folder(folder):
        counts, model_id = _load_counts(ref, lang, day)
        return LoadedModel(replace(counts, cache=cache) if cache else counts, model_id)
    path, state = (str(folder), _list_file_states(folder)) if folder.is_dir() else (ref, ())
    model = _load_transformer(path, masks or "one", choose_precision(), choose_device(), state)
    return LoadedModel(model, model.revision + (f"-{masks}" if masks else ""))


def check_ref(ref: str | None) -> None:
    """Raise BadInput or Missing if `load_model` would not find a model; nothing is loaded but counts."""
    for lang in LANGS:
        name = settings.masked_lm(lang, ref).partition("|")[0]
        folder = _parse_path(name)
        if _MODEL_ID.fullmatch(name):
            load_model(name, lang)
        elif name not in (COUNT, SAMPLE) and not _is_count_folder(folder):
            locate_files(folder if folder.is_dir() else name)


def is_count_model(lm: LoadedModel) -> bool:
    """Whether a model knows two neighbours and no meaning."""
    return not hasattr(lm.model, "sentence_vectors")


@lru_cache(maxsize=2)
def _load_transformer(ref: str, masks: Any, precision: str, device_name: str, _state: object) -> Any:
    from pipeline.models.ndd import masked_lm

    try:
        return masked_lm.load(ref, masks=masks, precision=precision, device=device_name)
    except OSError as error:  # transformers explains at length that it cannot fetch the model
        raise Missing(f"no model {ref!r} at hand; fetch it once with HF_HUB_OFFLINE=0, or give a folder") from error


def _list_file_states(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """List names, sizes and times of a folder's files, so that a model that was replaced is loaded again."""
    files = sorted((path.name, path.stat()) for path in folder.iterdir() if path.is_file())
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in files)


def _parse_path(ref: str) -> Path:
    try:
        path = Path(ref).expanduser()
        path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, or the home of no user
        raise BadInput(f"no model {ref[:60]!r}: {error}") from error
    return path


def _is_count_folder(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "config.json").read_text(encoding="utf-8")).get("kind") == COUNT)
    except (OSError, ValueError, AttributeError):
        return False


def _load_counts(ref: str, lang: str, day: str | None) -> "tuple[CountLM, str]":
    from pipeline.models.ndd import count_lm

    kind = name_kind(lang)
    choice = None if ref == SAMPLE else model_choice.choose_model(kind, None if ref == COUNT else ref, day)
    if choice is None:
        reason = "; no trained model is in force" if ref == COUNT else ""
        logs.log_answer(kind, f"{kind}: counts of the shipped sample{reason}")
        return _count_sample(lang), SAMPLE
    model = choice.load()
    model_choice.log_answer(choice)
    return model.build(count_lm.load), model.model_id


def name_kind(lang: str) -> str:
    """Name the kind that the counts of a language have in `models`."""
    return f"masked_lm_{lang}"


@lru_cache(maxsize=4)
def _count_sample(lang: str) -> "CountLM":
    from pipeline.models.ndd import count_lm

    texts: list[str] = []
    for path in (sample.SUMMARIES, sample.THREADS, *sample.GROUPS.values()):
        for _, row in read_json_lines(path):
            texts += [row[name] for name in ("document", "summary", "title", "content") if row.get(name)]
            texts += [comment["text"] for comment in row.get("comments", ())] + row.get("sentences", [])
    rows = pl.DataFrame({"text": texts}).unique(maintain_order=True)
    return count_lm.fit(tokenize_sentences(rows.filter(detect_language() == lang)["text"], lang))


def tokenize_sentences(texts: Iterable[str], lang: str) -> Iterator[list[str]]:
    """Tokenize texts; yield the words of each sentence."""
    return (sentence.words for text in texts for sentence in sentences.split_sentences(text, lang))


def load_corpus(lang: str, day: str | None = None) -> pl.Series:
    """Load the distinct texts of comments and articles in a language, sorted, of all days or up to one."""
    until = pl.lit(value=True) if day is None else pl.col("day") <= parse_day(day)
    comments = warehouse.scan("comments", until).filter(pl.col("lang") == lang).select("text")
    articles = warehouse.scan("articles", until).filter(pl.col("lang") == lang)
    parts = [comments, *(articles.select(text=name) for name in ("title", "text", "summary"))]
    texts = pl.concat(parts).drop_nulls().unique().sort("text").collect()["text"]
    return texts.filter(texts.str.strip_chars() != "")


def count_corpus(lang: str, day: str, run_id: str = "cli", *, promote: bool = False) -> str | None:
    """Count the words of the corpus up to a day, but one text in twenty; return the model's id, None without texts."""
    from pipeline.models.ndd import count_lm

    started, texts = runs.start(), load_corpus(lang, day)
    is_held_out = draw_uniform(texts) < HELD_OUT
    train_texts = texts.filter(~is_held_out)
    try:
        model = count_lm.fit(tokenize_sentences(train_texts, lang))
    except BadInput:  # there is no word
        return None
    train_count = {"value": float(model.left[:, -1].sum()), "pair_count": len(train_texts)}
    rows: list[dict[str, Any]] = [{"metric": "word_count", "split": "train", **train_count}]
    test_sentences = [words for words in tokenize_sentences(texts.filter(is_held_out), lang) if words]
    held_out = []
    if test_sentences:
        owner = np.repeat(np.arange(len(test_sentences)), list(map(len, test_sentences)))
        top_word = count_lm.find_most_frequent(model).casefold()
        is_top = np.array([word.casefold() == top_word for sentence in test_sentences for word in sentence])
        result = count_lm.measure_cross_entropy(model, test_sentences)
        baseline = {"baseline": float(is_top.mean()), "baseline_name": MOST_FREQUENT}
        rows += [
            {"metric": "cross_entropy", "split": "test", "value": result.nats, "pair_count": result.places},
            {"metric": "accuracy", "split": "test", "value": result.accuracy, "pair_count": result.places, **baseline},
        ]

        def count(is_right: Any) -> Floats:  # of each sentence
            return sum_units(promotion.count_shares(is_right), owner)

        def answer(model: registry.Model) -> Floats:  # a word that a model does not know is not right
            _, is_right, is_known = count_lm.find_right(model.build(count_lm.load), test_sentences)
            return count(is_right & is_known)

        held_out = [promotion.HeldOut(metric="accuracy", answer=answer, baselines={MOST_FREQUENT: count(is_top)})]
    trained = model_registry.TrainedModel(
        kind=name_kind(lang),
        tensors=model.tensors(),
        config=model.config(),
        evaluations=model_registry.complete_evaluations(pl.DataFrame(rows, infer_schema_length=None)),
        texts=train_texts,
        summary={"vocabulary": len(model.words), "pruned": model.pruned},
        data_hash=model_registry.hash_rows(texts.to_frame("text")),
        encoder=COUNT,
        make_held_out=lambda: held_out,
    )
    return model_registry.register(trained, day, run_id, started, promote=promote)


def count_all(day: str, ref: str | None = None, run_id: str = "cli") -> list[str | None]:
    """Count each language whose model is of counts; return the models' ids."""
    return [count_corpus(lang, day, run_id) for lang in LANGS if settings.masked_lm(lang, ref) == COUNT]


def count_file(texts: Sequence[str], out: Path, lang: str | None = None, *, force: bool = False) -> pl.DataFrame:
    """Count the words of texts into a folder; return a row of sentences, words, vocabulary (distinct words)."""
    from pipeline.models.ndd import count_lm

    registry.check_writable(out, force=force)
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select("text", lang=detect_language())
    parts = (tokenize_sentences([text], lang or text_lang) for text, text_lang in rows.iter_rows())
    text_sentences = [words for part in parts for words in part]
    model = count_lm.fit(text_sentences)
    registry.write(out, model.tensors(), model.config(), force=force)
    model_registry.record_texts_of_folder(COUNT, out, rows["text"])
    counts = {"sentences": len(text_sentences), "words": sum(map(len, text_sentences)), "vocabulary": len(model.words)}
    return pl.DataFrame(counts)


def train(
    texts: Sequence[str],
    out: Path,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    start: str | None = None,
) -> pl.DataFrame:
    """Adapt an encoder, by default that in force, to texts by predicting masked words; write it for transformers.

    The numbers are those of a profile of `training.recam.masked_lm`, with changes. Returns epoch, loss, cross_entropy
    and accuracy on texts held out, count.
    """
    from pipeline.training.recam import masked_lm

    check_empty(out)
    recipe = masked_lm.make_recipe(profile, **(changes or {}))
    source = start or settings.encoder()
    state = model_registry.locate_state(asdict(recipe), hash_encoder(source) or source, *texts)
    adapted = masked_lm.fit(texts, recipe, source, state, choose_device())
    masked_lm.write(out, adapted)
    model_registry.record_texts_of_folder("masked_lm", out, pl.Series("text", texts, dtype=pl.String))
    return adapted.history


def adapt(day: str, profile: str = PROFILE, start: str | None = None) -> str:
    """Adapt an encoder to the English corpus up to a day, once for the same texts and recipe; return `en=<folder>`."""
    texts = load_corpus("en", day).to_list()
    if not texts:
        raise Missing(f"no comment or article in en up to {day} to adapt an encoder to")
    source = start or settings.encoder()
    key = hashlib.sha256(json.dumps([profile, hash_encoder(source) or source, __version__, *texts]).encode())
    folder = settings.models() / f"masked_lm-{key.hexdigest()[:16]}"
    if not folder.is_dir():
        try:
            train(texts, folder, profile, start=start)
        except (BadInput, OSError):
            if not folder.is_dir():  # else another run was faster
                raise
    model_registry.record_texts(name_kind("en"), folder.name, pl.Series("text", texts, dtype=pl.String))
    return f"en={folder}"
