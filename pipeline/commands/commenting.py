"""Commands about article commenting: corpus, commenters, the scorer, grades by people, quality-weighted metrics."""

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.collect import columns
from pipeline.commands.label import Raters, RatingTool, Tool
from pipeline.commands.models import changes_of, end_training, train_registered
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.examples.sources.files import read_table
from pipeline.metrics.resample import DRAWS, SEED
from pipeline.tasks.commenting import commenters, corpus, correlations, generated, grades, overlap
from pipeline.tasks.labelling import projects
from pipeline.tasks.record.retry import retry

Kind = Annotated[str, Argument(help="references (real comments) or candidates (generated comments).")]
System = Annotated[str, Option(help="ir_t, ir_tc, seq2seq, att or att_tc.")]
Preset = Annotated[str, Option(help="How grades become weights: s/5, (s-1)/4, s/max (of the article).")]


def build(
    source: Annotated[str | None, Option(help="Source of the articles; all by default.")] = None,
    min_words: Annotated[int | None, Option(min=0, help="Least words of an article; 30 by default.")] = None,
    min_comments: Annotated[int | None, Option(min=1, help="Least comments of an article; 20 by default.")] = None,
    test_comments: Annotated[int | None, Option(min=1, help="Long comments of a test article; default 30.")] = None,
    comment_words: Annotated[int | None, Option(min=1, help="Words of a long comment; 6 by default.")] = None,
    min_likes: Annotated[int | None, Option(min=0, help="Least upvotes of a test article; 201 by default.")] = None,
    references: Annotated[int | None, Option(min=1, help="References of a test article; 27 by default.")] = None,
    first_day: Annotated[str | None, Option("--from", help="First UTC day of an article's earliest comment.")] = None,
    last_day: Annotated[str | None, Option("--to", help="Last such day; the paper has 2017-08-31.")] = None,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Divide articles with comments into parts, draw references (section 3 of the paper) and print the counts.

    Examples: `undertone commenting build`;
    `undertone commenting build --test-comments 15 --min-likes 0 --references 12`
    """
    warehouse.create()
    numbers: dict[str, object] = {"least_words": min_words, "least_comments": min_comments, "likes": min_likes}
    numbers |= {"test_comments": test_comments, "comment_words": comment_words, "references": references}
    numbers |= {"first_day": first_day, "last_day": last_day}
    with console.working("tokenizing and dividing"):
        counts = retry(corpus.build, day, corpus.parse_rules(numbers), source, shared.this_run())
    console.report(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    stats(source, as_json)


def stats(
    source: Annotated[str | None, Option(help="Source of the articles; all by default.")] = None,
    as_json: shared.Json = False,
) -> None:
    """Show statistics of the corpus next to the paper's table 2. Example: `undertone commenting stats`"""
    statistics = corpus.measure_corpus(source)
    console.show(statistics if as_json else corpus.tabulate_statistics(statistics, source), as_json)
    if not as_json:
        console.report("numbers in brackets are the paper's")


def generate(
    system: Annotated[list[str] | None, Option(help="Commenter in force, or human; all by default.")] = None,
    pretrained: Annotated[Path | None, Option(help="Folder of a fitted encoder-decoder, instead of --system.")] = None,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Generate comments on the test articles, and add a real comment each, in `generated_comments`.

    Examples: `undertone commenting generate`; `undertone commenting generate --pretrained model/`
    """
    ref, counts = str(pretrained) if pretrained else None, []
    for name in [generated.PRETRAINED] if ref else system or generated.list_systems(day):
        with console.working(f"{name} is commenting"):
            count = retry(generated.generate, day, name, ref=ref, run_id=shared.this_run())
        counts.append({"system": name, "comments": count})
    console.show(pl.DataFrame(counts), as_json)


def rate(
    kind: Kind,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder; in UNDERTONE_LABELLING by default.")] = None,
    rater: Raters = None,
    lang: Annotated[Literal["zh", "en"], Option(help="Language of guidelines and sheets.")] = "zh",
    tool: RatingTool = "files",
    day: shared.Day = "",
) -> None:
    """Give each comment to two people, who grade it from 1 to 5 (appendix A.1 of the paper).

    Examples: `undertone commenting rate references --rater anna --rater ben --rater chen --rater dora --rater eve`;
    `undertone commenting rate candidates --tool label_studio`
    """
    if tool == "label_studio":
        assignment = retry(grades.assign_tasks, kind, day, "label_studio", projects.find_studio(), shared.this_run())
        console.report("comments given to Label Studio: {tasks:,}, {place}".format(**assignment))
        return
    retry(grades.select, kind, day, shared.this_run())
    folder = out or grades.get_project(kind).folder
    console.report(f"{folder}: {format_quantity(grades.export(kind, folder, rater or [], lang), 'comment')}")


def ratings(
    kind: Kind,
    paths: Annotated[list[Path] | None, Argument(help="Filled sheets, or long tables.")] = None,
    tool: Tool = "files",
    as_json: shared.Json = False,
) -> None:
    """Import people's grades into `comment_grades` and print their agreement.

    Examples: `undertone commenting ratings references anna.xlsx ben.xlsx`; `undertone commenting ratings candidates
    --tool simulated`
    """
    counts = retry(grades.collect, kind, paths or (), tool, projects.find_studio(), shared.this_run())
    if tool == "simulated":
        console.report("these grades are simulated: they are no judgement of the comments")
    summary = {**counts, **grades.summarize(kind)._asdict()}
    console.print_result(grades.measure_agreement(kind), summary, as_json)
    if not as_json:
        texts = {key: round(value, 3) if isinstance(value, float) else value for key, value in summary.items()}
        console.report(", ".join(f"{key} {value}" for key, value in texts.items() if value is not None))


def import_grades(
    path: Annotated[Path, Argument(help="thread_id, comment_id, grade[, source, rater_id]; a row a grade.")],
    project: Annotated[str, Option(help="Project for the grades, whose earlier grades they replace.")] = "imported",
) -> None:
    """Import grades from 1 to 5 that were collected elsewhere, such as a published data set.

    Example: `undertone commenting grades grades.csv`
    """
    warehouse.create()
    console.report(f"{retry(grades.import_grades, path, project, shared.this_run()):,} graded comments")


def measure(preset: Preset = "s/5", day: shared.Day = "", as_json: shared.Json = False) -> None:
    """Measure generated comments against the references, plain and weighted by their grades: the paper's table 7.

    Example: `undertone commenting measure`
    """
    with console.working("measuring"):
        retry(overlap.measure, day, preset, run_id=shared.this_run())
    scores = overlap.average_by_system()
    if not scores["is_weighted"].any():
        console.report(f"no article has a grade of each reference: nothing is weighted, and {preset} had no effect")
    table_7 = overlap.format_numbers(scores.select(overlap.format_name(), "system", "value"))
    table_7 = table_7.pivot("system", index="metric", values="value")
    console.show(scores if as_json else table_7, as_json)


def page(day: shared.Day = "") -> None:
    """Write the page about corpus, grades, metrics and commenters; print its path.

    Example: `undertone commenting page`
    """
    from pipeline.tasks.commenting import page

    echo(page.write(day))


def overlap_(
    candidates: Annotated[Path, Option(help="A candidate a line.")],
    references: Annotated[Path, Option(help="A JSON list of references a line.")],
    weights: Annotated[Path | None, Option(help="A JSON list of weights in [0, 1] a line; 1 by default.")] = None,
    metric: Annotated[
        list[str] | None,
        Option(help="bleu_1 … bleu_4, meteor, rouge_l, cider, cider_d, delta_bleu; the first seven by default."),
    ] = None,
    tokenize: Annotated[
        Literal["jieba", "chars", "none"], Option(help="How to split words: jieba, characters, or at blanks (none).")
    ] = "jieba",
    preset: Annotated[str | None, Option(help="How grades from 1 to 5 become weights: s/5, (s-1)/4 or s/max.")] = None,
    documents: Annotated[Path | None, Option(help="References that CIDEr counts in; by default these.")] = None,
    settings: Annotated[
        list[str] | None, Option("--set", help="METRIC.OPTION=VALUE, as bleu_4.smoothing=exp; repeat it.")
    ] = None,
    against: Annotated[Path | None, Option(help="Candidates of another system, to compare with.")] = None,
    groups: Annotated[Path | None, Option(help="A name a line, as of the article: these are drawn together.")] = None,
    draws: Annotated[int, Option(min=1, help="Bootstrap samples of the intervals.")] = 1000,
    seed: Annotated[int, Option(min=0, help="Seed of the bootstrap samples.")] = 42,
    confidence: Annotated[float, Option(min=0.01, max=0.99, help="Confidence level of the intervals.")] = 0.95,
    segments: Annotated[Path | None, Option(help="Also write a row a candidate, for `commenting correlate`.")] = None,
    grades: Annotated[Path | None, Option(help="People's grade of a candidate a line, for --segments.")] = None,
    as_json: shared.Json = False,
) -> None:
    """Measure the overlap of candidates with weighted references: W-BLEU, W-METEOR, W-ROUGE-L, W-CIDEr (section 4).

    Examples: `undertone commenting overlap --candidates c.txt --references r.jsonl --weights w.jsonl`;
    `undertone commenting overlap --candidates c.txt --references r.jsonl --metric bleu_4 --set bleu_4.smoothing=exp`;
    `undertone commenting overlap --candidates c.txt --references r.jsonl --grades g.txt --segments s.csv`
    """
    if (grades and not segments) or (preset and not weights):
        raise BadInput("--grades needs --segments, and --preset needs --weights")
    files.check_table(segments)
    inputs = overlap.Files(candidates, references, weights, preset, documents, groups, tokenize)
    names, options = metric or overlap.NAMES, nest_options(settings or [])
    sampling = {"draws": draws, "seed": seed, "confidence": confidence}
    scores = overlap.measure_files(inputs, names, options, against, **sampling)
    if segments:
        files.write_table(overlap.score_files(inputs, names, options, grades), segments)
    headline = dict(scores.select("metric", "difference" if against else "score").iter_rows())
    console.print_result(scores if as_json else overlap.format_numbers(scores.drop("signature")), headline, as_json)
    if not as_json:
        for signature in scores["signature"]:
            console.report(signature)
    if scores["signature"].str.contains("|documents:1@", literal=True).any():
        message = "CIDEr is 0: it weighs words by how few candidates' references have them, and there is one candidate;"
        console.report(f"{message} give more references to count in by --documents")


def nest_options(settings: list[str]) -> dict[str, dict[str, object]]:
    """Parse `METRIC.OPTION=VALUE` of each `--set`."""
    options: dict[str, dict[str, object]] = {}
    for name, value in changes_of(settings).items():
        metric, dot, option = name.partition(".")
        if not dot:
            raise BadInput(f"--set {name}: expected METRIC.OPTION=VALUE, such as bleu_4.smoothing=exp")
        options.setdefault(metric, {})[option] = value
    return options


def correlate(
    file: Annotated[Path | None, Argument(help="A table of grades and scores; else the tables'.")] = None,
    grade: Annotated[str, Option(help="Column of the grades.")] = "grade",
    group: Annotated[str | None, Option("--group", help="Column that names the article, for the intervals.")] = None,
    spearman_brown: Annotated[
        bool, Option("--spearman-brown", help="Correct the row `human` from half the graders to all, by 2r / (1 + r).")
    ] = False,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Correlate metrics with people's grades: Spearman and Pearson with intervals (tables 3 and 4 of the paper).

    The row `human` is the mean correlation of two random halves of each comment's graders, uncorrected as in the paper;
    its interval is over the divisions.

    Examples: `undertone commenting correlate`;
    `undertone commenting correlate scores.csv --grade human --group article_id`
    """
    if file and spearman_brown:
        raise BadInput("--spearman-brown is about the row `human` of the tables; a file has none")
    if file:
        table = correlations.correlate_table(file, grade, group)
    else:
        table = retry(correlations.write_correlations, day, shared.this_run())
        if not table.height:
            raise Missing(f"there are no correlations of {day}; nothing that was measured was graded")
        console.report(f"weights of references: {correlations.find_preset()}")
        if spearman_brown:
            table = correlations.correct_halves(table)
        formula = "corrected by Spearman-Brown" if spearman_brown else "without Spearman-Brown's correction"
        if correlations.HUMAN in table["metric"]:
            console.report(f"human: mean of {DRAWS:,} random divisions of the graders, seed {SEED}, {formula}")
    console.show(table if as_json else correlations.format_table_4(table), as_json)
    if not table["value"].count():
        console.report("no correlations: they need at least three rows, and scores and grades that vary")
    elif not table["low"].count():
        console.report(f"no intervals: they need at least {correlations.MIN_ARTICLES} articles")


def train(
    system: System = "att_tc",
    data: Annotated[Path | None, Option("--data", help="Articles with comments; else the corpus.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model, with --data.")] = None,
    mapping: Annotated[str | None, Option("--map", help="Our field=their column, of --data.")] = None,
    start: Annotated[
        str | None, Option("--from", help="Encoder-decoder to fit instead: folder or NAME@COMMIT; with --data.")
    ] = None,
    changes: shared.Changes = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.MaybeDay = "",
    as_json: shared.Json = False,
) -> None:
    """Train a commenter on the corpus, in force from that day on; or on a file into a folder.

    Examples: `undertone train commenter --system ir_tc`; `undertone train commenter --data archive.jsonl -o model/
    --system att --set hidden=128`; `undertone train commenter --data archive.jsonl -o model/ --from bart/`
    """
    numbers = changes_of(changes or [])
    shared.check_promote(out, promote)
    if data is None and (out or mapping or start):
        raise BadInput("--out, --map and --from are about a file; give it by --data")
    if data and (out is None or day):
        raise BadInput("--data needs --out, the folder of the model, and no --day")
    with console.working("training"):
        if data and out:
            examples, model = commenters.read_file(data, columns.parse(mapping)), str(out)
            if start:
                history = commenters.fit_pretrained(examples, out, start, numbers)
            else:
                history = commenters.train_file(system, examples, out, numbers, force=force)
        else:
            model, history = train_registered(commenters.train, day, system, changes=numbers, promote=promote)
            history = history.sort("epoch")
    names = ("epoch", "metric", "split", "value", "baseline", "baseline_name", "train_loss", "validation_loss")
    console.print_result(history.select(name for name in names if name in history.columns), {"model": model}, as_json)
    console.report(f"model {model}")
    if not data:
        end_training(model)


def comment(
    title: Annotated[str | None, Option(help="Title of an article.")] = None,
    content: Annotated[str, Option(help="Text of that article.")] = "",
    file: Annotated[Path | None, Option(help="A table with columns title and content, instead of --title.")] = None,
    model: Annotated[str | None, Option("--model", "-m", help="Folder or id; that in force by default.")] = None,
    system: System = "att_tc",
    method: Annotated[Literal["beam", "greedy", "sample"], Option(help="How a comment is written.")] = "beam",
    temperature: Annotated[float, Option(min=0.01, help="Temperature of --method sample.")] = 1.0,
    top_p: Annotated[float, Option(min=0.0, max=1.0, help="Share of the probability that is drawn from.")] = 1.0,
    count: Annotated[int, Option(min=1, help="Comments an article.")] = 1,
    seed: Annotated[int, Option(help="Seed of --method sample.")] = 42,
    out: shared.TableFile = None,
    as_json: shared.Json = False,
) -> None:
    """Comment on an article, or on those of a file.

    Examples: `undertone commenting comment --model model/ --title "新桥通车" --content "……"`;
    `undertone commenting comment --file a.csv -o c.csv --method sample --count 3`
    """
    from pipeline.models.decoding import Decoding

    if (title is None) == (file is None):
        raise BadInput("give either --title, with --content, or --file")
    if method != "sample" and count > (most := Decoding(method=method).width):
        raise BadInput(f"--count {count}: --method {method} gives at most {most}; give --method sample")
    files.check_table(out)
    articles = pl.DataFrame({"title": [title], "content": [content]})
    if file:
        articles = read_table([file], {"title": ("title",)}, {"content": ("content", "text")})
    decoding = Decoding(method=method, temperature=temperature, top_p=top_p, best=count, seed=seed)
    comments = generated.comment(articles, model, system=system, decoding=decoding)
    if out:
        files.write_table(comments, out)
    elif as_json or file:
        console.show(comments, as_json)
    else:
        for text in comments["comment"].drop_nulls():
            echo(text)
        if comments["comment"].null_count():
            console.report("no comment: no training article shares a word with this one")
