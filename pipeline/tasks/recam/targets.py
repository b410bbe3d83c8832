"""Target words as tasks: from articles with summaries to the words that a question may leave out (ReCAM, section 3)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import BadInput, check_name
from pipeline.examples.recam import building
from pipeline.score.signature import name_encoder
from pipeline.tables import TABLES, empty
from pipeline.tasks.recam import abstractness
from pipeline.tasks.record import day_texts, model_choice, runs
from pipeline.tasks.record.encoders import choose_precision, load_encoder
from pipeline.text import concreteness, senses, tagging, wordnet

ORIGIN = "cloze"
STEP = "cloze_targets"
ROWS_PER_SHARD = 500  # articles; each shard needs ten seconds to load encoder and WordNet
LANG = "en"  # WordNet's


class Rules(NamedTuple):
    """How items are made: which words are targets, and how wrong options are chosen.

    The defaults are the paper's numbers (sections 3.2 to 3.5).
    """

    scorer: str | None = None  # folder or id of a scorer, or a file of ratings; None: that in force, else a default
    vectors: str | None = None  # word vectors in GloVe's format, for the readers too; None: the encoder's
    conllu: str | None = None  # a treebank to train the tagger on, where stanza has no models
    concrete_from: float = concreteness.THRESHOLD
    specific_from: int = wordnet.NONSPECIFIC
    similar: float = building.SIMILAR
    in_context: bool = True  # the filter by an encoder's states
    senses: str = senses.MEASURES[0]  # the measure that chooses a word's sense
    layer: int = -1
    pooling: Literal["mean", "first"] = "mean"
    rule: str = "paper"  # the commonest proposals; balanced: options alone do not give the answer away
    seed: int = building.SEED
    is_small: bool = False  # readers for a few thousand items and a CPU
    numbers: Mapping[str, Any] = {}  # further changes to the readers' recipes


RULES = Rules()
NUMBERS = {"concrete_from": (0, 1), "specific_from": (0, 20), "similar": (0, 1)}
"""Numbers of `Rules` that `--set` of the command and the DAG's parameter `numbers` may change, with their bounds."""


def check_subtask(subtask: str) -> str:
    """Check the name of a subtask and return it."""
    return check_name("subtask", subtask, building.SUBTASKS)


def parse_rules(values: Mapping[str, Any]) -> Rules:
    """Make rules from the params of a DAG or the options of a command; null values keep their default."""
    numbers = dict(values.get("numbers") or {})
    bounded = {name: numbers.pop(name) for name in [*numbers] if name in NUMBERS}
    fields = {**values, **bounded, "numbers": numbers}.items()
    rules = Rules(**{name: value for name, value in fields if name in Rules._fields and value is not None})
    for name, (low, high) in NUMBERS.items():
        if type(value := getattr(rules, name)) not in (int, float) or not low <= value <= high:
            raise BadInput(f"{name} should be a number from {low} to {high}; found {value!r}")
    check_name("measure of word senses", rules.senses, senses.MEASURES)
    check_name("rule", rules.rule, ("paper", "balanced"))
    return rules


def resolve_rules(day: str, values: Mapping[str, Any], ratings: str | None, run_id: str) -> dict[str, Any]:
    """Make the rules of a run and name its scorer by id; train one on the ratings if needed."""
    rules = parse_rules(values)
    scorer = rules.scorer or model_choice.select_model_id(abstractness.KIND, None)
    if ratings or not scorer:
        words = abstractness.read_ratings(parse_path(ratings))
        scorer = abstractness.train(day, words, parse_path(rules.vectors), run_id)
    return rules._replace(scorer=scorer)._asdict()


def describe_resources(rules: Rules) -> dict[str, Any]:
    """Describe what levels and states depend on: WordNet's version and deepest levels, and the encoder."""
    deepest = {name: max(wordnet.load_levels(name[0]).values()) for name in ("noun", "verb")}
    encoder = load_encoder() if rules.in_context or not rules.vectors else None
    name = encoder and name_encoder(encoder.name, encoder.revision)
    return {"wordnet": wordnet.read_version(), "deepest_level": deepest, "encoder": name}


def parse_path(text: str | None) -> Path | None:
    """Make a path of an optional text."""
    return Path(text).expanduser() if text else None


def scan_articles(source: str | None = None, snapshot: int | None = None) -> pl.LazyFrame:
    """Scan the English articles with a summary, each once: source, thread_id, text, summary."""
    articles = _scan_summarised(source, snapshot).filter(pl.col("reason").is_null())
    return articles.select("source", "thread_id", "text", "summary")


def _scan_summarised(source: str | None, snapshot: int | None) -> pl.LazyFrame:
    """Scan articles with the reason to drop them; `@placeholder` is none, as importing rewrites it as a mention."""
    condition = pl.col("summary").is_not_null()
    if source is not None:
        condition &= pl.col("source") == source
    faults = {"no_text": pl.col("text") == "", "not_english": pl.col("lang") != LANG}
    reason = pl.coalesce(pl.when(fault).then(pl.lit(name)) for name, fault in faults.items())
    return day_texts.scan_articles(condition, snapshot).with_columns(reason=reason)


