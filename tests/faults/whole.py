"""The whole pipeline over the sample as calls of its tasks: what the DAGs call, in their order, with XComs as JSON."""

import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pipeline import sample, settings, warehouse
from pipeline.errors import Missing
from pipeline.llm.service.connection import Endpoint
from pipeline.tables import TABLES
from pipeline.tasks import asking
from pipeline.tasks.commenting import corpus as corpora
from pipeline.tasks.daily import collect as collecting
from pipeline.tasks.ndd import compressions, context_shift, distance
from pipeline.tasks.recam import options, readers
from pipeline.tasks.recam import targets as tokens

DAY, RUN = sample.DAY, "run"
MODEL = "small-model"
COMMENTERS = ("ir_t", "seq2seq")
SUBTASKS = ("imperceptibility", "nonspecificity")
Do = Callable[..., Any]
"""`do(task, *args, **given)`: the task is done, whatever it takes, and what it returned is given back."""


def files(folder: Path) -> None:
    """What the pipeline is given beside the sample: sentences to ask about, articles, rated words and word vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = (f"nice hat number {n} you have there,explicit_en\n" for n in range(40))
    (folder / "own.csv").write_text("text,prompt\n" + "".join(rows), encoding="utf-8")
    lines = sample.SUMMARIES.read_text(encoding="utf-8").splitlines(keepends=True)[:12]
    (folder / "news.jsonl").write_text("".join(lines), encoding="utf-8")
    words = sorted(set(re.findall("[a-z]+", "".join(lines).lower())))
    rated = (f"{word},{1 + 4 / len(word):.4f}\n" for word in words)
    (folder / "ratings.csv").write_text("word,conc.m\n" + "".join(rated), encoding="utf-8")
    dice = random.Random(0)
    vectors = (" ".join([word, *(f"{dice.gauss(0, 1):.4f}" for _ in range(8))]) for word in words)
    (folder / "vectors.txt").write_text("\n".join(vectors), encoding="utf-8")


def collect(do: Do, *, is_whole: bool) -> None:
    """DAGs collect and tokenize; one source, or all and the articles that are commented on."""
    sources = do("daily.collect.list_sources", "all", "sample")
    for source in sources if is_whole else sources[:1]:
        do("daily.collect.run", source, DAY, path="sample", run_id=RUN)
    if is_whole:
        columns = ",".join(f"{name}={column}" for name, column in sample.THREAD_COLUMNS.items())
        do("daily.collect.run", "sample_news", DAY, path=str(sample.THREADS), mapping=columns, run_id=RUN)
    pinned = do("daily.tokenize.pin_snapshots")
    shards = do("daily.tokenize.plan_shards", DAY, pinned, rows_per_shard=700)
    staged = [do("daily.tokenize.tokenize_shard", shard) for shard in shards]
    do("daily.tokenize.publish", staged, DAY, pinned, run_id=RUN)


def impscore(do: Do, folder: Path, url: str) -> None:
    """DAG impscore, with a language model that is asked."""
    do("impscore.pairs.import_sentences", "mine", str(folder / "own.csv"), DAY, RUN, is_own=True)
    do("impscore.pairs.replay_cassette", "sample", RUN)
    for source in do("asking.list_sources"):
        do("tests.faults.whole:ask", source, url)
    for source in do("impscore.pairs.list_sources"):
        do("impscore.pairs.build", source, DAY, run_id=RUN)
    do("impscore.train.train", DAY, profile="paper", changes={"epochs": 1}, run_id=RUN)


def score(do: Do) -> None:
    """DAG score."""
    pinned = do("daily.score.pin", DAY)
    shards = do("daily.score.plan_shards", DAY, pinned, 700)
    staged = [do("daily.score.score_shard", shard, pinned) for shard in shards]
    do("daily.score.publish", staged, DAY, pinned, RUN)


def csd(do: Do) -> None:
    """DAG csd, by simulated raters and approved."""
    do("tests.faults.whole:select", "csd")
    for step in ((1, 1), (1, 2), (2, 1), (2, 2)):
        do("labelling.csd.push", "csd", step, "files")
        do("tests.faults.whole:look", "csd", step)
    approved = do("labelling.release.render_card", "csd", DAY)
    do("labelling.release.release", "csd", day=DAY, run_id=RUN, approved=approved)


def commenting(do: Do) -> None:
    """DAG commenting, with simulated grades."""
    parts = do("commenting.corpus.plan", 30)
    do("tests.faults.whole:corpus", [do("commenting.corpus.stage_words", part) for part in parts])
    small: dict[str, Any] = {"hidden": 4, "embedding": 4, "epochs": 1}
    numbers = {"ir_t": {**small, "judged": 20, "foreign": 5}, "seq2seq": {**small, "vocabulary": 100}}
    for system in COMMENTERS:
        model_id = do("commenting.commenters.train", DAY, system, changes=numbers[system], run_id=RUN)
        do("commenting.generated.generate", DAY, system, ref=model_id, run_id=RUN)
    do("commenting.generated.generate", DAY, "human", run_id=RUN)
    for kind in ("references", "candidates"):
        do("commenting.grades.assign_tasks", kind, DAY, "simulated", run_id=RUN)
        do("commenting.grades.collect", kind, tool="simulated", run_id=RUN)
    do("commenting.overlap.measure", DAY, "s/5", run_id=RUN)
    do("commenting.correlations.write_correlations", DAY, RUN)
    do("commenting.page.write", DAY)


def has_wordnet() -> bool:
    """Whether cloze items can be made here, and pairs of similar texts."""
    from pipeline.text import wordnet

    try:
        wordnet.read_version()
    except Missing:
        return False
    return True


def ndd(do: Do) -> None:
    """DAG ndd, by counts."""
    do("ndd.masked_lm.count_all", DAY, None, RUN)
    systems = do("ndd.compressions.list_systems", ["fast_ndd", "fast_ndd_sc"], None)
    do("ndd.context_shift.score_day", DAY, None, RUN)
    do("tests.faults.whole:relate")
    do("tests.faults.whole:publish", [do("tests.faults.whole:compress", system) for system in systems])
    do("tests.faults.whole:measure")
    do("tests.faults.whole:thresholds")
    for study in ("similarity", "pruning", "predicates"):
        if study != "similarity" or has_wordnet():
            do("tests.faults.whole:test", study)
    do("ndd.page.write", DAY)


def recam(do: Do, folder: Path) -> None:
    """DAG recam on a few articles; needs WordNet."""
    do("daily.collect.run", "news", DAY, path=str(folder / "news.jsonl"), run_id=RUN)
    vectors = str(folder / "vectors.txt")
    params = {"similar": 0.9999, "in_context": False, "scorer": str(folder / "ratings.csv"), "vectors": vectors}
    rules = do("recam.targets.resolve_rules", DAY, params, None, RUN)
    staged = [do("tests.faults.whole:find", part, rules) for part in do("recam.targets.plan", 6, "news")]
    do("tests.faults.whole:targets", staged, rules)
    proposals = [do("tests.faults.whole:propose", job, vectors) for job in do("recam.options.list_jobs")]
    for subtask in SUBTASKS:
        do("tests.faults.whole:choose", subtask, proposals, rules)
    for subtask in SUBTASKS:
        model_id = do("tests.faults.whole:train", subtask, vectors)
        for other in SUBTASKS:
            do("recam.readers.evaluate_crossed", DAY, subtask, other, model_id, RUN)
    do("recam.page.write", DAY)


def studies(do: Do) -> None:
    """DAG studies: what the shipped model says of the data sets that pairs came from."""
    staged = [do("studies.rows.stage_data_set", source, DAY) for source in do("studies.rows.list_sources")]
    do("studies.rows.publish", staged, DAY, RUN)
    do("studies.rows.write_report", DAY)


def find(part: Any, rules: Any) -> Any:
    """The task `find` of recam."""
    return tokens.stage_targets(part, tokens.parse_rules(rules))


def targets(staged: Any, rules: Any) -> Any:
    """The task `targets` of recam."""
    return tokens.publish_targets(staged, DAY, tokens.parse_rules(rules), RUN)


_SMALL = {"hidden": 4, "longest": 20, "longest_gloss": 5, "epochs": 1, "vocabulary": 0}


def propose(job: Any, vectors: str) -> Any:
    """The task `propose` of recam."""
    return options.stage_proposals(job, tokens.parse_rules({"numbers": _SMALL, "vectors": vectors}))


def choose(subtask: str, proposals: Any, rules: Any) -> int:
    """The task `items` of recam."""
    return options.publish_items(subtask, proposals, DAY, tokens.parse_rules(rules), RUN)


def train(subtask: str, vectors: str) -> str:
    """The task `train` of recam."""
    return readers.train(DAY, subtask, changes=_SMALL, path=Path(vectors), run_id=RUN)


def report(do: Do, *, is_whole: bool) -> None:
    """DAGs report and heal; one check, or all, the page of the labels and DAG maintain."""
    checks = do("pipeline.warehouse:list_checks")
    for name in checks if is_whole else checks[:1]:
        do("daily.report.check", name, DAY)
    do("daily.report.write", DAY)
    if is_whole:
        do("labelling.release.write_page", "csd", DAY)
    do("operate.backfill.find_holes")
    for name in ("comments", "tokens", "scores", "labels") if is_whole else ():
        do("pipeline.warehouse:maintain", name)


def upkeep(do: Do, *, is_whole: bool) -> None:
    """DAGs forget and maintain, then a catalog that is lost and rebuilt."""
    comments = warehouse.scan("label_tasks").filter(project="csd").select("source", "comment_id").collect()
    source, comment = comments.sort("source", "comment_id").row(0)
    do("tests.faults.whole:forget", source, [comment])
    for name in TABLES if is_whole else ("comments",):
        do("pipeline.warehouse:maintain", name)
    do("tests.faults.whole:rebuild")


def ask(source: str, url: str) -> dict[str, object]:
    """The task `answers` of impscore."""
    return asking.ask(source, asking.Options(MODEL, endpoint=Endpoint(url, "key"), concurrency=4, run_id=RUN))


def select(project: str) -> int:
    """The task `select` of csd."""
    from pipeline.tasks.labelling import csd  # the server that forks must not: it starts threads of polars

    return csd.select(project, DAY, csd.Rules(limit=6), RUN)


def look(project: str, step: list[int]) -> dict[str, int]:
    """The sensor `collect` of csd, by simulated raters."""
    from pipeline.tasks.labelling import csd

    return csd.collect(project, (step[0], step[1]), "simulated", run_id=RUN)


def corpus(staged: Any) -> dict[str, int]:
    """The task `corpus` of commenting."""
    return corpora.publish(staged, DAY, corpora.parse_rules({}), RUN)


def relate() -> int:
    """The task `relate` of ndd."""
    return compressions.replace_study("context_shift", context_shift.correlate_day(DAY, None), DAY, RUN)


def compress(system: str) -> dict[str, Any]:
    """The task `compress` of ndd."""
    return dict(compressions.stage(system, compressions.Job(day=DAY)))


def publish(staged: Any) -> int:
    """The task `publish` of ndd."""
    from pipeline.tasks.ndd import grades

    count = compressions.publish(staged, "sample", DAY, RUN)
    grades.publish("sample", DAY, RUN)
    return count


def measure() -> int:
    """The task `measure` of ndd."""
    return compressions.publish_measures("sample", DAY, RUN)


def thresholds() -> int:
    """The task `thresholds` of ndd, on a few sentences of the sample."""
    rows = compressions.try_thresholds(compressions.load_items()[::10], compressions.Job(day=DAY))
    return compressions.publish_thresholds(rows, "sample", DAY, RUN)


def test(study: str) -> int:
    """The task `test` of ndd."""
    return compressions.replace_study(study, distance.run_study(study, DAY, None, None, None, 8), DAY, RUN)


def forget(source: str, comment_ids: list[str]) -> int:
    """The task `erase` of forget, while nothing else runs: files of killed attempts go at once, not after a day."""
    from pipeline.tasks.erasure import run
    from pipeline.tasks.erasure.request import Request

    request = Request(comment_ids=comment_ids, source=source)
    return run.forget(request, run_id=RUN, grace=timedelta(0)).receipts.height


def rebuild() -> Any:
    """A catalog whose file is lost, rebuilt from the tables' metadata files."""
    (settings.home() / "catalog.db").unlink(missing_ok=True)
    return warehouse.recover()


def import_file(path: str, *, waits: bool) -> int:
    """Import a file; if it waits, it shows when it has read it (`.read` beside it), and goes on when it may (`.go`)."""

    def wait(_: int) -> None:
        Path(path).with_suffix(".read").touch()
        while waits and not Path(path).with_suffix(".go").exists():
            time.sleep(0.01)

    return len(collecting.import_files([Path(path)], "notes", DAY, origin="notes", run_id=RUN, on_progress=wait))
