"""Commands about semantic distance and text compression: ndd, compress, score context-shift, studies of NDD."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from pipeline import warehouse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Encoding, Json, check_source, show, tell, today
from pipeline.errors import BadInput, Missing
from pipeline.progress import track
from pipeline.tasks.record.retry import retry

if TYPE_CHECKING:
    from pipeline.score.compress.search import Search
    from pipeline.tasks.ndd.masked_lm import LoadedModel
    from pipeline.tasks.ndd.systems import DistanceOptions

Masked = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="Masked language model: a folder, NAME@COMMIT, or count; UNDERTONE_MASKED_LM by default."
    ),
]
Lang = Annotated[str | None, typer.Option(help="en or zh; told by the script otherwise.")]
Kind = Annotated[str, typer.Option("--divergence", help="hellinger, kl or kl_reversed.")]
Syntax = Annotated[
    Path | None, typer.Option(help="CoNLL-U file with trees of the sentences; only whole subtrees are dropped then.")
]


def ndd(
    one: Annotated[str, typer.Argument(help="A sentence.")],
    other: Annotated[str, typer.Argument(help="Another one.")],
    model: Masked = None,
    lang: Lang = None,
    divergence: Kind = "hellinger",
    weights: Annotated[str, typer.Option(help="mean, sum, or distance (μ^distance to what differs).")] = "mean",
    explain: Annotated[
        bool, typer.Option("--explain", help="Each word that both have, with its divergence and weight.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Semantic distance of two sentences that share words: Neighbouring Distribution Divergence.

    0 for the same sentence; with hellinger and mean at most 1. Perplexity, and with a transformer the cosine of [CLS],
    stand beside it.

    Examples: `undertone ndd distance "The soup is hot." "The soup is cold." --explain`;
    `undertone ndd distance "我很冷" "我很热" -m bert-base-chinese@<commit>`
    """
    from typing import get_args

    from pipeline.metrics.ndd import distance
    from pipeline.tasks.ndd import distance as work
    from pipeline.tasks.ndd import masked_lm

    for name, value, known in (
        ("divergence", divergence, get_args(distance.Divergence)), ("weights", weights, get_args(distance.Weights)),
    ):  # fmt: skip
        if value not in known:
            raise BadInput(f"{name}: expected one of {', '.join(known)}, found {value!r}")
    _check(lang)
    lang = lang or _language(one, other)
    found = masked_lm.load_model(model, lang)
    first, second = (
        [word for words in masked_lm.tokenize_sentences([text], lang) for word in words] for text in (one, other)
    )
    if not first or not second:
        raise BadInput("expected two sentences with a word each")
    rows = distance.explain(found.model, first, second, divergence=divergence, weights=weights)  # type: ignore[arg-type]
    beside = work.measure_distances([first], [second], found)
    told: dict[str, object] = {
        "ndd": float(rows["share"].sum()), "delta_perplexity": float(beside["perplexity"][0]),
        **{name: float(beside[name][0]) for name in ("cosine",) if name in beside}, "signature": found.model.signature,
    }  # fmt: skip
    warn_of_counts(found)
    if rows["place"].min() == -1:
        console.say("the sentences share no word: what stands before and behind them is compared")
    elif unknown := _unknown(found, first, second):
        console.say(f"these counts do not know {', '.join(unknown)}: as good as any other such word")
    numbers = rows.with_columns(pl.col("divergence", "weight", "share").round(4))
    if as_json:
        tell(rows if explain else rows.clear(), told, as_json=True)
        return
    if explain:
        console.table(numbers)
    for name, number in told.items():
        console.out.print(f"{name}  {number:.4f}" if isinstance(number, float) else f"{name}  {number}", markup=False)


def _check(lang: str | None) -> None:
    from pipeline.tasks.ndd.masked_lm import LANGS

    if lang is not None and lang not in LANGS:
        raise BadInput(f"lang: expected one of {', '.join(LANGS)}, found {lang!r}")


def _unknown(found: "LoadedModel", *given: list[str]) -> list[str]:
    """Words that stand in one sentence alone and that a model of counts does not know."""
    known = set(getattr(found.model, "number", given[0] + given[1]))
    return sorted((set(given[0]) ^ set(given[1])) - known)


