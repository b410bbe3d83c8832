"""Recovering what comments mean as tasks: with a language model, or a model fitted on references (CSD-03)."""

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

SOURCE = "recovery"  # of the answers in `completions`
WIDTH = 64  # of a model with random initial weights
Done = Callable[[int], None]


def recover(
    rows: pl.DataFrame, options: Options, on_progress: Done = lambda _: None, run_id: str = "cli"
) -> pl.DataFrame:
    """Ask a language model for the comment in plain words and for its meaning in context.

    Args:
        rows: text, context (null where there is none).
        options: of the language model.
        on_progress: called with the count of new answers.
        run_id: to which the limit on cost applies.

    Returns:
        The rows with plain, meaning and the reason for a missing meaning.

    Raises:
        Retry: some requests failed; the answers of the others are kept.
    """
    langs = _detect_languages(rows)
    requests = [
        _make_request(options, f"recover_{lang}", recovery.messages(text, context, lang, settings.llm_prompts()))
        for lang, (text, context) in zip(langs, rows.select("text", "context").iter_rows(), strict=True)
    ]
    answers = _collect_answers(requests, options, on_progress, run_id)
    parsed = [
        recovery.parse(answer, text, lang) if answer is not None else recovery.Parsed(None, None, "no_answer")
        for answer, text, lang in zip(answers, rows["text"], langs, strict=True)
    ]
    schema = dict.fromkeys(recovery.Parsed._fields, pl.String)
    return rows.drop(*schema, strict=False).hstack(pl.DataFrame(parsed, schema=schema, orient="row"))


def choose(
    choices: pl.DataFrame, options: Options, on_progress: Done = lambda _: None, run_id: str = "cli"
) -> list[int | None]:
    """Ask a language model which reading is meant; return the index of each chosen option, None without a choice.

    Args:
        choices: rows of `examples.subtext.recovery.read_choices`.
        options: of the language model.
        on_progress: called with the count of new answers.
        run_id: to which the limit on cost applies.
    """
    folder = settings.llm_prompts()
    columns = choices.select("text", "context", "options", "question").iter_rows()
    requests = [
        _make_request(
            options,
            f"choose_meaning_{lang}",
            recovery.choose_messages(text, context, readings, lang, folder, question=question),
        )
        for lang, (text, context, readings, question) in zip(_detect_languages(choices), columns, strict=True)
    ]
    answers = _collect_answers(requests, options, on_progress, run_id)
    counts = choices["options"].list.len()
    return [
        recovery.parse_choice(answer, count) if answer is not None else None
        for answer, count in zip(answers, counts, strict=True)
    ]


def _detect_languages(rows: pl.DataFrame) -> list[str]:
    """Detect Chinese in text and context, else assume English: a comment such as "666" has no language of its own."""
    texts = rows.select(_text=pl.concat_str("text", pl.col("context").fill_null(""), separator=" "))
    return ["zh" if lang == "zh" else "en" for lang in texts.select(detect_language("_text")).to_series()]


def _make_request(options: Options, name: str, messages: list[dict[str, str]]) -> Request:
    version = prompt.load(name, settings.llm_prompts()).version
    return Request(
        model=options.model, revision=options.revision, params=dict(options.params), prompt=name,
        prompt_version=version,
        messages=messages,
    )  # fmt: skip


def _collect_answers(requests: Sequence[Request], options: Options, on_progress: Done, run_id: str) -> list[str | None]:
    """Collect the raw answers in the order of the requests; None for a missing or truncated answer."""
    collected = asking.collect_answers(SOURCE, requests, options, on_progress, run_id)
    answers = (collected.answers.get(request.key) for request in requests)
    return [None if answer is None or answer.is_cut else answer.response for answer in answers]


def read(path: Path) -> pl.DataFrame:
    """Read the references of a file or of CN-SarcasmBench: item_id, text, context, meanings."""
    if path.suffix == ".json" or path.is_dir():
        return examples.read_sarcasm_bench(path)
    return examples.read(path)


def read_choices(path: Path, seed: int = SEED) -> pl.DataFrame:
    """Read the choices of a file or of CN-SarcasmBench; shuffle the latter's options, as its first is always right."""
    if path.suffix == ".json" or path.is_dir():
        return examples.shuffle_options(examples.read_sarcasm_bench(path), seed)
    return examples.read_choices(path)


