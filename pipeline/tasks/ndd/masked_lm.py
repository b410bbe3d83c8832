"""Masked language models as tasks: which one answers for a language, counts of the corpus at hand, and adaptation.

Three kinds stand behind one protocol (`metrics.ndd.model.MaskedModel`): counts of words between their neighbours, the
embedded default, which shows that the mechanics work and no more; any model of transformers; and an encoder that
`train` adapted (task-adaptive pre-training; REC-31).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import __version__, sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.splits import draws
from pipeline.io.lines import read_json_lines
from pipeline.slices import parse_day
from pipeline.tasks.recam.readers import choose_device
from pipeline.tasks.record import model_registry, runs
from pipeline.text import sentences
from pipeline.text.language import detect_language

if TYPE_CHECKING:
    from pipeline.metrics.ndd.model import MaskedModel
    from pipeline.models.ndd.count_lm import CountLM

PROFILE = "embedded"
COUNT = "count"  # the kind of a model of counts, and what names the one in force
SAMPLE = "sample"  # the id of counts of the shipped sample
LANGS = ("en", "zh")
HELD_OUT = 0.05  # share of the texts that a model of counts is measured on


class Opened(NamedTuple):
    """A model ready to be asked, and what names it in tables."""

    model: "MaskedModel"
    model_id: str


def opened(ref: str | None = None, lang: str = "en", day: str | None = None, cache: float = 0.0) -> Opened:
    """A masked language model.

    Args:
        ref: `count`, counts of the corpus at hand, or where none were made yet of the shipped sample, which `sample`
            names; the id or folder of such counts; a folder of transformers; or a hub name with a pinned revision. By
            default that of the setting UNDERTONE_MASKED_LM. Either may name several, `en=…,zh=…`. Behind a transformer
            may stand `|pieces`: then a word is masked piece by piece, as models with whole-word masking have learnt
            (NDD-29).
        lang: of the texts.
        day: counts in force for it; by default the newest.
        cache: of counts, the share that the other words of a sentence have.
    """
    ref, _, masks = settings.masked_lm(lang, ref).partition("|")
    folder = _path(ref)
    if ref in (COUNT, SAMPLE) or re.fullmatch("[0-9a-f]{64}", ref) or _is_counts(folder):
        model, model_id = _counts(ref, lang, day)
        from pipeline.models.ndd.count_lm import with_cache

        return Opened(with_cache(model, cache) if cache else model, model_id)
    path, state = (str(folder), _state(folder)) if folder.is_dir() else (ref, ())
    loaded = _transformer(path, masks or "one", settings.precision(), choose_device(), state)
    return Opened(loaded, loaded.revision + (f"-{masks}" if masks else ""))


def is_counts(found: Opened) -> bool:
    """Whether a model knows two neighbours and no meaning."""
    return not hasattr(found.model, "sentence_vectors")


@lru_cache(maxsize=2)
def _transformer(ref: str, masks: Any, precision: str, where: str, _state: object) -> Any:
    from pipeline.models.ndd import masked_lm

    try:
        return masked_lm.load(ref, masks=masks, precision=precision, device=where)
    except OSError as why:  # as transformers says that it cannot be fetched, at length
        raise Missing(f"no model {ref!r} at hand; fetch it once with HF_HUB_OFFLINE=0, or give a folder") from why


def _state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of a folder's files: a model that was replaced is loaded again."""
    files = sorted((path.name, path.stat()) for path in folder.iterdir() if path.is_file())
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in files)


def _path(ref: str) -> Path:
    """A reference as the path that it may be."""
    try:
        path = Path(ref).expanduser()
        path.is_dir()
    except (OSError, ValueError, RuntimeError) as why:  # too long, or nobody's home
        raise BadInput(f"no model {ref[:60]!r}: {why}") from why
    return path


def _is_counts(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "config.json").read_text(encoding="utf-8")).get("kind") == COUNT)
    except (OSError, ValueError, AttributeError):
        return False


def _counts(ref: str, lang: str, day: str | None) -> "tuple[CountLM, str]":
    from pipeline.models.ndd import count_lm
    from pipeline.training import registry

    if ref == COUNT:
        ref = _in_force(lang, day) or SAMPLE
    if ref == SAMPLE:
        return _of_sample(lang), SAMPLE
    folder = Path(ref).expanduser()
    found = registry.read(folder) if folder.is_dir() else registry.fetch(settings.models(), ref)
    return found.build(count_lm.load), found.model_id


def _in_force(lang: str, day: str | None) -> str | None:
    try:
        return model_registry.select_model_id(kind_of(lang), day)
    except Missing:  # there are no tables yet
        return None


def kind_of(lang: str) -> str:
    """What the counts of a language are called among models."""
    return f"masked_lm_{lang}"


@lru_cache(maxsize=4)
def _of_sample(lang: str) -> "CountLM":
    from pipeline.models.ndd import count_lm

    return count_lm.fit(cut(_sample_texts(lang), lang))


def _sample_texts(lang: str) -> list[str]:
    """Articles, comments and graded sentences of the sample."""
    found: list[str] = []
    for path in (sample.SUMMARIES, sample.THREADS, *sample.GROUPS.values()):
        for _, row in read_json_lines(path):
            found += [row[name] for name in ("document", "summary", "title", "content") if row.get(name)]
            found += [comment["text"] for comment in row.get("comments", ())] + row.get("sentences", [])
    rows = pl.DataFrame({"text": found}).select(pl.col("text").unique(maintain_order=True))
    return rows.filter(detect_language() == lang)["text"].to_list()


