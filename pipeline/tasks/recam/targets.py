"""Target words as tasks: articles with summaries to the words that a question may leave out (ReCAM, section 3)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.recam import building, targets
from pipeline.slices import Staged
from pipeline.tables import TABLES, empty
from pipeline.tasks.recam import abstractness
from pipeline.tasks.record import day_texts, model_registry, runs
from pipeline.text import concreteness, senses, tagging, wordnet

if TYPE_CHECKING:
    from pipeline.examples.recam.targets import Filter, States, Vectors
    from pipeline.text.tagging import Tagger

ORIGIN = "cloze"
STEP = "cloze_targets"
ROWS_PER_SHARD = 500  # articles; loading encoder and WordNet takes a shard ten seconds
LANG = "en"  # WordNet's


class Rules(NamedTuple):
    """Which words are targets; the defaults are the paper's numbers (sections 3.2 to 3.4)."""

    scorer: str | None = None  # folder or id of a scorer, or a file of ratings; None: that in force, else one of ours
    vectors: str | None = None  # word vectors in GloVe's format; None: the encoder's
    conllu: str | None = None  # a treebank to learn tagging from, where stanza has no models
    concrete_from: float = concreteness.THRESHOLD
    specific_from: int = wordnet.NONSPECIFIC
    similar: float = targets.SIMILAR
    in_context: bool = True  # the filter by an encoder's states
    layer: int = -1
    pooling: Literal["mean", "first"] = "mean"


RULES = Rules()


class Part(TypedDict):
    """One mapped task's share of a source's articles, as of one state of the table."""

    source: str
    part: int
    parts: int
    snapshot: int | None


def check_subtask(subtask: str) -> str:
    """The name of a subtask, checked."""
    if subtask not in building.SUBTASKS:
        raise BadInput(f"no subtask {subtask!r}; there are {' and '.join(building.SUBTASKS)}")
    return subtask


def parse_rules(given: Mapping[str, Any]) -> Rules:
    """Rules of a form or a command."""
    return Rules(**{name: value for name, value in given.items() if name in Rules._fields and value is not None})


def resolve_rules(
    day: str, given: Mapping[str, Any], ratings: str | None = None, run_id: str = "cli"
) -> dict[str, Any]:
    """Rules of a run with the scorer said by its id, so that all its tasks take the same; trained if need be.

    Args:
        day: of the run.
        given: what a form says of the rules.
        ratings: rated words to train a scorer by; without, that in force, else one of the ratings shipped.
        run_id: of Airflow.
    """
    by = parse_rules(given)
    if ratings or not (by.scorer or model_registry.select_model_id(abstractness.KIND, None)):
        rated = abstractness.read_ratings(Path(ratings).expanduser() if ratings else None)
        by = by._replace(scorer=abstractness.train(day, rated, parse_path(by.vectors), run_id))
    return by._replace(scorer=by.scorer or model_registry.select_model_id(abstractness.KIND, None))._asdict()


def parse_path(text: str | None) -> Path | None:
    """A path that a form or a row may leave out."""
    return Path(text).expanduser() if text else None


def scan_articles(source: str | None = None, snapshot: int | None = None) -> pl.LazyFrame:
    """English articles with a summary, each once: source, thread_id, text, summary."""
    rows = _scan_summarised(source, snapshot)
    return rows.filter(_explain_unfit().is_null()).select("source", "thread_id", "text", "summary")


def list_unfit_articles(source: str, snapshot: int | None = None) -> pl.DataFrame:
    """Articles of a source that have a summary and cannot be used: reason, row_key (the thread_id)."""
    rows = _scan_summarised(source, snapshot).select(reason=_explain_unfit(), row_key="thread_id")
    return rows.drop_nulls("reason").sort("row_key").collect()


def _scan_summarised(source: str | None, snapshot: int | None) -> pl.LazyFrame:
    where = pl.col("summary").is_not_null()
    return day_texts.scan_articles(where if source is None else where & (pl.col("source") == source), snapshot)


def _explain_unfit() -> pl.Expr:
    """Why an article is of no use; `@placeholder` needs no reason, as importing takes it for a mention."""
    told = (("no_text", pl.col("text") == ""), ("not_english", pl.col("lang") != LANG))
    return pl.coalesce(pl.when(holds).then(pl.lit(reason)) for reason, holds in told)