def read_comments(path: Path) -> pl.DataFrame:
    """Read the comments of a file: text, and context where there is any."""
    rows = read_table([path], {"text": ("text", "comment")}, {"context": ("context",)})
    return rows.select("text", pl.col("context").str.strip_chars().replace("", None))


def measure(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the overlap of meanings with references, and of baselines that recover nothing.

    Args:
        rows: text, context, meanings; and meaning (null where there is none), without which there are only baselines.

    Returns:
        by (the answers first, then baselines), rouge_l, bleu, chrf, row_count, null_count.
    """
    baselines = measures.measure_overlap_baselines(rows).rename({"baseline": "by"})
    if "meaning" not in rows.columns:
        return baselines
    overlap = measures.measure_overlap(rows["meaning"].to_list(), rows["meanings"].to_list())
    answer_row = pl.DataFrame(
        [{"by": "answers", **overlap.corpus, "row_count": overlap.row_count, "null_count": overlap.null_count}]
    )
    return pl.concat([answer_row, baselines.select(answer_row.columns)], how="vertical_relaxed")


def measure_choices(choices: pl.DataFrame, chosen: Sequence[int | None] | None) -> pl.DataFrame:
    """Measure how often the right reading was chosen, by the answers and by baselines: by, accuracy, …"""
    baselines = measures.measure_choice_baselines(choices).rename({"baseline": "by"})
    if chosen is None:
        return baselines
    answer_row = pl.DataFrame([{"by": "answers", **measures.measure_choices(choices, chosen)._asdict()}])
    return pl.concat([answer_row, baselines.select(answer_row.columns)], how="vertical_relaxed")


def train(
    rows: pl.DataFrame, out: Path, *, start: str | None = None, changes: dict[str, Any] | None = None
) -> pl.DataFrame:
    """Fit a sequence-to-sequence model on references into a folder; return its losses by epoch.

    Args:
        rows: text, context, meaning, split.
        out: folder, which must not exist.
        start: model to start from, a folder or a hub name with @revision; by default a small one with random weights.
        changes: to the recipe.
    """
    from pipeline.models.subtext import seq2seq
    from pipeline.training.subtext import seq2seq as fitting

    recipe = replace(fitting.Recipe(), **{k: v for k, v in (changes or {}).items() if v is not None})
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"{out}: is there already; choose another folder")
    model = _load_model(start) if start else seq2seq.make_model(_list_texts(rows), width=WIDTH, seed=recipe.seed)
    fitted_model = fitting.fit(rows, model, recipe)
    seq2seq.save(fitted_model.model, out, {"recipe": fitted_model.recipe, "start": start or "random weights"})
    columns = [rows[name].cast(pl.String).alias("text") for name in ("text", "context", "meaning")]
    model_registry.record_texts_of_folder("recovery", out, pl.concat(columns))
    return fitted_model.history


def _list_texts(rows: pl.DataFrame) -> list[str]:
    train_rows = rows.filter(pl.col("split") == "train")
    return [text for name in ("text", "context", "meaning") for text in train_rows[name].drop_nulls()]


def _load_model(name: str) -> Any:
    from pipeline.models.subtext import seq2seq

    hub, _, revision = name.partition("@")
    return seq2seq.load(name if Path(name).is_dir() else hub, revision or None)


def split_references(rows: pl.DataFrame, seed: int = SEED) -> pl.DataFrame:
    """Split references 8:1:1 by item, with one row for each meaning."""
    from pipeline.examples.splits import add_split

    split = add_split(rows.select(pair_id="item_id"), "paper", seed).rename({"pair_id": "item_id"})
    return rows.join(split, on="item_id", maintain_order="left").with_columns(meaning="meanings").explode("meaning")


def generate(rows: pl.DataFrame, model: str, beams: int = 4) -> pl.DataFrame:
    """Recover meanings with a fitted model; return the rows with plain (always null), meaning and reason."""
    from pipeline.models.subtext import seq2seq

    texts = seq2seq.generate(_load_model(model), rows["text"].to_list(), rows["context"].to_list(), beams)
    meaning = pl.Series("meaning", texts, dtype=pl.String).str.strip_chars().replace("", None)
    reason = pl.when(pl.col("meaning").is_null()).then(pl.lit("empty"))
    generated_rows = rows.drop("plain", "meaning", "reason", strict=False).hstack([meaning])
    return generated_rows.with_columns(plain=pl.lit(None, pl.String), reason=reason)