def _language(*texts: str) -> str:
    from pipeline.tasks.ndd.systems import choose_model_lang
    from pipeline.text.language import detect_language

    return choose_model_lang(str(pl.DataFrame({"text": " ".join(texts)}).select(detect_language()).item()))


def warn_of_counts(found: "LoadedModel") -> None:
    from pipeline.tasks.ndd import masked_lm

    if masked_lm.is_count_model(found):
        _mechanics()


def _mechanics() -> None:
    console.say("by counts of two neighbours: the mechanics, no result; --model takes a real masked language model")


def _warn_of(signatures: pl.Series) -> None:
    """The same of what was made: signatures tell by what."""
    if signatures.drop_nulls().str.contains(r"\|count:").any():
        _mechanics()


def compress(
    what: Annotated[str, typer.Argument(help="A text, or a file: txt (one a line), csv, tsv, jsonl, parquet, xlsx.")],
    ratio: Annotated[
        float | None,
        typer.Option(help="Share of the words to keep, such as 0.44; without, what costs at most --threshold goes."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="What a span may cost, N_max; the paper's number is for a real model.")
    ] = 1.0,
    max_span: Annotated[
        int | None, typer.Option(min=1, help="Words of a span at most, L_max; 5, with --syntax 9.")
    ] = None,
    max_rounds: Annotated[int, typer.Option(min=1, help="Rounds at most, without a ratio.")] = 5,
    nu: Annotated[float, typer.Option(help="Below 1 later words are dropped more easily.")] = 1.0,
    system: Annotated[
        str | None,
        typer.Option(help="ndd, fast_ndd, ppl_deleter, cosine or bertscore; with _sc only whole subtrees go."),
    ] = None,
    syntax: Syntax = None,
    rounds: Annotated[bool, typer.Option("--rounds", help="Show what is left after each round.")] = False,
    text_column: Annotated[str | None, typer.Option("--text-column", "-c", help="Column with the texts.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write csv, tsv, jsonl or parquet.")] = None,
    model: Masked = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Drop the words whose loss changes least what is expected of the others.

    A file comes back with `compressed`, `ratio` and `signature`; with --rounds also with `after`, a text a round.

    Examples: `undertone ndd compress "The old shop, which nobody liked, is shut." --ratio 0.5 --rounds`;
    `undertone ndd compress articles.csv -c body --ratio 0.44 -o short.csv -m bert-base-cased@<commit>`
    """
    from pipeline.score.compress.search import Search
    from pipeline.tasks.ndd import systems as work

    name = system or (work.DEFAULT_SYNTAX_SYSTEM if syntax else work.DEFAULT_SYSTEM)
    search = Search(ratio=ratio, threshold=threshold, longest=max_span, rounds=max_rounds)
    numbers = work.DistanceOptions(nu=nu)
    if _is_file(what):
        _compress_file(Path(what), text_column, out, encoding, (model, name, search, numbers, syntax), rounds, as_json)
        return
    if out or text_column or _looks_like_a_file(what):
        raise BadInput(f"there is no file {what[:60]!r}; expected a text, or a file of texts")
    found = work.compress_texts(pl.DataFrame({"text": [what]}), "text", model, name, search, numbers, syntax)
    if found["compressed"][0] is None:
        raise BadInput("expected a text with a word")
    _warn_of(found["signature"])
    if as_json:
        show(found, as_json=True)
        return
    if rounds:
        console.table(pl.DataFrame({"round": range(1, len(found["after"][0]) + 1), "text": found["after"][0]}))
    typer.echo(found["compressed"][0])


def _looks_like_a_file(what: str) -> bool:
    """A name with a known ending, or a folder."""
    try:
        return Path(what).is_dir() or (
            Path(what).suffix.lower() in (*files.WRITES, ".xlsx", ".json") and " " not in what
        )
    except (OSError, ValueError):
        return False


def _is_file(what: str) -> bool:
    try:
        return Path(what).is_file()
    except (OSError, ValueError):  # a text can be too long for a name, or hold what no name can
        return False


def _compress_file(
    path: Path, column: str | None, out: Path | None, encoding: str,
    how: "tuple[str | None, str, Search, DistanceOptions, Path | None]", has_rounds: bool, as_json: bool,
) -> None:  # fmt: skip
    from pipeline.tasks.ndd import systems as work

    def made() -> Iterator[pl.DataFrame]:
        for frame, name in files.texts(path, column, encoding):
            with track(f"compressing {path.name}", frame.height) as done:
                found = work.compress_texts(frame, name, *how, done)
            _warn_of(found["signature"])
            if not has_rounds:
                found = found.drop("after")
            elif not as_json and (out is None or out.suffix not in {".jsonl", ".parquet"}):
                found = found.with_columns(pl.col("after").list.join(" | "))
            yield found

    files.put(made(), out, as_json=as_json)


def score_context_shift(
    file: Annotated[
        Path | None, typer.Argument(help="Comments with the columns text and context; a day's by default.")
    ] = None,
    day: Day = "",
    text_column: Annotated[str | None, typer.Option("--text-column", "-c", help="Column with the texts.")] = None,
    context_column: Annotated[str, typer.Option(help="Column with the contexts.")] = "context",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write csv, tsv, jsonl or parquet.")] = None,
    model: Masked = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """How much a comment's context changes what its words lead to expect (f(s) against f(c + s)): 0 to 1.

    Examples: `undertone score context-shift comments.csv -o scored.csv`;
    `undertone score context-shift --day 2026-11-19`
    """
    from pipeline.tasks.ndd import context_shift as work

    check_source(file, day)
    if file is None:
        day = day or today()
        with track("scoring") as done:
            rows = retry(partial(work.score_day, day, model, on_progress=done))
        if not rows:
            raise Missing(f"there are no comments on {day}; `undertone tables` counts the days there are")
        console.say(f"{rows:,} scores for {day}")
        return
    files.put(_shifted(file, text_column, context_column, model, encoding), out, as_json=as_json)


def _shifted(
    file: Path, text_column: str | None, context_column: str, model: str | None, encoding: str
) -> Iterator[pl.DataFrame]:  # fmt: skip
    """The chunks of a file with their context shift."""
    from pipeline.tasks.ndd import context_shift as work

    for frame, name in files.texts(file, text_column, encoding):
        if context_column not in frame.columns:
            there = ", ".join(frame.columns)
            raise BadInput(f"{file}: no column {context_column!r}; there are {there}; say which with --context-column")
        with track(f"scoring {file.name}", frame.height) as done:
            told = frame.select(text=name, context=context_column)
            found = work.add_context_shift(told, model, on_progress=done).select(work.METRIC, "signature")
        _warn_of(found["signature"])
        yield frame.drop(found.columns, strict=False).hstack(found)


def train_count_lm(
    file: Annotated[Path | None, typer.Argument(help="Texts; without: the comments and articles there are.")] = None,
    text_column: Annotated[str | None, typer.Option("--text-column", "-c", help="Column with the texts.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the model; with a file.")] = None,
    lang: Lang = None,
    day: Day = "",
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Count which words stand between which: the embedded masked language model, for trying things out.

    Without a file those of each language in the tables, in force from the day on.

    Examples: `undertone train count-lm`; `undertone train count-lm texts.txt -o counts/`
    """
    from pipeline.tasks.ndd import masked_lm as work

    if (file is None) != (out is None):
        raise BadInput("a file and --out go together; without both the tables are counted")
    if file and out:
        texts = [text for frame, name in files.texts(file, text_column, encoding) for text in frame[name].drop_nulls()]
        show(work.count_file(texts, out, lang), as_json)
        return
    _check(lang)
    warehouse.create()
    made = {}
    for each in [lang] if lang else work.LANGS:
        with console.working(f"counting {each}"):
            made[each] = retry(partial(work.count_corpus, each, day or today()))
    if not any(made.values()):
        raise Missing("there are no comments and articles to count; `undertone import` brings some")
    show(pl.DataFrame({"lang": list(made), "model_id": list(made.values())}), as_json)


def check_ratio(ratio: float | None) -> None:
    if ratio is not None and not 0 < ratio <= 1:
        raise BadInput(f"ratio: expected above 0 and at most 1, found {ratio}")
