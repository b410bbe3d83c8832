"""Commands about pairs: import data sets, ask for missing explicit forms, build, audit, and have pairs judged."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Exit, Option

from pipeline import warehouse
from pipeline.commands.asking import CacheOnly, MaxCost, build_options, finish, parse_params, show_estimate
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Json, MaybeDay, check_name
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.examples import splits
from pipeline.examples.impscore import groups as graded
from pipeline.examples.impscore import pairs as pair_rows
from pipeline.examples.impscore import quality
from pipeline.examples.sources import SOURCES
from pipeline.metrics.impscore import artefacts
from pipeline.progress import track
from pipeline.tasks import asking
from pipeline.tasks.impscore import pairs as work
from pipeline.tasks.record.retry import retry

Pairs = Annotated[Path | None, Option("--pairs", help="A file with columns implicit, explicit; the table by default.")]
Sources = Annotated[list[str] | None, Option("--source", help="One source; repeat it. All by default.")]


def load_pairs(path: Path | None, split: str = "paper") -> pl.DataFrame:
    """Load the pairs of a file, or of the table."""
    if path:
        return pair_rows.read(path, split)
    if not (rows := work.load_all_pairs()).height:
        raise Missing("the table pairs is empty; `undertone pairs build`, or give a file with --pairs")
    return rows


def import_(
    source: Annotated[str, Argument(help="A data set of ImpScore's table 6, davidson, or a name for your own.")],
    path: Annotated[Path, Argument(help="The published file or folder.")],
    day: Day = "",
    is_own: Annotated[bool, Option("--own", help="Your own file: a column text, perhaps label and explicit.")] = False,
) -> None:
    """Read sentences of a data set into the table `sentences`.

    Examples: `undertone pairs import latent_hatred implicit-hate-corpus/`;
    `undertone pairs import forum sentences.csv --own`
    """
    warehouse.create()
    count = retry(work.import_sentences, source, str(path), day, is_own=is_own)
    rows = warehouse.scan("sentences", pl.col("source") == source)
    implicit = int(rows.select((pl.col("label") == "implicit").sum()).collect().item())
    paper = ""
    if not is_own and source in SOURCES:  # davidson has no implicit ones
        paper = f", {implicit:,} of them implicit; expected {SOURCES[source].table6:,} (the paper's table 6)"
    console.report(f"{source}: {format_quantity(count, 'sentence')}{paper}")


def replay(
    cassette: Annotated[Path | None, Argument(help="A .jsonl cassette of answers; the sample's by default.")] = None,
    day: MaybeDay = "",
) -> None:
    """Add answers of language models kept in a file to the table `completions`. Example: `undertone pairs replay`"""
    warehouse.create()
    if day:
        console.report("--day has no effect: answers have no day")
    sources = retry(work.replay_cassette, str(cassette) if cassette else None)
    console.report(f"answers about {', '.join(sources)}")


def ask(
    llm: Annotated[str, Option("--llm", help="Language model to ask.", callback=check_name)],
    source: Sources = None,
    revision: Annotated[str | None, Option(help="Revision of the model, where its server names one.")] = None,
    params: Annotated[str, Option(help="Sampling parameters as JSON.")] = "{}",
    limit: Annotated[int | None, Option(min=1, help="Sentences of a source at most.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print what asking would cost, and send nothing.")] = False,
    cache_only: CacheOnly = False,
    max_cost: MaxCost = None,
    concurrency: Annotated[int, Option(min=1, help="Requests in flight at most.")] = 16,
    batch: Annotated[bool, Option("--batch", help="Hand over to the provider's batch API, or collect.")] = False,
    prompts: Annotated[Path | None, Option(help="Folder with the wording for a source, as toxigen.md.")] = None,
    as_json: Json = False,
) -> None:
    """Ask a language model for the explicit forms that data sets lack. An answer is paid for once.

    Any server of OpenAI's shape: UNDERTONE_LLM_URL is its address, UNDERTONE_LLM_KEY its key.

    Examples: `undertone pairs ask --llm gpt-4o-mini --source toxigen --dry-run`;
    `undertone pairs ask --llm gpt-4o --source snarks --prompts paper/ --max-cost 5`
    """
    options, summary = build_options(llm, max_cost, cache_only)
    options = options._replace(revision=revision, params=parse_params(params), concurrency=concurrency, prompts=prompts)
    sources = asking.list_sources(source or (), prompts)
    if dry_run:
        show_estimate(pl.DataFrame([asking.estimate(sources, options, limit, batch=batch)._asdict()]), llm, as_json)
        return
    if batch:
        batches = asking.run_batch(sources, options, limit)
        console.show(batches, as_json)
        if unanswered := int(batches["open"].sum()):
            count = format_quantity(unanswered, "request")
            console.report(f"no answer to {count} of batches that have ended; later runs send them again")
            raise Exit(1 if batches["answered"].sum() else 3)
        return
    rows = []
    with track("asking") as on_progress:
        for name in sources:
            rows.append(asking.ask(name, options._replace(on_progress=on_progress), limit))
            if summary.error:
                break
    console.show(pl.DataFrame(rows), as_json)
    finish(summary, as_json)


def build(
    source: Sources = None,
    split: Annotated[str, Option(help="paper (8:1:1), official (90:5:5) or grouped (by near duplicates).")] = "paper",
    seed: Annotated[int | None, Option(min=0, help="42, as in the released code, unless given.")] = None,
    day: Day = "",
    out: Annotated[Path | None, Option("--out", "-o", help="Also write them: csv, tsv, jsonl, parquet.")] = None,
) -> None:
    """Build pairs and their negatives from `sentences` and `completions`; exit code 1 if there are none.

    Examples: `undertone pairs build`; `undertone pairs build --source latent_hatred --split grouped -o pairs.parquet`
    """
    splits.get_shares(split)
    warehouse.create()
    sources = work.list_sources()
    if unknown := sorted(set(source or ()) - set(sources)):
        raise BadInput(f"nothing to build of {', '.join(unknown)}; there is {', '.join(sources) or 'no source'}")
    if not sources:
        raise Missing("no sentences or completions yet; `undertone pairs import` or `undertone pairs replay`")
    files.check_table(out)
    counts = [(name, retry(work.build, name, day, split, seed)) for name in source or sources]
    for name, count in counts:
        console.report(f"{name}: {format_quantity(count, 'pair')}")
    if not any(count for _, count in counts):
        console.report(
            "no pairs: a pair needs an implicit sentence with an explicit form, from the data set or by `undertone "
            "pairs ask`, and a source at least two different explicit forms"
        )
        raise Exit(1)
    if out:
        files.write_table(work.load_pairs(source or sources), out)


def stats(pairs: Pairs = None, as_json: Json = False) -> None:
    """Table 1: pairs, mean lengths with deviation, and how often the implicit sentence is the longer one.

    Example: `undertone pairs stats`
    """
    console.show(pair_rows.compute_statistics(load_pairs(pairs)), as_json)


def sources(as_json: Json = False) -> None:
    """The data sets of ImpScore's table 6: who writes explicit forms, and prompts and pairs, expected and found.

    Example: `undertone pairs sources`
    """
    console.show(work.compare_with_table_6(), as_json)
    if not as_json:
        console.report("r3 is read by its labels: table 6 lists it as original, but speaks of prompting")
        console.report("ludwig has labels too; a model is asked only with `undertone pairs ask --source ludwig`")


def audit(
    pairs: Pairs = None,
    groups: Annotated[Path | None, Option(help="Audit graded groups instead.")] = None,
    figure: Annotated[Path | None, Option(help="Also draw it, as .svg.")] = None,
    as_json: Json = False,
) -> None:
    """What length, punctuation, words or source alone would reach, by source: what a model must beat.

    Examples: `undertone pairs audit`; `undertone pairs audit --pairs mine.csv --figure audit.svg`
    """
    from pipeline.report.impscore import figures

    if groups and (pairs or figure):
        raise BadInput("--groups goes without --pairs and --figure")
    if groups:
        console.show(artefacts.audit_groups(graded.read(groups)), as_json)
        return
    files.check_folder(figure)
    accuracies = artefacts.audit(load_pairs(pairs))
    if not accuracies.height:
        raise BadInput("too few pairs to audit: the baselines need some to learn from and others to be measured on")
    if figure:
        figure.write_text(figures.draw_audit(accuracies), encoding="utf-8")
    console.show(accuracies, as_json)


def leakage(pairs: Pairs = None, as_json: Json = False) -> None:
    """What of the held-out parts also stands in the training part.

    Example: `undertone pairs leakage --pairs pairs.parquet`
    """
    console.show(splits.measure_leakage(load_pairs(pairs)), as_json)


def sample(
    out: Annotated[Path, Argument(help="File to write: csv, tsv, jsonl, parquet.")],
    key: Annotated[Path, Argument(help="File for what the judge should not see.")],
    pairs: Pairs = None,
    seed: Annotated[int, Option(min=0)] = 42,
) -> None:
    """Write 20 pairs a source for a reader to judge, half of them negative, shuffled (ImpScore, appendix A.2).

    The judge fills the columns `same_meaning` and `first_more_implicit` with 1 or 0, without the key.

    Example: `undertone pairs sample judge.csv key.csv`
    """
    if out.resolve() == key.resolve():
        raise BadInput(f"{key}: the key should be another file than the one for the judge")
    rows = quality.sample(load_pairs(pairs), seed=seed)
    files.check_table(key)
    answers = {"same_meaning": pl.lit(""), "first_more_implicit": pl.lit("")}
    files.write_table(rows.select("item", "first", "second", **answers), out)
    files.write_table(rows.select("item", "source", "kind"), key)


def ratings(
    judged: Annotated[Path, Argument(help="The judge's file of `pairs sample`, filled.")],
    key: Annotated[Path, Argument(help="Key of the sample, as written by `pairs sample`.")],
    as_json: Json = False,
) -> None:
    """Rate each source from 1 to 5 by the share of appropriate pairs, next to the ratings of the paper's table 7.

    Example: `undertone pairs ratings judge.csv key.csv`
    """
    console.show(quality.rate_sources(quality.read_judgements(judged, key)), as_json)
