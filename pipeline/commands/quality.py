"""Commands about the scorer of comments: train, evaluate, score."""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.models import changes_of, end_training, train_registered
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, format_quantity
from pipeline.tasks.commenting import scorer
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.retry import retry

Scores = Annotated[Literal["quality", "upvotes"], Option("--target", help="Grades by people, or upvotes.")]


def train(
    target: Scores = "quality",
    data: Annotated[
        Path | None, Option("--data", help="text, grade or upvotes[, article_id, title, content, split].")
    ] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model, with --data.")] = None,
    profile: Annotated[str | None, Option(help="undertone, or upvotes for upvotes.")] = None,
    changes: shared.Changes = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Train a scorer of comments on grades by people, or on upvotes; print its evaluation and the best baselines.

    Examples: `undertone train quality`; `undertone train quality --data graded.csv -o scorer/`;
    `undertone train quality --target upvotes --data liked.jsonl -o scorer/`
    """
    recipe: dict[str, Any] = {"profile": profile, "changes": changes_of(changes or [])}
    shared.check_promote(out, promote)
    if (data is None) != (out is None):
        raise BadInput("--data, a file of comments, and --out, the folder of the model, go together")
    with console.working("training"):
        if data and out:
            rows, model = scorer.read(data, target), str(out)
            _, evaluations = model_registry.train_into(out, lambda: scorer.fit(rows, target, **recipe), force=force)
        else:
            model, evaluations = train_registered(scorer.train, day, target, promote=promote, **recipe)
    console.print_result(scorer.summarize(evaluations), {"model": model}, as_json)
    if not evaluations.height:
        console.report("not measured: there are too few articles for a test part")
    console.report(f"model {model}")
    if not data:
        end_training(model)


def evaluate(
    data: Annotated[Path, Option("--data", help="text, grade or upvotes[, article_id, title, content].")],
    target: Scores = "quality",
    model: Annotated[str | None, Option("--model", "-m", help="Folder of a scorer, or its id.")] = None,
    as_json: shared.Json = False,
) -> None:
    """Measure a scorer on comments that it did not learn from.

    Example: `undertone evaluate quality --data test.csv --model scorer/`
    """
    evaluations = scorer.evaluate(scorer.read(data, target), target, model)
    console.print_result(scorer.summarize(evaluations), {"numbers": evaluations.to_dicts()}, as_json)
    if not evaluations.height:
        console.report("not measured: no comment is in the test part")


def score(
    file: Annotated[Path | None, Argument(help="text[, title, content]; a day's comments by default.")] = None,
    text_column: Annotated[str | None, Option("--text-column", "-c", help="Column with the comments.")] = None,
    target: Scores = "quality",
    day: shared.MaybeDay = "",
    model: Annotated[str | None, Option("--model", "-m", help="Folder of a scorer, or its id.")] = None,
    out: shared.TableFile = None,
    encoding: shared.Encoding = "utf-8-sig",
    skip_bad_rows: shared.SkipBadRows = False,
    as_json: shared.Json = False,
) -> None:
    """Score comments for quality (1 to 5, as people would grade them) or upvotes: of a file, or of a day into `scores`.

    Adds the columns `quality` or `upvotes` and `signature` to a file. Predicted upvotes are log(1 + upvotes). To rank a
    corpus, sort by the score.

    Examples: `undertone score quality comments.csv --model scorer/ -o scored.csv`;
    `undertone score quality --day 2026-11-19`
    """
    shared.check_source(file, day)
    if file is None:
        warehouse.create()
        count = retry(scorer.score_day, day or shared.today(), target, model, shared.this_run())
        console.report(f"{format_quantity(count, 'comment')} scored")
        return
    frames = files.texts(file, text_column, encoding, skip_bad_rows=skip_bad_rows)
    score_frames = (scorer.score_frame(frame, target, model, column) for frame, column in frames)
    files.write_frames(files.count_unscored(score_frames, target, "score"), out, as_json=as_json)
