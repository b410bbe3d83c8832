"""Commands about semantic distance and text compression: measured, graded, tested, on a page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.commands.label import Folder, Raters
from pipeline.commands.models import end_training
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.metrics.ndd import distance as metric
from pipeline.progress import OnProgress, iterate, track
from pipeline.score.compress.search import Search
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.labelling import projects
from pipeline.tasks.ndd import compressions, context_shift, distance, grades, masked_lm, systems
from pipeline.tasks.record import runs
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
    alone). A transformer also gives the cosine of [CLS].

    Examples: `undertone ndd distance "The soup is hot." "The soup is cold." --explain`;
    `undertone ndd distance "我很冷" "我很热" -m bert-base-chinese@<commit>`
    """
    metric.check_options(divergence, weights)
    _check_choice("lang", lang or "en", masked_lm.LANGS)
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


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise BadInput(f"{name}: expected one of {', '.join(choices)}, found {value!r}")


def warn_of_counts(*signatures: str | None) -> None:
    """Warn if the signature names a model of counts."""
    if any(part.startswith("count:") for signature in signatures for part in (signature or "").split("|")):
        console.report(
            "by counts of two neighbours: the mechanics, no result; --model takes a real masked language model"
        )


def compress(
    what: Annotated[str, Argument(help="A text, or a file: txt (one a line), csv, tsv, jsonl, parquet, xlsx.")],
    ratio: Annotated[
        float | None,
        Option(help="Share of the words to keep, such as 0.44; without, what costs at most --threshold goes."),
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
    is_default = replace(method.distance, nu=1.0) == systems.DistanceOptions()
    if not is_default and systems.get_system(method.system).scorer not in systems.NDD_SCORERS:
        raise BadInput(f"--divergence and --weights are of ndd and fast_ndd; {method.system} has neither")
    compress_rows = partial(systems.compress_texts, method=method, ref=model, syntax=syntax)
    if _is_path(what, Path.is_file):
        has_lists = as_json or (out is not None and out.suffix in {".jsonl", ".parquet"})
        chunks = _convert_file(Path(what), text_column, encoding, "compressing", compress_rows)
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
            raise Missing(f"there are no comments on {day}; `undertone tables` lists the days with comments")
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
    files.write_frames(chunks, out, as_json=as_json)


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
    _check_choice("lang", lang or "en", masked_lm.LANGS)
    warehouse.create()
    model_ids = {}
    for corpus_lang in [lang] if lang else masked_lm.LANGS:
        with console.working(f"counting {corpus_lang}"):
            model_ids[corpus_lang] = retry(partial(masked_lm.count_corpus, corpus_lang, day, promote=promote))
    if not any(model_ids.values()):
        raise Missing("there are no comments and articles to count; import some with `undertone import`")
    console.show(pl.DataFrame({"lang": list(model_ids), "model_id": list(model_ids.values())}), as_json)
    end_training(*filter(None, model_ids.values()))


Source = Annotated[str, Option(help="Name that the compressions are filed under.")]


def compress_data(
    data: Annotated[Path | None, Option("--data", help="Sentences with people's compressions; or our sample.")] = None,
    data_format: Annotated[str, Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    source: Annotated[str, Option(help="Name to file the compressions under.")] = "sample",
    split: Annotated[str | None, Option(help="Part of the data, such as test.")] = None,
    system: Annotated[list[str] | None, Option(help="System; repeat it. By default all that the model can do.")] = None,
    ratio: Annotated[float | None, Option(help="Share of the words to keep; that of people by default.")] = None,
    divergence: Kind = "kl",
    weights: Weighting = "balanced",
    spans: SpanRange = "paper",
    thresholds: Annotated[bool, Option("--thresholds", help="Table 6 as well: Fast NDD without a ratio.")] = False,
    syntax: Syntax = None,
    model: Masked = None,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Compress a data set by every system and measure them, into `compressions` and `studies` (tables 3 and 5).

    A system with _sc compresses only sentences that have a tree; a second table has all systems on these.

    Example: `undertone ndd measure --data google.jsonl --data-format google --source google -m NAME@COMMIT`
    """
    if data is None and source != compressions.SAMPLE:
        raise BadInput("--source names the data; give --data as well")
    if data and source == compressions.SAMPLE:
        raise BadInput("--data needs a --source, the name to file its compressions under")
    warehouse.create()
    path, trees = (str(file) if file else None for file in (data, syntax))
    params: dict[str, Any] = {"source": source, "data": path, "format": data_format, "split": split, "syntax": trees}
    params |= {"ratio": ratio, "divergence": divergence, "weights": weights, "spans": spans, "model": model}
    params["systems"] = system or list(systems.SYSTEMS)
    compressions.check_params(params)
    job = compressions.make_job(params, day, model)
    names = compressions.list_systems(params["systems"], model, is_explicit=bool(system))
    warn_of_counts(masked_lm.load_model(model, day=day).model.signature)
    staged = [compressions.stage(name, job) for name in names]
    retry(compressions.publish, staged, source, day)
    retry(grades.publish, source, day)  # means of grades are of the compressions there are
    retry(compressions.publish_measures, source, day)
    if thresholds:
        with track("sentences compressed by each threshold") as on_progress:
            rows = compressions.try_thresholds(compressions.load_items(path, data_format, split), job, on_progress)
        retry(compressions.publish_thresholds, rows, source, day)
    for lang, numbers in systems.split_languages(compressions.load_measures(source, day)):
        if not as_json:
            console.report(f"{source}, {lang.replace(':common', ', the sentences that all systems compressed')}")
        console.show(numbers if as_json else compressions.summarize_measures(numbers), as_json)


def measure_distance(
    pairs: Annotated[Path | None, Option(help="Graded pairs, csv as STS-B or jsonl; the sample's by default.")] = None,
    syntax: Annotated[Path | None, Option(help="Treebank in CoNLL-U; the sample's by default.")] = None,
    limit: Annotated[int, Option(min=1, help="Sentences of the treebank, and of those that are edited.")] = 200,
    divergence: Annotated[
        str | None,
        Option(help="hellinger, kl or kl_reversed; by default the paper's, hellinger for pairs, kl for trees."),
    ] = None,
    weights: PairWeights = "mean",
    model: Masked = None,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Test the distance into `studies`: edits (table 1), overlap (figure 3), pruning (table 7), predicates (table 8).

    Example: `undertone ndd test --pairs stsb-en-dev.csv --syntax en_ewt-ud-test.conllu`
    """
    metric.check_options(divergence or "kl", weights)
    warehouse.create()
    rows_by_study = {}
    data, treebank = (str(path) if path else None for path in (pairs, syntax))
    warn_of_counts(masked_lm.load_model(model, day=day).model.signature)
    for study in iterate(distance.TESTS, "tests"):
        rows_by_study[study] = distance.run_study(study, day, model, data, treebank, limit, divergence, weights)  # type: ignore[arg-type]
        retry(compressions.replace_study, study, rows_by_study[study], day)
    if as_json:
        console.show(pl.concat(rows_by_study.values()), as_json=True)
    for study, rows in () if as_json else rows_by_study.items():
        console.report(study)
        console.table(distance.summarize_tests(rows))


def page(day: Day = "") -> None:
    """Write the page of compressions and tests, and print its path. Example: `undertone ndd page`"""
    from pipeline.tasks.ndd import page as ndd_page

    with console.working("writing the page"):
        echo(ndd_page.write(day))


def evaluate(
    data: Annotated[Path, Option("--data", help="Sentences with compressions by people.")],
    data_format: Annotated[str, Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    predictions: Annotated[Path | None, Option(help="Compressions of these sentences, in our own format.")] = None,
    split: Annotated[str | None, Option(help="Part of the data, such as test; all by default.")] = None,
    as_json: Json = False,
) -> None:
    """Measure compressions: F1, ROUGE, BLEU, ratio and length, with people's and baselines that read no word (NDD).

    `ratio` is of all words together, `ratio_macro` the mean over sentences; `length` is the mean number of words.

    Our own format has a sentence a line: {"words": [...], "kept": [true, ...]} or {"text": "...", "compressed": "..."}.

    Examples: `undertone evaluate compression --data google_test1000.jsonl --data-format google`;
    `undertone evaluate compression --data test.jsonl --predictions mine.jsonl`
    """
    dataset = compressions.read_data_set(data, data_format, split)
    answers = compressions.read_predictions(predictions, dataset.rows) if predictions else None
    numbers = compressions.measure_predictions(dataset.rows, answers)
    console.show(numbers if as_json else compressions.summarize_measures(numbers), as_json)
    runs.report_dropped("read", dataset.dropped, str(data))


def rate(
    source: Source = "sample",
    rater: Raters = None,
    system: Annotated[list[str] | None, Option("--system", help="System, or gold; repeat it. All by default.")] = None,
    limit: Annotated[int, Option(min=1, help="Sentences at most, compressed by all these systems.")] = 100,
    out: Folder = None,
    lang: Annotated[Literal["zh", "en"], Option(help="Language of guidelines and sheets.")] = "zh",
    day: Day = "",
) -> None:
    """Give compressions to people, who grade syntax and meaning from 0 to 5 and do not see whose they are (table 13).

    Two people grade each sentence, with all its compressions. The day is that of the compressions.

    Examples: `undertone ndd rate --rater anna --rater ben --lang en`;
    `undertone ndd rate --source google --system ndd --system fast_ndd --system gold --limit 100 --rater anna
    --rater ben`
    """
    warehouse.create()
    folder = out or grades.get_project(source).folder
    projects.check_sheets(folder, rater or (), "sentence")  # before anything is given out
    retry(grades.select_tasks, source, day, system or (), limit, this_run())
    count = grades.export(source, day, folder, rater or (), lang, limit, system or ())
    console.report(f"{folder}: {format_quantity(count, 'compression')}")


def ratings(
    paths: Annotated[list[Path] | None, Argument(help="Filled sheets, or long tables.")] = None,
    source: Source = "sample",
    tool: Annotated[Literal["files", "simulated"], Option(help="Simulated raters are made up, to try it.")] = "files",
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Take people's grades of compressions into `studies`; prints each system's means and how far raters agree.

    Without files those in `labels` in the folder of the source are read.

    Examples: `undertone ndd ratings anna.xlsx ben.xlsx`; `undertone ndd ratings --source google anna.xlsx`;
    `undertone ndd ratings --tool simulated --json`
    """
    counts = retry(grades.collect, source, day, paths or (), tool, this_run())
    agreement, means = grades.load_agreement(source, day), grades.load_means(source, day)
    if "simulated" in means["by"]:
        console.report("these grades are simulated: they are no judgement of the systems")
    if as_json:
        console.print_result(means, {**counts, "agreement": agreement.to_dicts()}, as_json=True)
        return
    console.table(grades.summarize_grades(source, day))
    console.table(agreement.drop("by"))
    console.report(", ".join(f"{name} {number:,}" for name, number in counts.items()))
    console.report("…_paper: the paper's means, of 100 of Google's sentences and its own systems")
