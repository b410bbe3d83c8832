"""Commands about semantic distance and text compression."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.commands.models import end_training
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, Missing, check_name, format_quantity
from pipeline.metrics.ndd import distance as metric
from pipeline.progress import OnProgress, track
from pipeline.score.compress.search import Search
from pipeline.score.signature import drop_earlier_scores
from pipeline.slices import LIST_DAYS
from pipeline.tasks.ndd import context_shift, distance, masked_lm, systems
from pipeline.tasks.record.retry import retry
from pipeline.text.language import detect_language

_MASKED = "Masked language model: a folder, NAME@COMMIT, or count; UNDERTONE_MASKED_LM by default."
Masked = Annotated[str | None, Option("--model", "-m", help=_MASKED)]
Lang = Annotated[str | None, Option(help="en or zh; by default what the script suggests.")]
Kind = Annotated[str, Option("--divergence", help="hellinger, kl (the paper's for compressions) or kl_reversed.")]
Weighting = Annotated[str, Option("--weights", help="Of near and far words: balanced, exponential, printed, released.")]
PairWeights = Annotated[
    str, Option("--weights", help="mean, sum, or distance (μ^distance to what differs, or to the context).")
]
SpanRange = Annotated[Literal["paper", "released"], Option(help="released: none of L_max words or with the last word.")]
Syntax = Annotated[Path | None, Option(help="CoNLL-U file with trees: then only whole subtrees are dropped.")]


def ndd(
    one: Annotated[str, Argument(help="One sentence.")],
    other: Annotated[str, Argument(help="Sentence to compare it with.")],
    model: Masked = None,
    lang: Lang = None,
    divergence: Kind = "hellinger",
    weights: PairWeights = "mean",
    explain: Annotated[bool, Option("--explain", help="Each word of both, with its divergence and weight.")] = False,
    as_json: shared.Json = False,
) -> None:
    """Semantic distance of two sentences that share words: Neighbouring Distribution Divergence.

    0 for the same sentence, or where no shared word has other neighbours; with hellinger and mean at most 1.
    `delta_perplexity` is the absolute difference of their log perplexities (the mean of -log p, each word masked
    alone). A transformer also gives the cosine of [CLS], of the beginning of a sentence that is too long for it.

    Examples: `undertone ndd distance "The soup is hot." "The soup is cold." --explain`;
    `undertone ndd distance "我很冷" "我很热" -m bert-base-chinese@<commit>`
    """
    metric.check_options(divergence, weights)
    check_name("language", lang or "en", masked_lm.LANGS)
    script_lang = pl.DataFrame({"text": f"{one} {other}"}).select(detect_language()).item()
    lang = lang or systems.choose_model_lang(str(script_lang))
    lm = masked_lm.load_model(model, lang)
    first, second = ([*chain(*masked_lm.tokenize_sentences([text], lang))] for text in (one, other))
    if not first or not second:
        raise BadInput("expected two sentences with a word each")
    rows = metric.explain(lm.model, first, second, divergence=divergence, weights=weights)  # type: ignore[arg-type]
    rivals = distance.measure_distances([first], [second], lm)
    numbers: dict[str, object] = {"ndd": float(rows["share"].sum()), "delta_perplexity": float(rivals["perplexity"][0])}
    if "cosine" in rivals:
        numbers["cosine"] = float(rivals["cosine"][0])
    numbers["signature"] = f"{lm.model.signature}|divergence:{divergence}|weights:{weights}"
    warn_of_counts(lm.model.signature)
    vocabulary = getattr(lm.model, "number", {*first, *second})  # of counts
    if rows["place"].min() == -1:
        console.report("the sentences share no word: what stands before and behind them is compared")
    elif unknown := sorted(({*first} ^ {*second}) - {*vocabulary}):
        console.report(f"these counts do not know {', '.join(unknown)}: as good as any other such word")
    if as_json:
        console.print_result(rows if explain else rows.clear(), numbers, as_json=True)
        return
    if explain:
        console.table(rows.with_columns(pl.col("divergence", "weight", "share").round(4)))
    for name, number in numbers.items():
        console.out.print(f"{name}  {number:.4f}" if isinstance(number, float) else f"{name}  {number}", markup=False)


def warn_of_counts(*signatures: str | None) -> None:
    """Warn if the signature names a model of counts."""
    if any(part.startswith("count:") for signature in signatures for part in (signature or "").split("|")):
        advice = "--model takes a real masked language model"
        console.report(f"by counts of two neighbours: the mechanics, no result; {advice}")


def compress(
    what: Annotated[str, Argument(help="A text, or a file: txt (one a line), csv, tsv, jsonl, parquet, xlsx.")],
    ratio: Annotated[
        float | None, Option(help="Share of the words to keep, such as 0.44; else spans go by --threshold.")
    ] = None,
    threshold: Annotated[float, Option(help="What a span may cost, N_max; the paper's is for a real model.")] = 1.0,
    max_span: Annotated[int | None, Option(min=1, help="Words of a span at most, L_max; 5, with --syntax 9.")] = None,
    max_rounds: Annotated[int, Option(min=1, help="Rounds at most, without a ratio.")] = 5,
    nu: Annotated[float, Option(help="Below 1 later words are dropped more easily.")] = 1.0,
    divergence: Kind = "kl",
    weights: Weighting = "balanced",
    spans: SpanRange = "paper",
    system: Annotated[str | None, Option(help="ndd, fast_ndd, ppl_deleter, cosine, bertscore; _sc: subtrees.")] = None,
    syntax: Syntax = None,
    rounds: Annotated[bool, Option("--rounds", help="Show the text after each round, and what it dropped.")] = False,
    text_column: shared.Texts = None,
    out: shared.TableFile = None,
    model: Masked = None,
    encoding: shared.Encoding = "utf-8-sig",
    as_json: shared.Json = False,
) -> None:
    """Drop the words whose loss changes least what is expected of the others.

    A file comes back with `compressed`, `ratio` and `signature`; with --rounds also with `after`, a text a round, and
    `dropped`: each span with its round, words, their places in the text from 0, and cost.

    Examples: `undertone ndd compress "The old shop, which nobody liked, is shut." --ratio 0.5 --rounds`;
    `undertone ndd compress articles.csv -c body --ratio 0.44 -o short.csv -m bert-base-cased@<commit>`
    """
    method = systems.Method(
        system=system or (systems.DEFAULT_SYNTAX_SYSTEM if syntax else systems.DEFAULT_SYSTEM),
        search=Search(ratio=ratio, threshold=threshold, longest=max_span, rounds=max_rounds, spans=spans),
        distance=systems.DistanceOptions(divergence=divergence, weighting=weights, nu=nu),  # type: ignore[arg-type]
    )
    is_default = method.distance == systems.DistanceOptions()
    if not is_default and systems.get_system(method.system).scorer not in systems.NDD_SCORERS:
        raise BadInput(f"--divergence, --weights and --nu are of ndd and fast_ndd; {method.system} has none of them")
    compress_rows = partial(systems.compress_texts, method=method, ref=model, syntax=syntax)
    if _is_path(what, Path.is_file):
        has_lists = as_json or (out is not None and out.suffix in {".jsonl", ".parquet"})
        chunks = _convert_file(Path(what), text_column, encoding, "compressing", compress_rows)
        chunks = files.count_unscored(chunks, "compressed", "compress")
        if not rounds:
            chunks = (chunk.drop("after", "dropped") for chunk in chunks)
        elif not has_lists:
            span = pl.element().struct
            span_text = pl.format("{}: {} ({})", *(span.field(name) for name in ("round", "words", "cost")))
            texts = (pl.col("after"), pl.col("dropped").list.eval(span_text))
            chunks = (chunk.with_columns(column.list.join(" | ") for column in texts) for chunk in chunks)
        files.write_frames(chunks, out, as_json=as_json)
        return
    has_ending = Path(what).suffix.lower() in (*files.WRITES, ".xlsx", ".json")
    if out or text_column or _is_path(what, Path.is_dir) or (has_ending and " " not in what):
        raise BadInput(f"there is no file {what[:60]!r}; expected a text, or a file of texts")
    result = compress_rows(pl.DataFrame({"text": [what]}), "text")
    if result["compressed"][0] is None:
        raise BadInput("expected a text with a word")
    warn_of_counts(*result["signature"])
    if as_json:
        console.show(result, as_json=True)
        return
    if rounds:
        console.table(pl.DataFrame({"round": range(1, len(result["after"][0]) + 1), "text": result["after"][0]}))
        dropped = pl.DataFrame(result["dropped"][0].to_list(), systems.DROPPED)
        console.table(dropped.with_columns(pl.col("places").cast(pl.List(pl.String)).list.join(" ")), "\nDropped")
    echo(result["compressed"][0])


def _is_path(what: str, is_kind: Callable[[Path], bool]) -> bool:
    try:
        return is_kind(Path(what))
    except (OSError, ValueError):  # a text can be too long for a name, or hold what no name can
        return False


def _convert_file(
    path: Path,
    column: str | None,
    encoding: str,
    name: str,
    convert: Callable[..., pl.DataFrame],
    *,
    skip_bad_rows: bool = False,
) -> Iterator[pl.DataFrame]:
    """Convert the chunks of a file, each with the name of its texts; `name` is what the progress is called."""
    for frame, text_column in files.texts(path, column, encoding, skip_bad_rows=skip_bad_rows):
        with track(f"{name} {path.name}", frame.height) as on_progress:
            chunk = convert(frame, text_column, on_progress=on_progress)
        warn_of_counts(*chunk["signature"])
        yield chunk


def score_context_shift(
    file: Annotated[Path | None, Argument(help="Comments with columns text and context; a day's by default.")] = None,
    day: shared.MaybeDay = "",
    text_column: shared.Texts = None,
    context_column: Annotated[str, Option(help="Column with the contexts.")] = "context",
    divergence: Kind = "hellinger",
    weights: PairWeights = "mean",
    out: shared.TableFile = None,
    model: Masked = None,
    encoding: shared.Encoding = "utf-8-sig",
    skip_bad_rows: shared.SkipBadRows = False,
    as_json: shared.Json = False,
) -> None:
    """How much a comment's context changes what its words lead to expect (f(s) against f(c + s)).

    From 0 to 1 with hellinger and mean.

    Examples: `undertone score context-shift comments.csv -o scored.csv`;
    `undertone score context-shift --day 2026-11-19`
    """
    shared.check_source(file, day)
    metric.check_options(divergence, weights)
    options = {"divergence": divergence, "weights": weights}
    if file is None:
        day = day or shared.today()
        with track("scoring") as on_progress:
            rows = retry(context_shift.score_day, day, model, on_progress=on_progress, **options)
        if not rows:
            raise Missing(f"there are no comments on {day}; {LIST_DAYS}")
        console.report(f"{format_quantity(rows, 'score')} for {day}")
        return

    def add_shift(frame: pl.DataFrame, name: str, on_progress: OnProgress) -> pl.DataFrame:
        if context_column not in frame.columns:
            names = ", ".join(frame.columns)
            raise BadInput(f"{file}: no column {context_column!r}; there are {names}; name it with --context-column")
        columns = ("context_shift", "signature")
        other_columns = drop_earlier_scores(frame, "context_shift", columns)
        texts = frame.select(text=name, context=context_column)
        scores = context_shift.add_context_shift(texts, model, on_progress=on_progress, **options)  # type: ignore[arg-type]
        return other_columns.hstack(scores.select(columns))

    chunks = _convert_file(file, text_column, encoding, "scoring", add_shift, skip_bad_rows=skip_bad_rows)
    files.write_frames(files.count_unscored(chunks, "context_shift", "score"), out, as_json=as_json)


def train_count_lm(
    file: Annotated[Path | None, Argument(help="Texts; without: the comments and articles there are.")] = None,
    text_column: shared.Texts = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model; with a file.")] = None,
    lang: Lang = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.Day = "",
    encoding: shared.Encoding = "utf-8-sig",
    as_json: shared.Json = False,
) -> None:
    """Count which words stand between which: the embedded masked language model, for trying things out.

    Without a file those of each language in the tables, in force from the day on.

    Examples: `undertone train count-lm`; `undertone train count-lm texts.txt -o counts/`
    """
    shared.check_promote(out, promote)
    if (file is None) != (out is None):
        raise BadInput("a file and --out go together; without both the tables are counted")
    if file and out:
        texts = [text for frame, name in files.texts(file, text_column, encoding) for text in frame[name].drop_nulls()]
        console.show(masked_lm.count_file(texts, out, lang, force=force), as_json)
        return
    check_name("language", lang or "en", masked_lm.LANGS)
    warehouse.create()
    model_ids = {}
    for corpus_lang in [lang] if lang else masked_lm.LANGS:
        with console.working(f"counting {corpus_lang}"):
            model_ids[corpus_lang] = retry(partial(masked_lm.count_corpus, corpus_lang, day, promote=promote))
    if not any(model_ids.values()):
        raise Missing("there are no comments and articles to count; import some with `undertone import`")
    console.show(pl.DataFrame({"lang": list(model_ids), "model_id": list(model_ids.values())}), as_json)
    end_training(*filter(None, model_ids.values()))
