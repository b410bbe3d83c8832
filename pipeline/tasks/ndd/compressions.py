"""Compress data sets by every system into the tables, and measure the compressions (NDD, section 4)."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.ndd import compression as examples
from pipeline.metrics.ndd import compression as measures
from pipeline.progress import track
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.ndd import datasets, masked_lm, systems
from pipeline.tasks.record import runs
from pipeline.tasks.studies import rows as study_rows

if TYPE_CHECKING:
    from pipeline.score.compress.search import Search

log = logging.getLogger(__name__)

OnProgress = Callable[[int], None]

SAMPLE, GOLD = "sample", "gold"
RIVALS = ("head", "tail", "random", "ppl_deleter")  # not "unedited": copying is no compression
BIN_COUNT = 10  # parts of a sentence in figure 6
SOURCE_NAME = r"[a-z][a-z0-9_]{0,29}"  # the labelling project of a data set puts letters before it
MEASURES_SUBSET, THRESHOLDS_SUBSET = r"^{}:[a-z]{{2,3}}$", r"^{}:[a-z]{{2,3}}:thresholds$"  # of a source, by language
GRID = ((4.0, 5), (2.0, 5), (1.0, 5), (0.5, 5), (0.25, 5), (1.0, 2), (1.0, 1))  # N_max and L_max of table 6
DECIMALS = 6


def load_items(data: str | None = None, form: str = "own", split: str | None = None) -> pl.DataFrame:
    """Read sentences with gold compressions from a file, by default from the sample.

    Masks of Colloquial-SC are replaced by what people say instead (NDD-28).
    """
    dataset, name = datasets.read(Path(data) if data else sample.COMPRESSIONS, form, split), data or "the sample"
    runs.report_dropped("read", dataset.dropped, name)
    items = dataset.rows
    if not items.height:
        raise Missing(f"{name}: no sentences to compress")
    invalid = items.filter(~pl.col("lang").fill_null("und").str.contains("^[a-z]{2,3}$"))
    if invalid.height:
        item_id, lang = invalid.select("item_id", "lang").row(0)
        raise BadInput(f"{name}, {item_id}: field 'lang' should be two or three letters such as en, found {lang!r:.40}")
    if form != "colloquial":
        return items
    words = [examples.replace_masks(words) for words in items["words"]]
    return items.with_columns(words=pl.Series(words, dtype=pl.List(pl.String)))


def list_systems(
    names: Sequence[str], ref: str | None = None, source: str = SAMPLE, *, is_explicit: bool = False
) -> list[str]:
    """List the systems to run: gold, the baselines, and those of `names` that the model can run.

    Args:
        names: of `systems.SYSTEMS`.
        ref: the model; see `masked_lm.load_model`.
        source: name of the data set.
        is_explicit: whether the user gave the names; then a system that the model cannot run is an error.

    Raises:
        BadInput: there is no such system, the tables cannot take the source's name, or see `is_explicit`.
    """
    if not re.fullmatch(SOURCE_NAME, source):
        raise BadInput(f"source: expected up to 30 small letters, digits and _, found {source!r:.60}")
    names = list(dict.fromkeys(names))
    stateful = [name for name in names if systems.get_system(name).scorer in systems.STATE_SCORERS]
    if stateful and _are_all_counts(ref):
        message = f"{', '.join(stateful)}: these compare the states of a transformer, and a model of counts has none"
        if is_explicit:
            raise BadInput(f"{message}; give --model")
        log.info("skipped %s", message)
        names = [name for name in names if name not in stateful]
    return [GOLD, *measures.BASELINES, *names]


def _are_all_counts(ref: str | None) -> bool:
    return all(masked_lm.is_count_model(masked_lm.load_model(ref, lang)) for lang in masked_lm.LANGS)


def compress_items(
    rows: pl.DataFrame, system: str, source: str, day: str, ref: str | None = None, search: "Search | None" = None,
    distance_options: systems.DistanceOptions | None = None, syntax: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:  # fmt: skip
    """Compress a data set by one system into rows of `compressions`.

    By default a system keeps as large a share of each language's words as people did, so that systems can be compared.
    A system that needs trees drops the sentences that have none.

    Args:
        rows: item_id, words, kept, lang.
        system: one of `systems.SYSTEMS`, a baseline, or `gold`.
        source: name of the data set.
        day: of the run.
        ref: the model; see `masked_lm.load_model`.
        search: numbers of the search; by default at the gold ratio.
        distance_options: numbers of the distance.
        syntax: CoNLL-U file with trees of the sentences; by default the sample's own file, else stanza's parser.
        on_progress: called with a count of finished sentences.
    """
    from pipeline.score.compress.search import Search

    tables = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        if system == GOLD or system in measures.BASELINES:
            labels = part["kept"].to_list() if system == GOLD else measures.BASELINES[system](part)
            rounds = [[int(not stays) for stays in sentence] for sentence in labels]
            tables.append(_build_compressions(part, rounds, system, source, day, system))
            continue
        lm = masked_lm.load_model(ref, systems.choose_model_lang(str(lang)), day)
        scorer, has_trees = systems.get_system(system)
        if scorer in systems.STATE_SCORERS and masked_lm.is_count_model(lm):
            log.warning("%s: no %s of %d sentences in %s: counts have no states", source, system, part.height, lang)
            continue
        sentences, heads = _select_with_trees(part, str(lang), syntax, source) if has_trees else (part, None)
        if not sentences.height:
            continue
        words = sentences["words"].to_list()
        kept_ratio = sum(map(sum, sentences["kept"])) / sum(map(len, words))
        part_search = search or Search(ratio=round(kept_ratio, 4))
        answers = systems.compress_sentences(words, system, lm, part_search, distance_options, heads, on_progress)
        signature = systems.format_signature(system, lm, part_search, distance_options)
        rounds = [answer.rounds.tolist() for answer in answers]
        tables.append(_build_compressions(sentences, rounds, system, source, day, signature))
    if syntax and not tables and systems.get_system(system).has_trees:
        raise BadInput(f"{syntax}: no tree of any of the {rows.height} sentences; are its words the same?")
    return pl.concat(tables) if tables else empty("compressions")


def _select_with_trees(
    part: pl.DataFrame, lang: str, syntax: Path | None, source: str
) -> tuple[pl.DataFrame, list[tuple[int, ...]]]:
    """Select the sentences that have a tree, and their heads; none without a file and a parser."""
    path = syntax or (sample.TREES if source == SAMPLE and lang == "en" else None)
    heads: list[tuple[int, ...] | None] = [None] * part.height
    try:
        heads = systems.find_heads(part["words"].to_list(), systems.choose_model_lang(lang), path)
    except Missing as error:
        log.warning("%s", error)
    if missing_count := heads.count(None):
        log.warning("%s: no tree of %d of %d sentences in %s", source, missing_count, part.height, lang)
    has_tree = pl.Series([tree is not None for tree in heads], dtype=pl.Boolean)
    return part.filter(has_tree), [tree for tree in heads if tree is not None]


def _build_compressions(
    part: pl.DataFrame, rounds: Sequence[Sequence[int]], system: str, source: str, day: str, signature: str
) -> pl.DataFrame:
    kept_ratio = pl.col("rounds").list.count_matches(0) / pl.col("rounds").list.len()
    part = part.with_columns(
        rounds=pl.Series(rounds, dtype=pl.List(pl.Int64)),
        system=pl.lit(system),
        source=pl.lit(source),
        day=pl.lit(parse_day(day)),
        signature=pl.lit(signature),
        lang=pl.col("lang").fill_null("und"),
    )
    return part.with_columns(ratio=kept_ratio.round(DECIMALS)).select(TABLES["compressions"].schema.column_names())


def stage(
    system: str, source: str, day: str, data: str | None = None, form: str = "own", split: str | None = None,
    ref: str | None = None, syntax: str | None = None, ratio: float | None = None,
) -> Staged:  # fmt: skip
    """Compress a data set by one system and stage the rows."""
    from pipeline.score.compress.search import Search

    started, search = runs.start(), None if ratio is None else Search(ratio=ratio)
    items = load_items(data, form, split)
    trees = Path(syntax) if syntax else None
    with track(f"sentences compressed by {system}", items.height) as on_progress:
        rows = compress_items(items, system, source, day, ref, search, syntax=trees, on_progress=on_progress)
    return runs.time_shard(started, warehouse.stage("compressions", rows))


def publish(staged: Sequence[Staged], source: str, day: str, run_id: str = "cli") -> int:
    """Publish the staged compressions of a data set and day, all at once; return the partition's count.

    Rows of other systems stay while the data set has their sentences; so parts of a data set need different sources.
    """
    if not staged:
        raise Missing(f"{source}: nothing was compressed")
    started = runs.start(staged)
    rows = warehouse.staged_rows("compressions", staged).collect()
    sentences = dict(rows.select("item_id", "words").iter_rows())

    def with_other_systems(current: pl.LazyFrame) -> pl.DataFrame:
        other_rows = current.filter(~pl.col("system").is_in(rows["system"].unique().to_list())).collect()
        is_same = [
            sentences.get(item_id) == words for item_id, words in other_rows.select("item_id", "words").iter_rows()
        ]
        if not all(is_same):
            log.warning("%s: removed %d compressions of other sentences", source, is_same.count(False))
        return pl.concat([other_rows.filter(pl.Series(is_same, dtype=pl.Boolean)).select(rows.columns), rows])

    count = warehouse.replace("compressions", warehouse.slice_of(source=source, day=day), with_other_systems, run_id)
    config = {"systems": rows["system"].unique().sort().to_list()}
    runs.record_step(source, day, "compress", "compress", rows.height, None, config, run_id, started)
    return count


def measure(source: str, day: str) -> pl.DataFrame:
    """Measure the compressions of a data set by system and language: tables 3 and 5, significance, figure 6.

    Each system is measured on the sentences that it compressed, and compared with its best rival in F1.

    Returns:
        Rows of `studies`.
    """
    partition = (pl.col("source") == source) & (pl.col("day") == parse_day(day))
    compressions = warehouse.scan("compressions", partition).sort("item_id", "system").collect()
    rows: list[dict[str, Any]] = []
    for (lang,), part in compressions.partition_by("lang", as_dict=True, maintain_order=True).items():
        gold = part.filter(pl.col("system") == GOLD).select("item_id", "words", "lang", kept=_is_kept())
        subset, by_system = f"{source}:{lang}", {}
        for (system,), own_rows in part.partition_by("system", as_dict=True, maintain_order=True).items():
            predictions = own_rows.select("item_id", predicted=_is_kept())
            predictions = predictions.join(gold, on="item_id", maintain_order="left")
            rows += _measure_positions(predictions, str(system), subset, day)
            if system != GOLD:
                numbers = measures.evaluate(predictions["predicted"], predictions)
                rows += study_rows.build_rows("compression", day, subset, {"system": system}, numbers)
                by_system[str(system)] = predictions
        rows += _compare_systems(by_system, subset, day)
    return study_rows.build_frame(rows)


def _is_kept() -> pl.Expr:
    return pl.col("rounds").list.eval(pl.element() == 0)


def _measure_positions(predictions: pl.DataFrame, system: str, subset: str, day: str) -> list[dict[str, Any]]:
    """Measure the share of words that stay in each tenth of a sentence (figure 6; NDD-37)."""
    lengths = [len(sentence) for sentence in predictions["predicted"]]
    if not any(lengths):
        return []
    bins = np.concatenate([np.arange(length) * BIN_COUNT // length for length in lengths])
    values = np.concatenate([sentence.to_numpy() for sentence in predictions["predicted"]])
    numbers = [
        {"metric": f"kept_{number}", "value": values[bins == number].mean(), "n": int((bins == number).sum())}
        for number in np.unique(bins).tolist()
    ]
    return study_rows.build_rows("compression", day, subset, {"system": system}, numbers)


def _compare_systems(by_system: Mapping[str, pl.DataFrame], subset: str, day: str) -> list[dict[str, Any]]:
    """Compare each system with its best rival in F1, on the sentences that both compressed (NDD-40)."""
    rows: list[dict[str, Any]] = []
    for name, predictions in by_system.items():
        if name in measures.BASELINES:
            continue
        pairs, scores = {}, {}
        for rival in by_system:
            if rival in RIVALS and rival != name:
                rival_rows = by_system[rival].select("item_id", rival="predicted")
                pairs[rival] = predictions.join(rival_rows, on="item_id", maintain_order="left")
                if pairs[rival].height:
                    scores[rival] = _measure_f1(pairs[rival])
        if not scores:
            continue
        best = max(scores, key=scores.__getitem__)
        comparison = measures.compare(pairs[best]["predicted"], pairs[best]["rival"], pairs[best])
        for number in comparison.filter(pl.col("metric").is_in(["f1_macro", "rouge_l"])).to_dicts():
            numbers = [
                {**number, "metric": f"{number['metric']}_difference", "value": number["difference"]},
                {"metric": f"{number['metric']}_p", "value": number["p"], "n": number["n"]},
            ]
            setting = {"system": name, "against": best}
            rows += study_rows.build_rows("compression", day, subset, setting, numbers)
    return rows


def _measure_f1(pairs: pl.DataFrame) -> float:
    numbers = measures.evaluate(pairs["rival"], pairs, draws=1)
    return float(numbers.filter(pl.col("metric") == "f1_macro")["value"].item())


def try_thresholds(
    rows: pl.DataFrame, source: str, day: str, ref: str | None = None, on_progress: OnProgress = lambda _: None
) -> pl.DataFrame:
    """Measure Fast NDD under the paper's thresholds and longest spans, without a ratio (table 6; NDD-33)."""
    from pipeline.score.compress.search import Search

    measured_rows = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        lm = masked_lm.load_model(ref, systems.choose_model_lang(str(lang)), day)
        words = part["words"].to_list()
        for threshold, longest in GRID:
            search = Search(threshold=threshold, longest=longest)
            answers = systems.compress_sentences(words, "fast_ndd", lm, search, on_progress=on_progress)
            numbers = measures.evaluate([answer.is_kept.tolist() for answer in answers], part)
            setting = {"system": "fast_ndd", "threshold": threshold, "longest": longest}
            subset = f"{source}:{lang}:thresholds"
            measured_rows += study_rows.build_rows("compression", day, subset, setting, numbers)
    return study_rows.build_frame(measured_rows)


