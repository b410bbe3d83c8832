"""Commands about how abstract words are."""

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.models import changes_of, end_training
from pipeline.commands.recam import Changes, Scorer, Vectors
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Force, Json, Promote, check_promote, this_run
from pipeline.errors import BadInput
from pipeline.tasks.recam import abstractness
from pipeline.tasks.record.retry import retry


def train(
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder of the model; by default registry and tables.")
    ] = None,
    ratings: Annotated[
        Path | None, Option(help="Rated words, as MRC's csv; by default ours, which are by a language model.")
    ] = None,
    vectors: Vectors = None,
    splits: Annotated[int, Option(min=0, help="Measure it first on so many random splits of the list.")] = 0,
    profile: Annotated[str, Option(help="undertone or paper.")] = "undertone",
    changes: Changes = None,
    promote: Promote = False,
    force: Force = False,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Train the scorer of abstractness on rated words (ReCAM, section 3.2).

    Examples: `undertone train abstractness --ratings mrc.csv --splits 10 -o concreteness/`;
    `undertone train abstractness --ratings mrc.csv` (ten splits are measured, and a tenth is held out)
    """
    if out is None and (changes or splits or profile != abstractness.PROFILE):
        raise BadInput("--splits, --profile and --set need --out: a scorer of the tables has the default numbers")
    check_promote(out, promote)
    words = abstractness.read_ratings(ratings)
    if out is None:
        warehouse.create()
        with console.working("training"):
            fit = partial(abstractness.train, day, words, vectors, this_run(), promote=promote)
            model_id = retry(fit)
        console.report(f"model {model_id}: {words.rows.height:,} words, {words.signature}")
        end_training(model_id)
        return
    with console.working("training"):
        rows = abstractness.train_file(out, words, vectors, profile, changes_of(changes or []), splits, force=force)
    facts = {"model": str(out), "ratings": words.signature, "word_count": words.rows.height}
    if rows.height:
        console.print_result(abstractness.summarize(rows), {**facts, "splits": rows.to_dicts()}, as_json)
    elif as_json:
        console.print_result(rows, facts, as_json)
    else:
        console.report(f"{out}: {words.rows.height:,} words, {words.signature}")


def score(
    words: Annotated[list[str], Argument(help="Words.")],
    scorer: Scorer = None,
    vectors: Vectors = None,
    unknown: Annotated[
        str, Option(help="Words that the scorer does not know: keep them, give them an empty score, or drop them.")
    ] = "keep",
    as_json: Json = False,
) -> None:
    """Score words for concreteness, 0 highly abstract to 1 highly concrete; `reason` marks those that are unknown.

    Examples: `undertone score abstractness hope bridge --scorer concreteness/`;
    `undertone score abstractness hope bridge --scorer brysbaert.csv --unknown drop`
    """
    with console.working("scoring"):
        scores = abstractness.score_words(scorer, words, vectors, unknown)
    console.show(scores, as_json)