def cut(texts: Iterable[str], lang: str) -> Iterator[list[str]]:
    """The words of each sentence of texts."""
    return (each.words for text in texts for each in sentences.split_sentences(text, lang))


def corpus(lang: str, day: str | None = None) -> pl.Series:
    """Distinct texts of comments and articles in a language, of the days up to one, in order."""
    until = pl.lit(value=True) if day is None else pl.col("day") <= parse_day(day)
    comments = warehouse.scan("comments", until).filter(pl.col("lang") == lang).select("text")
    articles = warehouse.scan("articles", until).filter(pl.col("lang") == lang)
    parts = [comments, *(articles.select(text=name) for name in ("title", "text", "summary"))]
    found = pl.concat(parts).drop_nulls().unique().sort("text").collect()["text"]
    return found.filter(found.str.strip_chars() != "")


def count(lang: str, day: str, run_id: str = "cli") -> str | None:
    """Count the words of the corpus up to a day; the model's id, or None where there is no text in the language.

    It is in force from that day on. One text in twenty, drawn by its hash, is not counted but told from the rest: the
    cross entropy in `evaluations`.
    """
    from pipeline.models.ndd import count_lm

    started, texts = runs.start(), corpus(lang, day)
    is_held = draws(texts) < HELD_OUT
    try:
        model = count_lm.fit(cut(texts.filter(~is_held), lang))
    except BadInput:  # there is no word
        return None
    held, words = list(cut(texts.filter(is_held), lang)), int(model.left[:, -1].sum())
    numbers = [{"metric": "word_count", "split": "train", "value": float(words), "pair_count": int((~is_held).sum())}]
    if any(held):
        told = count_lm.cross_entropy(model, held)
        numbers += [
            {"metric": name, "split": "test", "value": value, "pair_count": told.places}
            for name, value in (("cross_entropy", told.nats), ("accuracy", told.accuracy))
        ]
    rows = model_registry.complete_evaluations(
        pl.DataFrame(numbers).with_columns(epoch=pl.lit(0), subset=pl.lit("all"))
    )
    trained = model_registry.TrainedModel(
        kind=kind_of(lang), tensors=model.tensors(), config=model.config(), evaluations=rows,
        texts=texts.filter(~is_held), summary={"vocabulary": len(model.words), "pruned": model.pruned},
        data_hash=model_registry.hash_rows(texts.to_frame("text")), encoder=COUNT,
    )  # fmt: skip
    return model_registry.register(trained, day, run_id, started)


def count_all(day: str, ref: str | None = None, run_id: str = "cli") -> list[str | None]:
    """Count each language whose model is of counts; the ids of what was made."""
    return [count(lang, day, run_id) for lang in LANGS if settings.masked_lm(lang, ref) == COUNT]


def count_file(texts: Sequence[str], out: Path, lang: str | None = None) -> pl.DataFrame:
    """Count the words of texts into a folder; sentences, words and the size of the vocabulary."""
    from pipeline.models.ndd import count_lm
    from pipeline.training import registry

    registry.writable(out)
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select("text", lang=detect_language())
    found = [words for text, own in rows.iter_rows() for words in cut([text], lang or own)]
    model = count_lm.fit(found)
    registry.write(out, model.tensors(), model.config())
    model_registry.record_texts_of_folder(COUNT, out, rows["text"])
    counted = {"sentences": len(found), "words": sum(map(len, found)), "vocabulary": len(model.words)}
    return pl.DataFrame([counted])


def train(
    texts: Sequence[str], out: Path, profile: str = PROFILE, changes: Mapping[str, Any] | None = None,
    start: str | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Adapt an encoder to texts, by words that are masked, and write it as a Hugging Face folder.

    Args:
        texts: to learn from.
        out: folder, which should not be there yet, or be empty.
        profile: of `training.recam.masked_lm`.
        changes: to its numbers.
        start: the encoder by its folder or name; by default that in force.

    Returns:
        epoch, loss, cross_entropy and accuracy on texts held out, count.
    """
    from pipeline.training.recam import masked_lm

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: is there already; choose another folder")
    recipe = masked_lm.recipe_of(profile, **(changes or {}))
    source = start or settings.encoder()
    done = masked_lm.fit(
        texts, recipe, source, model_registry.locate_state(asdict(recipe), source, *texts), choose_device()
    )
    masked_lm.write(out, done)
    model_registry.record_texts_of_folder("masked_lm", out, pl.Series("text", texts, dtype=pl.String))
    return done.history


def adapt(day: str, lang: str = "en", profile: str = PROFILE, start: str | None = None) -> str:
    """Adapt an encoder to the corpus up to a day, once for the same texts and recipe; `<lang>=<folder of the model>`.

    Raises:
        Missing: there are no texts in the language.
    """
    texts = corpus(lang, day).to_list()
    if not texts:
        raise Missing(f"no comment or article in {lang} up to {day} to adapt an encoder to")
    made_of = hashlib.sha256(json.dumps([profile, start or settings.encoder(), __version__, *texts]).encode())
    folder = settings.models() / f"masked_lm-{made_of.hexdigest()[:16]}"
    if not folder.is_dir():
        try:
            train(texts, folder, profile, start=start)
        except (BadInput, OSError):
            if not folder.is_dir():  # else another run was faster
                raise
    model_registry.record_texts(kind_of(lang), folder.name, pl.Series("text", texts, dtype=pl.String))
    return f"{lang}={folder}"