def replace_study(study: str, rows: pl.DataFrame, day: str, run_id: str = "cli", subsets: str = "") -> int:
    """Replace the rows of a study and day, by whatever model, whose subset matches a pattern.

    Args:
        study: its name.
        rows: of `studies`; if there are none, what matches is removed.
        day: of the run.
        run_id: of Airflow.
        subsets: a regular expression; of compressions `MEASURES_SUBSET` or `THRESHOLDS_SUBSET` with the source, by
            default the subsets of the rows; of other studies all by default.
    """
    if study == "compression" and not subsets:
        subsets = f"^({'|'.join(map(re.escape, rows['subset'].unique()))})$"
    return study_rows.replace_study(study, rows, day, run_id, replaced=pl.col("subset").str.contains(subsets))


def load_measures(source: str, day: str) -> pl.DataFrame:
    """Load what `measure` wrote into `studies` about a data set.

    Returns:
        metric, value, low, high, by, lang, n.
    """
    partition = (pl.col("study") == "compression") & (pl.col("day") == parse_day(day))
    rows = warehouse.scan("studies", partition).collect()
    rows = rows.filter(pl.col("subset").str.contains(MEASURES_SUBSET.format(source)))
    setting = pl.col("setting").str.json_decode(pl.Struct({"system": pl.String, "against": pl.String}))
    rows = rows.with_columns(setting).unnest("setting").filter(pl.col("against").is_null())
    lang = pl.col("subset").str.split(":").list.last()
    rows = rows.select("metric", "value", "low", "high", by="system", lang=lang, n="row_count")
    return rows.sort("lang", "by", "metric")
