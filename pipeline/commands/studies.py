"""Commands for studies: ablation, sensitivity, data sets, detection, and their page; graded groups by prompting."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, echo

from pipeline import warehouse
from pipeline.commands.asking import CacheOnly, MaxCost, build_options, finish, stop_if_unanswered
from pipeline.commands.terminal import console, files, lazy
from pipeline.commands.terminal.options import Day, Json, Model
from pipeline.errors import BadInput, Missing, Refused, format_quantity
from pipeline.examples.impscore import groups as graded
from pipeline.io.atomic import write_text
from pipeline.io.lines import read_lines
from pipeline.llm.questions.graded import balance
from pipeline.progress import track
from pipeline.tasks import asking
from pipeline.tasks.record.retry import retry
from pipeline.tasks.studies import rows as studies

Epochs = Annotated[int | None, Option(min=1, help="30 unless given.")]


def ablation(
    day: Day = "",
    runs: Annotated[int, Option(min=1, help="Trainings of each design.")] = 3,
    epochs: Epochs = None,
    as_json: Json = False,
) -> None:
    """Train the twelve designs of table 2 on the table `pairs`. Example: `undertone study ablation`"""
    _train_grid("ablation", day, runs, epochs, as_json)


def sensitivity(
    day: Day = "",
    runs: Annotated[int, Option(min=1, help="Trainings of each setting.")] = 3,
    epochs: Epochs = None,
    as_json: Json = False,
) -> None:
    """Train 120 settings of the two margins and α (figure 4) on the table `pairs`.

    Example: `undertone study sensitivity --runs 1`
    """
    _train_grid("sensitivity", day, runs, epochs, as_json)


def _train_grid(study: str, day: str, run_count: int, epochs: int | None, as_json: bool) -> None:
    warehouse.create()
    cells = studies.list_cells(study, run_count)
    with track("training", len(cells)) as on_progress:
        staged = [studies.stage_cells(study, cells, day, epochs, on_progress)]
    retry(studies.publish, staged, day)
    means = warehouse.query(
        "select setting, metric, avg(value) as mean, stddev(value) as sd, count(*) as runs from studies "
        "where study = ? and day = cast(? as date) group by all order by metric, mean desc",
        [study, day],
    )
    console.show(means, as_json)


def data_sets(
    day: Day = "",
    source: Annotated[list[str] | None, Option(help="One source; repeat it. All by default.")] = None,
    model: Model = None,
    seed: Annotated[int, Option(min=0, help="Seed that draws the 2,000 pairs of a source.")] = 42,
    as_json: Json = False,
) -> None:
    """Implicitness of whole data sets, their implicit part apart, and how far their sentences lie from each other.

    Example: `undertone study data-sets`
    """
    warehouse.create()
    if not (names := list(dict.fromkeys(source or studies.list_sources()))):
        raise Missing("there are no sentences; `undertone pairs import SOURCE PATH`")
    with track("scoring") as on_progress:
        staged = [studies.stage_data_set(name, day, model, on_progress=on_progress, seed=seed) for name in names]
    retry(studies.publish, staged, day)
    console.show(studies.load_spreads(day), as_json)
    if not as_json:
        order = "ishate (Adversarial) is the most implicit of six data sets, and davidson very low"
        console.report(f"in the paper, {order}")


def detection(
    llm: Annotated[str, Option("--llm", help="Language model to ask whether each text is problematic.")],
    source: Annotated[list[str], Option(help="Source of the table `sentences`; repeat it.")],
    day: Day = "",
    model: Model = None,
    limit: Annotated[int | None, Option(min=1, help="Sentences of a source at most.")] = None,
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
    as_json: Json = False,
) -> None:
    """How often a language model sees a problematic text, in eight bins of implicitness (figure 7).

    Example: `undertone study detection --llm gpt-4o-mini --source toxigen --limit 500`
    """
    warehouse.create()
    options, summary = build_options(llm, max_cost, cache_only)
    with track("asking") as on_progress:
        options = options._replace(on_progress=on_progress)
        try:
            names = dict.fromkeys(source)
            staged = [retry(studies.stage_detection, name, day, options, model, limit) for name in names]
        except Refused:  # nothing is answered about a source
            finish(summary, as_json)
            raise
    retry(studies.publish, staged, day)
    accuracies = warehouse.query(
        "select setting, subset, max(value) filter (metric = 'percentile') as mean_percentile, "
        "max(value) filter (metric = 'accuracy') as accuracy, max(low) as low, max(high) as high, "
        "max(row_count) as row_count, max(effective_count) as effective_count, "
        "cast(max(value) filter (metric = 'other_answers') as bigint) as other_answers from studies "
        "where study = 'detection' and day = cast(? as date) group by setting, subset order by setting, subset",
        [day],
    )
    console.show(accuracies, as_json)
    finish(summary, as_json)


def page(day: Day = "", model: Model = None) -> None:
    """Write the page of a day's studies and print its path. Example: `undertone study page`"""
    with console.working("drawing"):
        echo(studies.write_report(day, model))


def ask_groups(
    intents: Annotated[Path, Argument(help="A text file, one intent a line.")],
    llm: Annotated[str, Option("--llm", help="Language model to ask.")],
    old_out: Annotated[Path | None, Argument(hidden=True)] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="The .jsonl file to write.")] = None,
    lang: Annotated[str, Option(help="en or zh.")] = "en",
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
) -> None:
    """Have a language model write a graded group for each intent, and check that the surface gives no level away.

    Example: `undertone groups ask intents.txt --out groups.jsonl --llm gpt-4o-mini`
    """
    if lang not in {"en", "zh"}:
        raise BadInput(f"--lang should be en or zh, not {lang!r}")
    out = lazy.take_renamed("--out", out, old_out)
    files.check_folder(out)
    texts = list(dict.fromkeys(line.strip() for _, line in read_lines(intents) if line.strip()))
    if not texts:
        raise BadInput(f"{intents}: the file holds no intent")
    warehouse.create()
    options, summary = build_options(llm, max_cost, cache_only)
    with track("asking", len(texts)) as on_progress:
        groups = asking.ask_groups(texts, lang, options._replace(on_progress=on_progress))
    stop_if_unanswered(summary)
    complete = groups.drop_nulls("sentences").select("intent", "sentences").iter_rows(named=True)
    lines = [json.dumps({"group": f"g{n}", **row}, ensure_ascii=False) + "\n" for n, row in enumerate(complete, 1)]
    if lines:
        write_text(out, "".join(lines))
    console.report(f"groups in {out}: {len(lines):,}" if lines else f"no group; {out} is left as it is")
    for reason, count in groups.drop_nulls("reason")["reason"].value_counts().iter_rows():
        console.report(f"no group of {format_quantity(count, 'intent')}: {reason}")
    if lines:
        _check(out)
    finish(summary)
    if not lines:
        raise Exit(1)


def check_groups(groups: Annotated[Path, Argument(help="Graded groups as .jsonl.")], as_json: Json = False) -> None:
    """Whether length, punctuation or words give the level away; exit code 1 if they do.

    Example: `undertone groups check groups.jsonl`
    """
    if not _check(groups, as_json):
        raise Exit(1)


def _check(path: Path, as_json: bool = False) -> bool:
    checks = balance(graded.read(path))
    console.show(checks, as_json)
    for check, value, limit, holds in checks.iter_rows():
        if not holds:
            console.report(f"not balanced: {check} is {value:.3f}, expected at most {limit:.3f}")
    return bool(checks["holds"].all())
