"""Measure what text means but does not say. Data goes to standard output, messages to standard error.

Exit codes: 0 success; 1 a check or a part of the work failed; 2 bad input or usage; 3 a source refused, or no request
was answered; 4 something is missing; 70 a bug in Undertone; 75 try again; 130 and 143 stopped; 141 output closed.
"""

import signal
import sys
from typing import Annotated

import typer

from pipeline import left_out, private, settings
from pipeline.commands.terminal import console, lazy
from pipeline.commands.terminal.lazy import Command, Family
from pipeline.errors import BadInput
from pipeline.explanations import is_undecodable

COMMANDS: dict[str, dict[str, Command | Family]] = {
    "Data": {
        "init": Command("Create the catalog and the tables. Safe to repeat.", "data:init"),
        "import": Command("Import comments from files. Importing a file again replaces its rows.", "data:import_"),
        "collect": Command("Collect a day: from the inbox, the sample, a path, or a site.", "data:collect"),
        "tokenize": Command("Tokenize a day's comments; only new texts are tokenized.", "data:tokenize"),
        "tables": Command("List the tables with their rows.", "data:tables"),
        "query": Command("Query the tables with SQL. A query changes nothing.", "operate.query:query"),
        "connect": Command("Print how an engine reads a table of this installation.", "operate.upkeep:connect"),
        "snapshot": Command("Write the tables as plain Parquet files, with a card that describes them.",
                            "operate.upkeep:snapshot"),
        "report": Command("Write a day's HTML report and print its path.", "data:report"),
        "browse": Command("Look at the scored comments in a browser, on this machine alone.", "browse:browse"),
        "project": Command("Place a day's comments on the map of `undertone browse`.", "measures:project"),
        "export": Family("The page of `browse` as files.", {"site": "browse:export_site"}),
    },
    "Measures": {
        "score": Family("Score comments and texts with a model.", {
            "implicitness": "measures:score_implicitness", "subtext": "subtext:score",
            "quality": "quality:score",
            "abstractness": "recam:score_words", "context-shift": "ndd:score_context_shift",
        }),
        "judge": Command("Judge how implicit texts are: by a language model, or by people.", "judge:judge"),
        "reference": Family("Corpora among whose scores a score has its percentile.", {
            "build": "measures:build_reference",
        }),
        "recover": Command("Write what comments mean, in plain words and in their context.", "subtext:recover"),
        "distil": Command("Train the scorer on judged texts, so that it scores others like the judge.",
                          "calibration:distil"),
        "calibrate": Command("Compare two measures: a scorer, a judge, people, columns of a file.",
                             "calibration:calibrate"),
        "validate": Command("Measure every scorer on every graded, paired and labelled set at hand.",
                            "calibration:validate"),
        "pairs": Family("Pairs of implicit and explicit sentences: build, check, measure their distance.", {
            "import": "pairs:import_", "replay": "pairs:replay", "ask": "pairs:ask", "build": "pairs:build",
            "distance": "measures:distance", "stats": "pairs:stats", "audit": "pairs:audit",
            "leakage": "pairs:leakage", "sample": "pairs:sample", "ratings": "pairs:ratings",
            "sources": "pairs:sources",
        }),
        "groups": Family("Graded groups, one intent written in several ways: rank, choose, compare raters.", {
            "ask": "studies:ask_groups", "check": "studies:check_groups", "rank": "groups:rank",
            "choose": "groups:choose", "agree": "groups:agree", "rate": "groups:rate",
            "ratings": "groups:ratings",
        }),
        "cloze": Family("Cloze questions on abstract words: build, check, rate.", {
            "build": "recam:build_items", "stats": "recam:stats", "export": "recam:export",
            "audit": "recam:audit", "page": "recam:page", "rate": "recam:rate",
            "ratings": "recam:import_ratings",
        }),
        "commenting": Family("Article commenting: corpus, commenters, grades, weighted metrics.", {
            "build": "commenting:build", "stats": "commenting:stats", "comment": "commenting:comment",
            "generate": "commenting:generate", "rate": "commenting:rate", "ratings": "commenting:ratings",
            "grades": "commenting:import_grades", "measure": "commenting:measure", "overlap": "commenting:overlap_",
            "correlate": "commenting:correlate", "page": "commenting:page",
        }),
        "ndd": Family("Neighbouring Distribution Divergence: distance of sentences, compression, tests.", {
            "distance": "ndd:ndd", "compress": "ndd:compress",
            "measure": "ndd_study:compress_data", "test": "ndd_study:measure_distance", "rate": "ndd_study:rate",
            "ratings": "ndd_study:ratings", "page": "ndd_study:page",
        }),
    },
    "Labels and models": {
        "label": Family("Labels of comments by raters, in two stages.", {
            "export": "label:export", "import": "label:import_", "status": "label:status",
            "adjudicate": "label:adjudicate", "collect": "label:collect", "agreement": "label:agreement",
            "release": "label:release", "withdraw": "label:withdraw", "page": "label:page",
            "guidelines": "label:guidelines",
        }),
        "llm": Family("The ledger of answers of language models.", {
            "status": "asking:status", "retry": "asking:retry", "clear": "asking:clear",
        }),
        "train": Family("Train models.", {
            "impscore": "models:train_impscore", "subtext": "subtext:train",
            "abstractness": "recam:train_scorer", "reader": "recam:train_reader",
            "masked-lm": "recam:train_masked_lm", "commenter": "commenting:train",
            "quality": "quality:train", "count-lm": "ndd:train_count_lm",
            "recovery": "subtext:train_recovery",
        }),
        "models": Family("The models of the tables: list, show, promote, roll back, import.", {
            "list": "models:list_", "show": "models:show_model", "promote": "models:promote",
            "rollback": "models:rollback", "import": "models:import_model",
        }),
        "evaluate": Family("Evaluate models on labelled data.", {
            "impscore": "models:evaluate_impscore", "subtext": "subtext:evaluate",
            "reader": "recam:evaluate_reader", "quality": "quality:evaluate",
            "compression": "ndd_study:evaluate", "recovery": "subtext:evaluate_recovery",
        }),
        "study": Family("Studies of a model and of data sets, as in ImpScore's sections 5.3 and 7.", {
            "ablation": "studies:ablation", "sensitivity": "studies:sensitivity", "data-sets": "studies:data_sets",
            "detection": "studies:detection", "page": "studies:page",
        }),
    },
    "Operate": {
        "demo": Command("Run the shipped sample through the whole pipeline on Airflow.", "operate.demo:demo"),
        "up": Command("Start Airflow on this machine, on loopback only.", "operate.demo:up"),
        "down": Command("Stop the Airflow that `up` or `demo` started.", "operate.upkeep:down"),
        "doctor": Command("Check what is installed, and print what to do about each missing part.",
                          "operate.doctor:doctor"),
        "selftest": Command("Compare scores of the shipped models with those that they should give.",
                            "measures:selftest"),
        "health": Command("Print the state of each step of the last days.",
                          "operate.upkeep:health"),
        "heal": Command("Find days that lack tokens or scores, and make them.", "operate.upkeep:heal"),
        "backfill": Command("Run days through collect, tokenize, score and report.", "operate.upkeep:backfill"),
        "upgrade": Command("Upgrade the home of an earlier version, and check it.", "operate.upkeep:upgrade"),
        "forget": Command("Erase everything that comes from some comments, and write a receipt.",
                          "operate.forget:forget"),
        "check": Command("Run the data checks of sql/checks, or look for damaged files.", "operate.upkeep:check"),
        "maintain": Command("Check the tables, compact small files, expire old snapshots.",
                            "operate.upkeep:maintain"),
        "recover-catalog": Command("Rebuild a lost or damaged catalog from the tables' metadata files.",
                                   "operate.upkeep:recover_catalog"),
    },
}  # fmt: skip

