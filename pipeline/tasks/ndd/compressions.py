"""Read data sets, compress them by every system into the tables, and measure the compressions (NDD, section 4)."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out, sample, warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.ndd import compression as examples
from pipeline.metrics.ndd import compression as measures
from pipeline.progress import OnProgress, track
from pipeline.reasons import Read
from pipeline.score.compress.search import Search
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.ndd import masked_lm, systems
from pipeline.tasks.record import runs
from pipeline.tasks.studies import rows as study_rows
from pipeline.text import trees

FORMATS: dict[str, Callable[[Path], Read]] = {
    "own": examples.read, "google": examples.read_google, "broadcast": examples.read_broadcast,
    "colloquial": examples.read_colloquial,
}  # fmt: skip

SHOWN_METRICS = ("f1_macro", "ratio", "ratio_macro", "ratio_delta", "length", "rouge_1", "rouge_2", "rouge_l", "bleu_4")
"""CR stands next to F1: on long broadcast sentences a copy has 82.2, and the best compressor 76.5 (NDD-26)."""


def read_data_set(path: Path, source: str = "own", split: str | None = None) -> Read:
    """Read a data set of one of `FORMATS`, or one split of it."""
    dataset = FORMATS[check_name("source", source, FORMATS)](path)
    if split is None:
        return dataset
    rows = dataset.rows.filter(pl.col("split") == split)
    if not rows.height:
        splits = ", ".join(dataset.rows["split"].drop_nulls().unique().sort()) or "none"
        raise BadInput(f"{path}: no rows of the part {split!r}; there are {splits}")
    return dataset._replace(rows=rows)


def read_predictions(path: Path, rows: pl.DataFrame) -> list[list[bool]]:
    """Read compressions of the sentences of `rows`, in their order, from a file in our own format; count the others."""
    dataset = examples.read(path)
    predictions, labels, previous = dataset.rows.select("words", "kept").iter_rows(), [], "the start"
    for item_id, words in rows.select("item_id", "words").iter_rows():
        kept = next((kept for predicted, kept in predictions if predicted == words), None)
        if kept is None:
            unusable = "".join(f"; {key}: {reason}" for reason, key in dataset.dropped.head(1).iter_rows())
            expected = f"expected a compression of {item_id} after {previous}, in the words {' '.join(words)!r:.200}"
            raise BadInput(f"{path}: {expected}; found none{unusable}")
        labels.append(kept)
        previous = item_id
    unused_count = dataset.rows.height + dataset.dropped.height - len(labels)
    left_out.record_rows("predictions", {"not_in_data": unused_count}, str(path))
    return labels


def measure_predictions(rows: pl.DataFrame, predictions: list[list[bool]] | None = None) -> pl.DataFrame:
    """Measure the predicted compressions, if any, the gold ones and the baselines: `by`, the columns of `evaluate`."""
    by_name = {} if predictions is None else {"answers": predictions}
    by_name |= {"gold": rows["kept"].to_list()}
    by_name |= {name: baseline(rows) for name, baseline in measures.BASELINES.items()}
    parts = (
        measures.evaluate(labels, rows).select(pl.lit(name).alias("by"), pl.all()) for name, labels in by_name.items()
    )
    return pl.concat(parts)


def summarize_measures(numbers: pl.DataFrame) -> pl.DataFrame:
    """Show one row for each compressor."""
    rows = numbers.filter(pl.col("metric").is_in(SHOWN_METRICS)).with_columns(pl.col("value").round(4))
    wide = rows.pivot("metric", index=["by", "n"], values="value", maintain_order=True)
    return wide.select("by", *SHOWN_METRICS, "n")


log = logging.getLogger(__name__)
SAMPLE, GOLD = "sample", "gold"
RIVALS = ("head", "tail", "random", "ppl_deleter")  # not "unedited": copying is no compression
BIN_COUNT = 10  # parts of a sentence in figure 6
SOURCE_NAME = r"[a-z][a-z0-9_]{0,29}"  # the labelling project of a data set puts letters before it
MEASURES_SUBSET = r"^{}:[a-z]{{2,3}}(:common)?$"  # of a source, by language
COMMON = "common"  # the sentences that all systems compressed, where some did not compress all
THRESHOLDS_SUBSET = r"^{}:[a-z]{{2,3}}:thresholds$"
GRID = ((4.0, 5), (2.0, 5), (1.0, 5), (0.5, 5), (0.25, 5), (1.0, 2), (1.0, 1))  # N_max and L_max of table 6
DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a run compresses, and by which model."""

    day: str
    source: str = SAMPLE  # name of the data set
    data: str | None = None  # its file; by default the sample
    format: str = "own"  # of `FORMATS`
    split: str | None = None
    ref: str | None = None  # the model; see `masked_lm.load_model`
    syntax: str | None = None  # CoNLL-U file with trees; by default the sample's own, else stanza's parser
    ratio: float | None = None  # share of the words to keep; by default that of people
    spans: str = "paper"  # of `search.SPANS`
    distance: systems.DistanceOptions = field(default_factory=systems.DistanceOptions)