def plan(rows_per_shard: int = ROWS_PER_SHARD, only: str | None = None) -> list[Part]:
    """Shares of the articles of all sources, or of one.

    Raises:
        Missing: there are none.
    """
    snapshot = warehouse.snapshot("articles")
    counts = scan_articles(only).group_by("source").len().sort("source").collect()
    if not counts.height:
        of = f" of {only}" if only else ""
        raise Missing(f"no English article{of} has a summary; bring some: `undertone import summaries.jsonl --map "
                      "thread_id=id,article_text=document,summary=summary`")  # fmt: skip
    return [
        Part(source=source, part=part, parts=-(-count // rows_per_shard), snapshot=snapshot)
        for source, count in counts.iter_rows()
        for part in range(-(-count // rows_per_shard))
    ]


def _read_part(part: Part) -> pl.DataFrame:
    number = pl.col("thread_id").hash(seed=0) % part["parts"]
    return scan_articles(part["source"], part["snapshot"]).filter(number == part["part"]).collect().sort("thread_id")


def stage_targets(part: Part, rules: Rules = RULES) -> Staged:
    """The tokens of a share's summaries, each with its reason, into scratch."""
    began = runs.start()
    told = pl.concat(find_targets(_read_part(part), rules)).with_columns(source=pl.lit(part["source"]))
    staged = warehouse.stage("cloze_targets", told.select(TABLES["cloze_targets"].schema.column_names()))
    return runs.time_shard(began, staged)


def find_targets(rows: pl.DataFrame, rules: Rules = RULES) -> Iterator[pl.DataFrame]:
    """The same of any articles: thread_id, text, summary; see `building.found`."""
    analyse = load_tagger(rules.conllu).analyse
    if listed := _read_rated_words(rules):
        imperceptible = targets.imperceptible(listed, rules.concrete_from, by_lemma=True)
    else:
        tokens = (token for summary in rows["summary"] for sentence in analyse(summary) for token in sentence)
        words = sorted({token.text.lower() for token in tokens})
        imperceptible = targets.imperceptible(_score_concreteness(words, rules), rules.concrete_from)
    nonspecific = targets.nonspecific(partial(senses.disambiguate, _load_senses()), rules.specific_from)
    told = {"imperceptibility": imperceptible, "nonspecificity": nonspecific}
    return building.found(rows, analyse, told, _list_filters(rules))


def _read_rated_words(by: Rules) -> dict[str, float] | None:
    """Scores of a list of ratings that is taken as it is, if one is given.

    The official items were made so: all gold words of the dev file that Brysbaert's list has are under 2.4 of 5 there.
    """
    path = parse_path(by.scorer)
    if path is None or not path.is_file():
        return None
    return dict(concreteness.read(path).rows.select("word", "score").iter_rows())


def load_tagger(conllu: str | None = None) -> "Tagger":
    """What cuts and tags: stanza if its models are among the resources, else learnt from a treebank, else by counts."""
    return tagging.load_tagger(settings.resources() / "stanza", parse_path(conllu), settings.resources() / "taggers")


def _load_senses() -> senses.Store:
    folder = settings.resources() / f"senses-{wordnet.read_version()}"
    senses.build(folder)
    return senses.load(folder)


def _score_concreteness(words: Sequence[str], by: Rules) -> dict[str, float]:
    """Concreteness of words; those without a vector are left out."""
    vectors = parse_path(by.vectors)
    ref = (
        by.scorer
        or model_registry.select_model_id(abstractness.KIND, None)
        or str(abstractness.ensure_default_scorer(vectors))
    )
    model = abstractness.load_model(ref)
    score = abstractness.load_scorer(model, vectors if model.config.get("vectors") else None)
    return {word: value for word, value in zip(words, score(words).tolist(), strict=True) if not math.isnan(value)}


def _list_filters(by: Rules) -> "Sequence[Filter]":
    """The filters of section 3.4, the cheap ones first: each sees what those before it have left."""
    near = [targets.similar_in_passage(load_static_vectors(parse_path(by.vectors)), by.similar)]
    if by.in_context:
        near.append(targets.similar_in_context(_bind_states(by), by.similar))
    return *targets.FILTERS, *near


def load_static_vectors(vectors: Path | None) -> "Vectors":
    """Vectors of words out of context; those of an encoder are kept for the words met so far."""
    return _load_static_vectors(vectors, settings.encoder(), settings.precision())


@cache
def _load_static_vectors(vectors: Path | None, *_encoder: str) -> "Vectors":
    from pipeline.models.recam import word_features

    return word_features.static(abstractness.load_source(vectors))


def _bind_states(by: Rules) -> "States":
    from pipeline.models import encoder
    from pipeline.models.recam import contextual

    by_encoder = encoder.load(settings.encoder(), settings.precision(), settings.threads())
    return partial(contextual.states, by_encoder, layer=by.layer, pooling=by.pooling)


def publish_targets(staged: Sequence[Staged], day: str, rules: Rules = RULES, run_id: str = "cli") -> dict[str, int]:
    """Make the targets of each source exactly those found; how many there are of each subtask."""
    slices.parse_day(day)
    began = runs.start(staged)
    every = warehouse.staged_rows("cloze_targets", staged) if staged else empty("cloze_targets").lazy()
    counts: Counter[str] = Counter()
    for source in every.select(pl.col("source").unique().sort()).collect()["source"]:
        mine = every.filter(pl.col("source") == source)
        warehouse.overwrite("cloze_targets", warehouse.slice_of(source=source), mine, run_id)
        told = mine.select("subtask", "thread_id", "reason").collect()
        threads = told.select("thread_id").unique("thread_id").sort("thread_id")
        none = building.without_targets(threads, told)
        kept = threads.height * len(building.SUBTASKS) - none.height
        none = pl.concat([none, list_unfit_articles(source)])
        gone = none.select(pl.lit(source).alias("source"), "reason", "row_key")
        runs.record_step(source, day, ORIGIN, STEP, kept, gone, rules._asdict(), run_id, began)
        began = runs.start()  # what sources share is counted with the first
        counts.update(told.filter(pl.col("reason").is_null())["subtask"])
    return dict(sorted(counts.items()))
