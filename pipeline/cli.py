"""The `undertone` command. Data goes to standard output, words for people to standard error.

Exit codes: 0 done; 1 a check does not hold, or something failed in part; 2 bad input or usage; 3 a source refused, or
nothing that was asked has an answer; 4 something is missing; 70 a bug of Undertone; 75 try again; 130 and 143 stopped;
141 the reader of the output went away.
"""

import signal
import sys
from typing import Annotated

import typer

from pipeline import left_out, private, settings
from pipeline.commands.terminal import console, failures, lazy
from pipeline.commands.terminal.lazy import Command, Family
from pipeline.errors import BadInput
from pipeline.explanations import is_undecodable

COMMANDS: dict[str, dict[str, Command | Family]] = {
    "Data": {
        "init": Command("Create the catalog and the tables. Safe to repeat.", "data:init"),
        "import": Command("Import comments from files. Importing a file again replaces what it brought.",
                          "data:import_"),
        "collect": Command("Collect a day: from the inbox, the sample, a path, or a site.", "data:collect"),
        "tokenize": Command("Cut a day's comments into words; only new texts are cut.", "data:tokenize"),
        "tables": Command("List the tables with their rows.", "data:tables"),
        "query": Command("Ask the tables. A query reads tables and views alone; it changes nothing.",
                         "operate.query:query"),
        "report": Command("Write a day's HTML report and print its path.", "data:report"),
    },
    "Score": {
        "score": Family("Score texts.", {
            "implicitness": "measures:score_implicitness", "day": "measures:score_day", "subtext": "subtext:score",
            "abstractness": "recam.abstractness:score", "quality": "quality:score",
            "context_shift": "ndd.distance:score_context_shift",
        }),
        "rank": Command("Rank graded groups by implicitness: Kendall's tau and Spearman's rho.", "measures:rank"),
        "choose": Command("Answer choice questions: the option of least pragmatic distance to the reference.",
                          "measures:choose"),
        "distance": Command("Pragmatic distance of the two sentences of each row: 0 means the same.",
                            "measures:distance"),
        "agree": Command("How far raters, the groups' own order and a model agree on the order of graded groups.",
                         "measures:agree"),
        "recover": Command("Say what comments mean: in plain words, and in their context (CSD's second task).",
                           "recovery:recover"),
    },
    "Label": {
        "label": Family("Labels of comments, in two stages.", {
            "export": "label:export", "import": "label:import_", "status": "label:status",
            "adjudicate": "label:adjudicate", "collect": "label:collect", "agreement": "label:agreement",
            "release": "label:release", "withdraw": "label:withdraw", "page": "label:page",
            "guidelines": "label:guidelines",
        }),
    },
    "Pairs and training": {
        "pairs": Family("Pairs of implicit and explicit sentences.", {
            "import": "pairs:import_", "play": "pairs:play", "ask": "pairs:ask", "build": "pairs:build",
            "stats": "pairs:stats", "audit": "pairs:audit", "leakage": "pairs:leakage", "sample": "pairs:sample",
            "rate": "pairs:rate",
        }),
        "groups": Family("Graded groups: one intent said in several ways.", {
            "ask": "studies:ask_groups", "check": "studies:check_groups",
        }),
        "study": Family("Studies of a model and of data sets, as in ImpScore's sections 5.3 and 7.", {
            "ablation": "studies:ablation", "sensitivity": "studies:sensitivity", "data-sets": "studies:data_sets",
            "detection": "studies:detection", "page": "studies:page",
        }),
    },
    "Cloze": {
        "cloze": Family("Cloze questions on abstract words.", {
            "build": "recam.cloze:build", "stats": "recam.cloze:stats", "export": "recam.cloze:export",
            "audit": "recam.cloze:audit", "page": "recam.cloze:page", "rate": "recam.cloze:rate",
            "ratings": "recam.cloze:ratings",
        }),
    },
    "Commenting": {
        "commenting": Family("Article commenting.", {
            "build": "commenting:build", "stats": "commenting:stats", "generate": "commenting:generate",
            "rate": "commenting:rate", "ratings": "commenting:ratings", "grades": "commenting:grades",
            "measure": "commenting:measure", "page": "commenting:page",
        }),
        "comment": Command("Comment on an article, or on those of a file.", "commenting:comment"),
        "metric": Family("Measure texts against references.", {"overlap": "commenting:overlap_"}),
        "correlate": Command("How far metrics go with people's grades: Spearman and Pearson with intervals.",
                             "commenting:correlate"),
    },
    "Distance": {
        "ndd": Command("Semantic distance of two sentences that share words: Neighbouring Distribution Divergence.",
                       "ndd.distance:ndd"),
        "compress": Command("Drop the words whose loss changes least what is expected of the others.",
                            "ndd.distance:compress"),
        "ndd-study": Family("What NDD is worth: compressions of data sets, tests, a page.", {
            "compress": "ndd.study:compress_data", "test": "ndd.study:measure_distance",
            "page": "ndd.study:page", "rate": "ndd.grades:rate", "ratings": "ndd.grades:ratings",
        }),
    },
    "Models": {
        "train": Family("Train models.", {
            "impscore": "models:train_impscore", "subtext": "subtext:train",
            "abstractness": "recam.abstractness:train", "reader": "recam.readers:train",
            "masked_lm": "recam.readers:train_masked_lm", "commenter": "commenting:train",
            "quality": "quality:train", "count_lm": "ndd.distance:train_count_lm",
            "recovery": "recovery:train",
        }),
        "evaluate": Family("Measure models.", {
            "impscore": "models:evaluate_impscore", "subtext": "subtext:evaluate", "reader": "recam.readers:evaluate",
            "quality": "quality:evaluate", "compression": "ndd.compression:evaluate",
            "recovery": "recovery:evaluate",
        }),
        "llm": Family("The ledger of answers of language models.", {
            "status": "asking:status", "retry": "asking:retry", "clear": "asking:clear",
        }),
    },
    "Operate": {
        "demo": Command("Run the shipped sample through the whole pipeline on Airflow and show what comes out.",
                        "operate.running:demo"),
        "up": Command("Start Airflow on this machine, on loopback only.", "operate.running:up"),
        "down": Command("Stop the Airflow that `up` or `demo` started; no process of it stays.",
                        "operate.running:down"),
        "doctor": Command("Say what is installed and found, and what to do about each thing that is not.",
                          "operate.running:doctor"),
        "health": Command("Say how each step of the last days went: ok, late, unusual or missing.",
                          "operate.running:health"),
        "heal": Command("Find days that lack tokens or scores, because a DAG was paused or failed, and make them.",
                        "operate.running:heal"),
        "backfill": Command("Take days from the inbox through collect, tokenize, score and report.",
                            "operate.backfill:backfill"),
        "forget": Command("Erase everything that comes from some comments, models included, and write a receipt.",
                          "operate.forget:forget"),
        "check": Command("Run the data checks of sql/checks; with --deep look for damaged files.",
                         "operate.upkeep:check"),
        "maintain": Command("Check the tables, compact small files, expire replaced snapshots.",
                            "operate.upkeep:maintain"),
        "recover-catalog": Command("Make a lost or damaged catalog again from the tables' metadata files.",
                                   "operate.upkeep:recover_catalog"),
    },
}  # fmt: skip

