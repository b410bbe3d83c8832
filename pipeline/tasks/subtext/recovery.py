"""Recovering what comments mean as tasks: by asking a language model, or by a model fitted on references (CSD-03)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import settings
from pipeline.errors import BadInput
from pipeline.examples.sources.files import read_table
from pipeline.examples.splits import SEED
from pipeline.examples.subtext import recovery as examples
from pipeline.llm import prompt
from pipeline.llm.questions import recovery
from pipeline.llm.request import Request
from pipeline.metrics import recovery as measures
from pipeline.tasks import asking
from pipeline.tasks.asking import Options
from pipeline.tasks.record import model_registry
from pipeline.text.language import detect_language

SOURCE = "recovery"  # that answers are filed under in `completions`
WIDTH = 64  # of a model that is fitted from nothing
Done = Callable[[int], None]


def recover(
    rows: pl.DataFrame, options: Options, on_progress: Done = lambda _: None, run_id: str = "cli"
) -> pl.DataFrame:
    """Ask a language model for both steps: the comment in plain words, and what it means in its context.

    Args:
        rows: text, context (null where there is none).
        options: whom to ask.
        on_progress: told how many answers came.
        run_id: that a limit on cost holds for.

    Returns:
        The rows with plain, meaning and reason, which says why there is no meaning.

    Raises:
        Retry: some requests failed for now; those answered are kept.
    """
    langs = _detect_languages(rows)
    every = [
        _make_request(options, f"recover_{lang}", recovery.messages(text, context, lang, settings.llm_prompts()))
        for lang, (text, context) in zip(langs, rows.select("text", "context").iter_rows(), strict=True)
    ]
    answers = _collect_answers(every, options, on_progress, run_id)
    parsed = [
        recovery.parse(answer, text, lang) if answer is not None else recovery.Parsed(None, None, "no_answer")
        for answer, text, lang in zip(answers, rows["text"], langs, strict=True)
    ]
    schema = dict.fromkeys(recovery.Parsed._fields, pl.String)
    return rows.drop(*schema, strict=False).hstack(pl.DataFrame(parsed, schema=schema, orient="row"))


def choose(
    choices: pl.DataFrame, options: Options, on_progress: Done = lambda _: None, run_id: str = "cli"
) -> list[int | None]:
    """Ask a language model which reading is meant: places of the options chosen, None where it chose none.

    Args:
        choices: rows of `examples.subtext.recovery.read_choices`.
        options: whom to ask.
        on_progress: told how many answers came.
        run_id: that a limit on cost holds for.
    """
    folder = settings.llm_prompts()
    columns = choices.select("text", "context", "options", "question").iter_rows()
    every = [
        _make_request(
            options,
            f"choose_meaning_{lang}",
            recovery.choose_messages(text, context, readings, lang, folder, question=question),
        )
        for lang, (text, context, readings, question) in zip(_detect_languages(choices), columns, strict=True)
    ]
    answers = _collect_answers(every, options, on_progress, run_id)
    counts = choices["options"].list.len()
    return [
        recovery.parse_choice(answer, count) if answer is not None else None
        for answer, count in zip(answers, counts, strict=True)
    ]


def _detect_languages(rows: pl.DataFrame) -> list[str]:
    """Chinese where text or context is, else English: a comment such as "666" has no language of its own."""
    both = rows.select(_text=pl.concat_str("text", pl.col("context").fill_null(""), separator=" "))
    return ["zh" if lang == "zh" else "en" for lang in both.select(detect_language("_text")).to_series()]


def _make_request(how: Options, name: str, messages: list[dict[str, str]]) -> Request:
    version = prompt.load(name, settings.llm_prompts()).version
    return Request(
        model=how.model, revision=how.revision, params=dict(how.params), prompt=name, prompt_version=version,
        messages=messages,
    )  # fmt: skip


def _collect_answers(every: Sequence[Request], how: Options, done: Done, run_id: str) -> list[str | None]:
    """Raw answers in the order of the requests; those that are not cut off."""
    asked = asking.collect_answers(SOURCE, every, how, done, run_id)
    found = (asked.answers.get(request.key) for request in every)
    return [None if answer is None or answer.is_cut else answer.response for answer in found]


def read(path: Path) -> pl.DataFrame:
    """References of a file or of CN-SarcasmBench: item_id, text, context, meanings."""
    if path.suffix == ".json" or path.is_dir():
        return examples.read_sarcasm_bench(path)
    return examples.read(path)


def read_choices(path: Path, seed: int = SEED) -> pl.DataFrame:
    """Choices of a file or of CN-SarcasmBench, whose options are dealt anew: as published the first is right."""
    if path.suffix == ".json" or path.is_dir():
        return examples.shuffle_options(examples.read_sarcasm_bench(path), seed)
    return examples.read_choices(path)


def read_comments(path: Path) -> pl.DataFrame:
    """Comments of a file: text, and context where there is any."""
    rows = read_table([path], {"text": ("text", "comment")}, {"context": ("context",)})
    return rows.select("text", pl.col("context").str.strip_chars().replace("", None))


def measure(rows: pl.DataFrame) -> pl.DataFrame:
    """How far meanings overlap with references, and what answers that recover nothing reach.

    Args:
        rows: text, context, meanings and, unless the baselines stand alone, meaning (null where there is none).

    Returns:
        by (the answers first, then baselines), rouge_l, bleu, chrf, row_count, null_count.
    """
    beside = measures.measure_overlap_baselines(rows).rename({"baseline": "by"})
    if "meaning" not in rows.columns:
        return beside
    found = measures.measure_overlap(rows["meaning"].to_list(), rows["meanings"].to_list())
    mine = pl.DataFrame(
        [{"by": "answers", **found.corpus, "row_count": found.row_count, "null_count": found.null_count}]
    )
    return pl.concat([mine, beside.select(mine.columns)], how="vertical_relaxed")


def measure_choices(choices: pl.DataFrame, chosen: Sequence[int | None] | None) -> pl.DataFrame:
    """How often the right reading was chosen, and what choices that understand nothing reach: by, accuracy, …"""
    beside = measures.measure_choice_baselines(choices).rename({"baseline": "by"})
    if chosen is None:
        return beside
    mine = pl.DataFrame([{"by": "answers", **measures.measure_choices(choices, chosen)._asdict()}])
    return pl.concat([mine, beside.select(mine.columns)], how="vertical_relaxed")


def train(
    rows: pl.DataFrame, out: Path, *, start: str | None = None, changes: dict[str, Any] | None = None
) -> pl.DataFrame:
    """Fit a sequence-to-sequence model on references into a folder; its losses by epoch.

    Args:
        rows: text, context, meaning, split.
        out: folder, which should not be there yet.
        start: model to begin with, a folder or a hub name with @revision; a small one of random weights by default.
        changes: to the recipe.
    """
    from pipeline.models.subtext import seq2seq
    from pipeline.training.subtext import seq2seq as fitting

    recipe = replace(fitting.Recipe(), **{k: v for k, v in (changes or {}).items() if v is not None})
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"{out}: is there already; choose another folder")
    model = _load_model(start) if start else seq2seq.make_model(_list_texts(rows), width=WIDTH, seed=recipe.seed)
    fitted = fitting.fit(rows, model, recipe)
    seq2seq.save(fitted.model, out, {"recipe": fitted.recipe, "start": start or "random weights"})
    read = [rows[name].cast(pl.String).alias("text") for name in ("text", "context", "meaning")]
    model_registry.record_texts_of_folder("recovery", out, pl.concat(read))
    return fitted.history


def _list_texts(rows: pl.DataFrame) -> list[str]:
    learnt = rows.filter(pl.col("split") == "train")
    return [text for name in ("text", "context", "meaning") for text in learnt[name].drop_nulls()]


def _load_model(name: str) -> Any:
    from pipeline.models.subtext import seq2seq

    hub, _, revision = name.partition("@")
    return seq2seq.load(name if Path(name).is_dir() else hub, revision or None)


def split_references(rows: pl.DataFrame, seed: int = SEED) -> pl.DataFrame:
    """References as rows to learn from: a row a meaning, 8:1:1 by item."""
    from pipeline.examples.splits import add_split

    split = add_split(rows.select(pair_id="item_id"), "paper", seed).rename({"pair_id": "item_id"})
    return rows.join(split, on="item_id", maintain_order="left").with_columns(meaning="meanings").explode("meaning")


def generate(rows: pl.DataFrame, model: str, beams: int = 4) -> pl.DataFrame:
    """The same interface by a fitted model: the rows with plain (null: it has one step), meaning and reason."""
    from pipeline.models.subtext import seq2seq

    told = seq2seq.generate(_load_model(model), rows["text"].to_list(), rows["context"].to_list(), beams)
    meaning = pl.Series("meaning", told, dtype=pl.String).str.strip_chars().replace("", None)
    reason = pl.when(pl.col("meaning").is_null()).then(pl.lit("empty"))
    found = rows.drop("plain", "meaning", "reason", strict=False).hstack([meaning])
    return found.with_columns(plain=pl.lit(None, pl.String), reason=reason)