app = lazy.make_app(cls=lazy.group(COMMANDS), no_args_is_help=True, help=__doc__)


def main() -> None:
    """Run the command; whatever happens, end with a line for people and a documented exit code."""
    console.prepare_streams()
    left_out.clear()
    lazy.OUTPUTS.clear()
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(console.TERMINATED))
    hook, sys.unraisablehook = sys.unraisablehook, console.resend
    try:
        with private.set_umask() as mask:
            code = _run(mask)
    except BaseException as error:  # noqa: BLE001 - a panic of a library in Rust is no Exception
        code = console.report_failure(error, is_debug=settings.debug() or "--debug" in sys.argv)
    finally:
        signal.signal(signal.SIGTERM, handler)
        sys.unraisablehook = hook
    console.silence()
    raise SystemExit(code)


def _run(mask: int) -> int:
    """Return the exit code of the command; print what it left out, also after a check that does not hold."""
    for word in sys.argv[1:]:
        if is_undecodable(word):
            raise BadInput(f"{word!a}: this argument is not UTF-8; rename the file, or write the argument in UTF-8")
    try:
        app()
    except SystemExit as error:
        if console.is_closed(error) or not isinstance(error.code, int) or error.code > 1:
            raise
        console.print_left_out(as_json="--json" in sys.argv)
        sys.stdout.flush()
        return error.code
    finally:
        for output in lazy.OUTPUTS:
            output.share(mask)
    return 0


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from pipeline import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is written where.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log as JSON lines with fields.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of a bug.")] = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure what text means but does not say."""
    console.logging_to_stderr(verbose, log_json)


if __name__ == "__main__":
    main()
