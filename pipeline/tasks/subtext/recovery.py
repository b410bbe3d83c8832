"""Recovering what comments mean as tasks: with a language model, or a model fitted on references (CSD-03)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.examples.splits import add_split
from pipeline.io.atomic import check_empty
from pipeline.io.visible import BLANK
from pipeline.llm.questions import recovery
from pipeline.llm.questions.answer import format_question
from pipeline.tasks import asking
from pipeline.tasks.record import model_registry
from pipeline.text.language import detect_language

COLUMNS = recovery.Parsed._fields  # that a recovery adds to rows
SOURCE = "recovery"  # of the answers in `completions`
WIDTH = 64  # of a model with random initial weights


def recover(rows: pl.DataFrame, options: asking.Options) -> pl.DataFrame:
    """Ask a language model for comments in plain words and their meanings: adds plain, meaning, reason for none."""

    def ask(filled: pl.DataFrame) -> list[recovery.Parsed]:
        langs, texts = _detect_languages(filled), filled["text"].to_list()
        questions = [format_question(row) for row in filled.select("context", "text").iter_rows(named=True)]
        answers = _ask("recover", langs, questions, options)
        none = recovery.Parsed(None, None, "no_answer")
        triples = zip(answers, texts, langs, strict=True)
        return [none if answer is None else recovery.parse(answer, text, lang) for answer, text, lang in triples]

    return _add_recoveries(rows, ask)


def _add_recoveries(rows: pl.DataFrame, write: Callable[[pl.DataFrame], list[recovery.Parsed]]) -> pl.DataFrame:
    """Add plain, meaning and reason, which a function writes for the rows with a text."""
    has_text = rows.select(~pl.col("text").fill_null("").str.contains(BLANK)).to_series()
    recovered, none = iter(write(rows.filter(has_text))), recovery.Parsed(None, None, "no_text")
    parsed = [next(recovered) if is_filled else none for is_filled in has_text]
    schema = dict.fromkeys(COLUMNS, pl.String)
    return rows.drop(*schema, strict=False).hstack(pl.DataFrame(parsed, schema=schema, orient="row"))


def choose(choices: pl.DataFrame, options: asking.Options) -> list[int | None]:
    """Ask which reading of `read_choices` is meant; return the index of each chosen option, None without a choice."""
    columns = choices.select("text", "context", "options", "question").iter_rows()
    questions = [recovery.format_choice(*row) for row in columns]
    answers = _ask("choose_meaning", _detect_languages(choices), questions, options)
    pairs = zip(answers, choices["options"].list.len(), strict=True)
    return [None if answer is None else recovery.parse_choice(answer, count) for answer, count in pairs]


def _detect_languages(rows: pl.DataFrame) -> list[str]:
    """Detect Chinese in text and context, else assume English: a comment such as "666" has no language of its own."""
    texts = rows.select(_text=pl.concat_str("text", pl.col("context").fill_null(""), separator=" "))
    return ["zh" if lang == "zh" else "en" for lang in texts.select(detect_language("_text")).to_series()]


def _ask(name: str, langs: Sequence[str], questions: Sequence[str], options: asking.Options) -> list[str | None]:
    """Ask questions, each with the prompt of its language; None for a missing or truncated answer."""
    pairs = zip(langs, questions, strict=True)
    requests = [asking.build_request(f"{name}_{lang}", question, options) for lang, question in pairs]
    answers = asking.collect_answers(SOURCE, requests, options)
    return [None if answer is None or answer.is_cut else answer.response for answer in answers]


def train(
    rows: pl.DataFrame, out: Path, *, start: str | None = None, changes: dict[str, Any] | None = None
) -> pl.DataFrame:
    """Fit a sequence-to-sequence model on references, from a start or small random weights; return losses by epoch."""
    from pipeline.models.subtext import seq2seq
    from pipeline.training.subtext import seq2seq as fitting

    recipe = replace(fitting.Recipe(), **{k: v for k, v in (changes or {}).items() if v is not None})
    check_empty(out)
    columns = [rows[name].cast(pl.String).alias("text") for name in ("text", "context", "meaning")]
    train_texts = [text for column in columns for text in column.filter(rows["split"] == "train").drop_nulls()]
    model = seq2seq.load(start) if start else seq2seq.make_model(train_texts, width=WIDTH, seed=recipe.seed)
    result = fitting.fit(rows, model, recipe)
    seq2seq.save(model, out, {"recipe": result.config, "start": start or "random weights"})
    model_registry.record_texts_of_folder("recovery", out, pl.concat(columns))
    return result.history


def split_references(rows: pl.DataFrame) -> pl.DataFrame:
    """Split references 8:1:1 by item, with one row for each meaning."""
    split = add_split(rows.select(pair_id="item_id")).rename({"pair_id": "item_id"})
    return rows.join(split, on="item_id", maintain_order="left").with_columns(meaning="meanings").explode("meaning")


def generate(rows: pl.DataFrame, model: str) -> pl.DataFrame:
    """Recover meanings with a fitted model; return the rows with plain (always null), meaning and reason."""
    from pipeline.models.subtext import seq2seq

    def write(filled: pl.DataFrame) -> list[recovery.Parsed]:
        texts = seq2seq.generate(seq2seq.load(model), filled["text"].to_list(), filled["context"].to_list())
        return [recovery.Parsed(None, text or None, None if text else "empty") for text in texts]

    return _add_recoveries(rows, write)