def plan(rows_per_shard: int = ROWS_PER_SHARD, only: str | None = None) -> list[day_texts.ArticlePart]:
    """Divide the articles of all sources, or of one, into parts; without any they are Missing."""
    missing = (
        "no English article{} has a summary; import some: `undertone import summaries.jsonl --map "
        "thread_id=id,article_text=document,summary=summary`"
    )
    return day_texts.plan_articles(scan_articles, rows_per_shard, only, missing)


def stage_targets(part: day_texts.ArticlePart, rules: Rules) -> slices.Staged:
    """Stage all tokens of the summaries of a part, each with the reason why it is no target."""
    timer = runs.start()
    articles = day_texts.read_part(scan_articles(part["source"], part["snapshot"]), part)
    tokens = pl.concat(find_targets(articles, rules)).with_columns(source=pl.lit(part["source"]))
    staged = warehouse.stage("cloze_targets", tokens.select(TABLES["cloze_targets"].schema.column_names()))
    return runs.time_shard(timer, staged)


def find_targets(articles: pl.DataFrame, rules: Rules) -> Iterator[pl.DataFrame]:
    """Find the targets of any articles (thread_id, text, summary); yield the frames of `building.find_targets`."""
    # stanza if its models are among the resources, else trained on the treebank, else WordNet's counts
    resources = settings.resources()
    conllu = parse_path(rules.conllu)
    analyse = tagging.load_tagger(resources / "stanza", conllu, settings.scratch("tagging")).analyse
    path = parse_path(rules.scorer)
    ratings = path if path and path.is_file() else None
    if ratings:  # as the official items: all gold words of the dev file that Brysbaert's list has are under 2.4 of 5
        scores = dict(concreteness.read(ratings).rows.select("word", "score").iter_rows())
    else:
        tokens = (token for summary in articles["summary"] for sentence in analyse(summary) for token in sentence)
        scores = _score_concreteness(sorted({token.text.lower() for token in tokens}), rules)
    imperceptible = building.build_imperceptibility_rule(scores, rules.concrete_from, by_lemma=ratings is not None)
    folder = resources / f"senses-{wordnet.read_version()}"
    senses.build(folder)
    disambiguate = partial(senses.disambiguate, senses.load(folder), measure=rules.senses)
    nonspecific = building.build_nonspecificity_rule(disambiguate, rules.specific_from)
    rule_of = {"imperceptibility": imperceptible, "nonspecificity": nonspecific}
    filters = [*building.FILTERS, building.build_passage_filter(load_static_vectors(rules.vectors), rules.similar)]
    if rules.in_context:
        from pipeline.models.recam import contextual

        states = partial(contextual.embed_tokens, load_encoder(), layer=rules.layer, pooling=rules.pooling)
        filters.append(building.build_context_filter(states, rules.similar))
    return building.find_targets(articles, analyse, rule_of, filters)


def _score_concreteness(words: Sequence[str], rules: Rules) -> dict[str, float]:
    vectors = parse_path(rules.vectors)
    model = abstractness.load_model(rules.scorer, vectors)
    scores = abstractness.score_by_model(model, words, vectors if model.config.get("vectors") else None)
    return dict(scores.filter(pl.col("reason").is_null()).select("word", "concreteness").iter_rows())


def load_static_vectors(path: str | None) -> building.Vectors:
    """Load vectors of words out of context from a file, or compute them with the encoder and cache them by word."""
    return _load_static_vectors(parse_path(path), settings.encoder(), choose_precision())


@cache
def _load_static_vectors(path: Path | None, *_encoder: str) -> building.Vectors:
    from pipeline.models.recam import word_features

    return word_features.make_static_lookup(abstractness.load_source(path))


def publish_targets(staged: Sequence[slices.Staged], day: str, rules: Rules, run_id: str = "cli") -> dict[str, int]:
    """Replace the targets of each staged source; return the count of each subtask."""
    timer = runs.start(staged)
    tokens = warehouse.scan_staged("cloze_targets", staged) if staged else empty("cloze_targets").lazy()
    counts: Counter[str] = Counter()
    for source in tokens.select(pl.col("source").unique().sort()).collect()["source"]:
        source_tokens = tokens.filter(source=source)
        warehouse.overwrite("cloze_targets", warehouse.make_slice(source=source), source_tokens, run_id)
        reasons = source_tokens.select("subtask", "thread_id", "reason").collect()
        threads = reasons.select("thread_id").unique().sort("thread_id")
        untargeted = building.list_untargeted(threads, reasons)
        kept_count = threads.height * len(building.SUBTASKS) - untargeted.height
        unfit = _scan_summarised(source, None).drop_nulls("reason").select("reason", row_key="thread_id")
        dropped = pl.concat([untargeted, unfit.sort("row_key").collect()]).with_columns(source=pl.lit(source))
        runs.record_step(source, day, ORIGIN, STEP, kept_count, dropped, rules._asdict(), run_id, timer)
        counts.update(reasons.filter(pl.col("reason").is_null())["subtask"])
    return dict(sorted(counts.items()))