app = typer.Typer(
    cls=lazy.group(COMMANDS), no_args_is_help=True, rich_markup_mode=lazy.MARKUP, pretty_exceptions_enable=False,
    help=__doc__,
)  # fmt: skip


def main() -> None:
    """Run the command. Whatever happens, it ends with a line for people and a documented exit code."""
    console.prepare_streams()
    left_out.clear()
    lazy.OUTPUTS.clear()
    handler = signal.signal(signal.SIGTERM, _terminate)
    try:
        with private.private_umask() as mask:
            code = _run(mask)
    except BaseException as error:  # noqa: BLE001 - a panic of a library in Rust is no Exception
        code = console.report_failure(error, is_debug=settings.debug() or "--debug" in sys.argv)
    finally:
        signal.signal(signal.SIGTERM, handler)
    failures.silence()
    raise SystemExit(code)


def _run(mask: int) -> int:
    """The exit code of the command; what it left out is printed, also after a check that does not hold."""
    if odd := [word for word in sys.argv[1:] if is_undecodable(word)]:
        raise BadInput(f"{odd[0]!a}: this argument is not UTF-8; rename the file, or write the argument in UTF-8")
    try:
        app()
    except SystemExit as ended:
        if failures.is_closed(ended) or not isinstance(ended.code, int) or ended.code > 1:
            raise
        console.say_left_out(as_json="--json" in sys.argv)
        sys.stdout.flush()
        return ended.code
    finally:
        for output in lazy.OUTPUTS:
            output.share(mask)
    return 0


def _terminate(*_: object) -> None:
    raise SystemExit(failures.TERMINATED)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from pipeline import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what is written where.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="The same as JSON lines with fields.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of a bug.")] = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Measure what text means but does not say."""
    console.logging_to_stderr(verbose, log_json)


if __name__ == "__main__":
    main()