def make_job(params: Mapping[str, Any], day: str, ref: str | None) -> Job:
    """Make a job of the parameters that the DAG and the command have."""
    names = ("source", "data", "format", "split", "syntax", "ratio", "spans")
    options = {"divergence": params["divergence"], "weighting": params["weights"]}
    distance = systems.DistanceOptions(**{name: value for name, value in options.items() if value})
    return Job(day=day, ref=ref, distance=distance, **{name: params[name] for name in names})


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadInput or Missing if a run could not compress what its parameters name."""
    if not re.fullmatch(SOURCE_NAME, params["source"]):
        raise BadInput(f"source: expected up to 30 small letters, digits and _, found {params['source']!r:.60}")
    for name in params["systems"]:
        systems.get_system(name)
    if params["ratio"] is not None and not 0 < params["ratio"] <= 1:
        raise BadInput(f"ratio: expected above 0 and at most 1, found {params['ratio']}")
    if params["model"] and params.get("adapt"):
        raise BadInput("model and adapt: an adapted encoder replaces the model; give one of the two")
    job = make_job(params, "", params["model"])
    masked_lm.check_ref(job.ref)
    if job.syntax:
        list(trees.read(Path(job.syntax)))
    load_items(job.data, job.format, job.split)


def load_items(data: str | None = None, form: str = "own", split: str | None = None) -> pl.DataFrame:
    """Read gold compressions, by default the sample's; masks of Colloquial-SC become what people say (NDD-28)."""
    dataset, name = read_data_set(Path(data) if data else sample.COMPRESSIONS, form, split), data or "the sample"
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


def list_systems(names: Sequence[str], ref: str | None = None, *, is_explicit: bool = False) -> list[str]:
    """List gold, the baselines, and the systems that the model can run; another is an error where a user named it."""
    names = list(dict.fromkeys(names))
    stateful = [name for name in names if systems.get_system(name).scorer in systems.STATE_SCORERS]
    if stateful and all(masked_lm.is_count_model(masked_lm.load_model(ref, lang)) for lang in masked_lm.LANGS):
        message = f"{', '.join(stateful)}: these compare the states of a transformer, and a model of counts has none"
        if is_explicit:
            raise BadInput(f"{message}; give --model")
        log.info("skipped %s", message)
        names = [name for name in names if name not in stateful]
    return [GOLD, *measures.BASELINES, *names]


def compress_items(rows: pl.DataFrame, system: str, job: Job, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Compress item_id, words, kept, lang by one system into rows of `compressions`, by default to people's share."""
    parts = []
    for lang, part in systems.split_languages(rows):
        sentences = part
        heads: list[tuple[int, ...]] | None = None
        if system == GOLD or system in measures.BASELINES:
            labels = part["kept"].to_list() if system == GOLD else measures.BASELINES[system](part, job.ratio)
            rounds, signature = [[int(not stays) for stays in sentence] for sentence in labels], system
            if system in RIVALS and job.ratio is not None:
                signature += f"|ratio:{job.ratio}"
        else:
            lm = masked_lm.load_model(job.ref, systems.choose_model_lang(lang), job.day)
            scorer, has_trees = systems.get_system(system)
            if scorer in systems.STATE_SCORERS and masked_lm.is_count_model(lm):
                message = "%s: no %s of %d sentences in %s: counts have no states"
                log.warning(message, job.source, system, part.height, lang)
                continue
            if has_trees:
                sentences, heads = _select_with_trees(part, lang, job)
            if not sentences.height:
                continue
            words = sentences["words"].to_list()
            ratio = measures.measure_ratio(sentences) if job.ratio is None else job.ratio
            search = Search(ratio=ratio, spans=job.spans)
            method = systems.Method(system=system, search=search, distance=job.distance)
            answers = systems.compress_sentences(words, method, lm, heads, on_progress)
            rounds, signature = [answer.rounds.tolist() for answer in answers], method.format_signature(lm)
        all_rounds = pl.Series(rounds, dtype=pl.List(pl.Int64))
        parts.append(sentences.with_columns(rounds=all_rounds, signature=pl.lit(signature)))
    if not parts:
        if job.syntax and systems.get_system(system).has_trees:
            raise BadInput(f"{job.syntax}: no tree of any of the {rows.height} sentences; are its words the same?")
        return empty("compressions")
    kept_ratio = (pl.col("rounds").list.count_matches(0) / pl.col("rounds").list.len()).round(DECIMALS)
    constants = {"system": pl.lit(system), "source": pl.lit(job.source), "day": pl.lit(parse_day(job.day))}
    compressions = pl.concat(parts).with_columns(pl.col("lang").fill_null("und"), ratio=kept_ratio, **constants)
    return compressions.select(TABLES["compressions"].schema.column_names())


def _select_with_trees(part: pl.DataFrame, lang: str, job: Job) -> tuple[pl.DataFrame, list[tuple[int, ...]]]:
    """Select the sentences that have a tree, and their heads; none without a file and a parser."""
    path = sample.TREES if job.source == SAMPLE and lang == "en" else None
    path = Path(job.syntax) if job.syntax else path
    heads: list[tuple[int, ...] | None] = [None] * part.height
    try:
        heads = systems.find_heads(part["words"].to_list(), systems.choose_model_lang(lang), path)
    except Missing as error:
        log.warning("%s", error)
    if missing_count := heads.count(None):
        log.warning("%s: no tree of %d of %d sentences in %s", job.source, missing_count, part.height, lang)
    has_tree = pl.Series([tree is not None for tree in heads], dtype=pl.Boolean)
    return part.filter(has_tree), [tree for tree in heads if tree is not None]


def stage(system: str, job: Job) -> Staged:
    """Compress a data set by one system and stage the rows."""
    started, items = runs.start(), load_items(job.data, job.format, job.split)
    with track(f"sentences compressed by {system}", items.height) as on_progress:
        rows = compress_items(items, system, job, on_progress)
    return runs.time_shard(started, warehouse.stage("compressions", rows))


def publish(staged: Sequence[Staged], source: str, day: str, run_id: str = "cli") -> int:
    """Publish the staged compressions of a data set and day; those by other systems stay while their sentences do."""
    if not staged:
        raise Missing(f"{source}: nothing was compressed")
    started = runs.start(staged)
    rows = warehouse.scan_staged("compressions", staged).collect()
    sentences = dict(rows.select("item_id", "words").iter_rows())

    def with_other_systems(current: pl.LazyFrame) -> pl.DataFrame:
        other_rows = current.filter(~pl.col("system").is_in(rows["system"].unique().to_list())).collect()
        is_same = [sentences.get(item) == words for item, words in other_rows.select("item_id", "words").iter_rows()]
        if not all(is_same):
            log.warning("%s: removed %d compressions of other sentences", source, is_same.count(False))
        return pl.concat([other_rows.filter(pl.Series(is_same, dtype=pl.Boolean)).select(rows.columns), rows])

    count = warehouse.replace("compressions", warehouse.make_slice(source=source, day=day), with_other_systems, run_id)
    config = {"systems": rows["system"].unique().sort().to_list()}
    runs.record_step(source, day, "compress", "compress", rows.height, None, config, run_id, started)
    return count


def measure(source: str, day: str) -> pl.DataFrame:
    """Measure the compressions of a data set by system and language: tables 3 and 5, significance, figure 6.

    Each system is measured on the sentences that it compressed, and compared with its best rival in F1. Where systems
    compressed different sentences, as those that need trees do, rows of `COMMON` measure all on the same ones.
    """
    partition = (pl.col("source") == source) & (pl.col("day") == parse_day(day))
    compressions = warehouse.scan("compressions", partition).sort("item_id", "system").collect()
    rows: list[dict[str, Any]] = []
    for lang, part in systems.split_languages(compressions):
        gold = part.filter(pl.col("system") == GOLD).select("item_id", "words", "lang", kept=_is_kept())
        subset, by_system = f"{source}:{lang}", {}
        for (system,), system_rows in part.partition_by("system", as_dict=True, maintain_order=True).items():
            predictions = system_rows.select("item_id", predicted=_is_kept())
            predictions = predictions.join(gold, on="item_id", maintain_order="left")
            rows += _measure_positions(predictions, str(system), subset, day)
            rows += _measure_system(predictions, str(system), subset, day)
            if system != GOLD:
                by_system[str(system)] = predictions
        rows += _compare_systems(by_system, subset, day) + _measure_common(by_system, subset, day)
    return study_rows.build_frame(rows)


def _measure_common(by_system: Mapping[str, pl.DataFrame], subset: str, day: str) -> list[dict[str, Any]]:
    """Measure all systems on the sentences that each compressed; nothing where these are all sentences or none."""
    item_ids = [set(predictions["item_id"]) for predictions in by_system.values()]
    common = set.intersection(*item_ids) if item_ids else set()
    if not common or all(ids == common for ids in item_ids):
        return []
    rows: list[dict[str, Any]] = []
    for name, predictions in by_system.items():
        part = predictions.filter(pl.col("item_id").is_in(common))
        rows += _measure_system(part, name, f"{subset}:{COMMON}", day)
    return rows


def _measure_system(predictions: pl.DataFrame, system: str, subset: str, day: str) -> list[dict[str, Any]]:
    numbers = measures.evaluate(predictions["predicted"], predictions)
    return study_rows.build_rows("compression", day, subset, {"system": system}, numbers)


def _is_kept() -> pl.Expr:
    return pl.col("rounds").list.eval(pl.element() == 0)


def _measure_positions(predictions: pl.DataFrame, system: str, subset: str, day: str) -> list[dict[str, Any]]:
    """Measure the share of words that stay in each tenth of a sentence (figure 6; NDD-37)."""
    words = predictions.with_row_index("sentence").explode("predicted")
    place, size = pl.int_range(pl.len()).over("sentence"), pl.len().over("sentence")
    words = words.with_columns(metric=pl.format("kept_{}", place * BIN_COUNT // size))
    numbers = words.group_by("metric").agg(value=pl.col("predicted").mean(), n=pl.len()).sort("metric")
    return study_rows.build_rows("compression", day, subset, {"system": system}, numbers)


def _compare_systems(by_system: Mapping[str, pl.DataFrame], subset: str, day: str) -> list[dict[str, Any]]:
    """Compare each system with its best rival in F1, on the sentences that both compressed (NDD-40)."""
    rows: list[dict[str, Any]] = []
    for name, predictions in by_system.items():
        if name in measures.BASELINES:
            continue
        pairs, scores = {}, {}
        for rival in [rival for rival in by_system if rival in RIVALS and rival != name]:
            rival_rows = by_system[rival].select("item_id", rival="predicted")
            pairs[rival] = predictions.join(rival_rows, on="item_id", maintain_order="left")
            if pairs[rival].height:
                numbers = measures.evaluate(pairs[rival]["rival"], pairs[rival], draws=1)
                scores[rival] = numbers.filter(metric="f1_macro")["value"].item()
        if not scores:
            continue
        best = max(scores, key=scores.__getitem__)
        comparison = measures.compare(pairs[best]["predicted"], pairs[best]["rival"], pairs[best])
        comparison = comparison.filter(pl.col("metric").is_in(["f1_macro", "rouge_l"]))
        differences = comparison.with_columns(value="difference", metric=pl.col("metric") + "_difference")
        p_values = comparison.select("n", value="p", metric=pl.col("metric") + "_p")
        for numbers in (differences, p_values):
            rows += study_rows.build_rows("compression", day, subset, {"system": name, "against": best}, numbers)
    return rows


def try_thresholds(rows: pl.DataFrame, job: Job, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Measure Fast NDD under the paper's thresholds and longest spans, without a ratio (table 6; NDD-33)."""
    rows_of_studies = []
    for lang, part in systems.split_languages(rows):
        lm = masked_lm.load_model(job.ref, systems.choose_model_lang(lang), job.day)
        for threshold, longest in GRID:
            search = Search(threshold=threshold, longest=longest, spans=job.spans)
            method = systems.Method(system="fast_ndd", search=search, distance=job.distance)
            answers = systems.compress_sentences(part["words"].to_list(), method, lm, on_progress=on_progress)
            numbers = measures.evaluate([answer.is_kept.tolist() for answer in answers], part)
            setting = {"system": method.system, "threshold": threshold, "longest": longest}
            setting["model"] = job.distance.format_signature(lm) + f"|spans:{job.spans}" * (job.spans != "paper")
            subset = f"{job.source}:{lang}:thresholds"
            rows_of_studies += study_rows.build_rows("compression", job.day, subset, setting, numbers)
    return study_rows.build_frame(rows_of_studies)


def replace_study(study: str, rows: pl.DataFrame, day: str, run_id: str = "cli", subsets: str = "") -> int:
    """Replace the rows of a study and day, by whatever model, whose subset matches a pattern; by default all."""
    return study_rows.replace_study(study, rows, day, run_id, replaced=pl.col("subset").str.contains(subsets))


def publish_measures(source: str, day: str, run_id: str = "cli") -> int:
    """Replace what `measure` gave of a data set in `studies`; return how many rows there are."""
    return replace_study("compression", measure(source, day), day, run_id, MEASURES_SUBSET.format(source))


def publish_thresholds(rows: pl.DataFrame, source: str, day: str, run_id: str = "cli") -> int:
    """Replace what `try_thresholds` gave of a data set in `studies`; return how many rows there are."""
    return replace_study("compression", rows, day, run_id, THRESHOLDS_SUBSET.format(source))


def load_measures(source: str, day: str) -> pl.DataFrame:
    """Load what `publish_measures` wrote: metric, value, low, high, by, lang (or such as `en:common`), n."""
    partition = (pl.col("study") == "compression") & (pl.col("day") == parse_day(day))
    rows = warehouse.scan("studies", partition).collect()
    rows = rows.filter(pl.col("subset").str.contains(MEASURES_SUBSET.format(source)))
    setting = pl.col("setting").str.json_decode(pl.Struct({"system": pl.String, "against": pl.String}))
    rows = rows.with_columns(setting).unnest("setting").filter(pl.col("against").is_null())
    lang = pl.col("subset").str.strip_prefix(f"{source}:")
    rows = rows.select("metric", "value", "low", "high", by="system", lang=lang, n="row_count")
    return rows.sort("lang", "by", "metric")
