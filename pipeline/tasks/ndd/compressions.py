"""Data sets compressed by every system, in the tables, and what the compressions are worth (NDD, section 4)."""

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
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.ndd import datasets, masked_lm
from pipeline.tasks.ndd import systems as compress
from pipeline.tasks.record import runs
from pipeline.tasks.studies import rows as studies
from pipeline.tasks.studies.rows import framed, rows_of

if TYPE_CHECKING:
    from pipeline.score.compress.search import Search

log = logging.getLogger(__name__)

Done = Callable[[int], None]

SAMPLE, GOLD = "sample", "gold"
BINS = 10  # parts of a sentence in figure 6
NAME = r"[a-z][a-z0-9_]{0,29}"  # of a data set: that of its labelling project has some letters before it
MEASURED, TRIED = r"^{}:[a-z]{{2,3}}$", r"^{}:[a-z]{{2,3}}:thresholds$"  # subsets of a data set's numbers, by language
GRID = ((4.0, 5), (2.0, 5), (1.0, 5), (0.5, 5), (0.25, 5), (1.0, 2), (1.0, 1))  # N_max and L_max of table 6
DECIMALS = 6


def items(data: str | None = None, form: str = "own", split: str | None = None) -> pl.DataFrame:
    """Sentences with gold compressions of a file, the sample's without one.

    The masks of Colloquial-SC stand as what people say instead (NDD-28).
    """
    read, name = datasets.read(Path(data) if data else sample.COMPRESSIONS, form, split), data or "the sample"
    runs.report_dropped("read", read.dropped, name)
    found = read.rows
    if not found.height:
        raise Missing(f"{name}: no sentences to compress")
    if len(strange := found.filter(~pl.col("lang").fill_null("und").str.contains("^[a-z]{2,3}$"))):
        told = strange.select("item_id", "lang").row(0)
        raise BadInput(
            f"{name}, {told[0]}: field 'lang' should be two or three letters such as en, found {told[1]!r:.40}"
        )
    spoken = pl.Series([examples.expressed(words) for words in found["words"]], dtype=pl.List(pl.String))
    return found.with_columns(words=spoken) if form == "colloquial" else found


def systems(
    wanted: Sequence[str], ref: str | None = None, source: str = SAMPLE, *, is_asked: bool = False
) -> list[str]:  # fmt: skip
    """Systems to run, gold and the baselines among them; those that the model cannot do are left out with a word.

    Raises:
        BadInput: no such system, or a name of the data set that the tables cannot take; or a system that was asked for
            by name cannot be run.
    """
    if not re.fullmatch(NAME, source):
        raise BadInput(f"source: expected up to 30 small letters, digits and _, found {source!r:.60}")
    wanted = list(dict.fromkeys(wanted))
    able = [name for name in wanted if compress.known(name).scorer not in compress.VECTORS or not _all_counts(ref)]
    if left_out := [name for name in wanted if name not in able]:
        told = f"{', '.join(left_out)}: compare the states of a transformer, which a model of counts has not"
        if is_asked:
            raise BadInput(f"{told}; give --model")
        log.info("left out %s", told)
    return [GOLD, *measures.BASELINES, *able]


def _all_counts(ref: str | None) -> bool:
    return all(masked_lm.is_counts(masked_lm.opened(ref, lang)) for lang in masked_lm.LANGS)


def compress_items(
    rows: pl.DataFrame, system: str, source: str, day: str, ref: str | None = None, search: "Search | None" = None,
    numbers: compress.Numbers | None = None, syntax: Path | None = None, done: Done = lambda _: None,
) -> pl.DataFrame:  # fmt: skip
    """Rows of `compressions` of a data set by one system.

    With the search's ratio as it is by default, systems keep as many words as people did of each language's sentences,
    so that they can be compared. Sentences that have no tree are left out where a system needs one.

    Args:
        rows: item_id, words, kept, lang.
        system: one of `compress.SYSTEMS`, a baseline, or `gold`.
        source: name of the data set.
        day: of the run.
        ref: the model.
        search: numbers of the search; by default at the gold ratio.
        numbers: of the distance.
        syntax: CoNLL-U file with trees of the sentences; by default stanza's parser, for the sample its own file.
        done: told how many sentences are finished.
    """
    from pipeline.score.compress.search import Search

    found = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        if system == GOLD or system in measures.BASELINES:
            kept = part["kept"].to_list() if system == GOLD else measures.BASELINES[system](part)
            found.append(
                _rows(part, [[int(not stays) for stays in each] for each in kept], system, source, day, system)
            )
            continue
        opened = masked_lm.opened(ref, compress.spoken(str(lang)), day)
        how = compress.known(system)
        if how.scorer in compress.VECTORS and masked_lm.is_counts(opened):
            log.warning("%s: no %s of %d sentences in %s: counts have no states", source, system, len(part), lang)
            continue
        heads, mine = None, part
        if how.has_trees:
            above = _heads(part, str(lang), syntax, source)
            if without := len(part) - sum(each is not None for each in above):
                log.warning("%s: no tree of %d of %d sentences in %s", source, without, len(part), lang)
            if without == len(part):
                continue
            mine = part.filter(pl.Series([each is not None for each in above]))
            heads = [each for each in above if each is not None]
        kept_ratio = sum(map(sum, mine["kept"])) / sum(map(len, mine["words"]))
        wanted = search or Search(ratio=round(kept_ratio, 4))
        words = mine["words"].to_list()
        answers = compress.compressed(words, system, opened, wanted, numbers, heads, done)
        signed = compress.signature(system, opened, wanted, numbers)
        found.append(_rows(mine, [each.rounds.tolist() for each in answers], system, source, day, signed))
    if syntax and not found and compress.known(system).has_trees:
        raise BadInput(f"{syntax}: no tree of any of the {len(rows)} sentences; are its words the same?")
    return pl.concat(found) if found else empty("compressions")


def _heads(rows: pl.DataFrame, lang: str, syntax: Path | None, source: str) -> list[tuple[int, ...] | None]:
    """Heads of each sentence; None where the file has none, or there is neither a file nor a parser."""
    file = syntax or (sample.TREES if source == SAMPLE and lang == "en" else None)
    try:
        found = compress.heads(rows["words"].to_list(), compress.spoken(lang), file)
    except Missing as why:
        log.warning("%s", why)
        return [None] * len(rows)
    return found


def _rows(
    part: pl.DataFrame, rounds: Sequence[Sequence[int]], system: str, source: str, day: str, signed: str
) -> pl.DataFrame:
    stays = pl.col("rounds").list.count_matches(0) / pl.col("rounds").list.len()
    return part.with_columns(
        rounds=pl.Series(rounds, dtype=pl.List(pl.Int64)), system=pl.lit(system), source=pl.lit(source),
        day=pl.lit(parse_day(day)), signature=pl.lit(signed), lang=pl.col("lang").fill_null("und"),
    ).with_columns(ratio=stays.round(DECIMALS)).select(TABLES["compressions"].schema.column_names())  # fmt: skip


def stage(
    system: str, source: str, day: str, data: str | None = None, form: str = "own", split: str | None = None,
    ref: str | None = None, syntax: str | None = None, ratio: float | None = None,
) -> Staged:  # fmt: skip
    """Compress a data set by one system and stage the rows."""
    from pipeline.score.compress.search import Search

    began, search = runs.start(), None if ratio is None else Search(ratio=ratio)
    rows = items(data, form, split)
    found = compress_items(rows, system, source, day, ref, search, syntax=Path(syntax) if syntax else None)
    return runs.time_shard(began, warehouse.stage("compressions", found))


def publish(staged: Sequence[Staged], source: str, day: str, run_id: str = "cli") -> int:
    """Put a data set's compressions of a day in place, of all staged systems at once; how many rows.

    Those of other systems stay, where their sentences are still those of the data set; parts of a data set want names
    of their own.
    """
    if not staged:
        raise Missing(f"{source}: nothing was compressed")
    began = runs.start(staged)
    rows = warehouse.staged_rows("compressions", staged).collect()
    known = dict(rows.select("item_id", "words").iter_rows())

    def with_others(present: pl.LazyFrame) -> pl.DataFrame:
        others = present.filter(~pl.col("system").is_in(rows["system"].unique().to_list())).collect()
        stays = [known.get(name) == words for name, words in others.select("item_id", "words").iter_rows()]
        if not all(stays):
            log.warning("%s: %d compressions of other sentences go", source, len(stays) - sum(stays))
        return pl.concat([others.filter(pl.Series(stays, dtype=pl.Boolean)).select(rows.columns), rows])

    count = warehouse.replace("compressions", warehouse.slice_of(source=source, day=day), with_others, run_id)
    config = {"systems": rows["system"].unique().sort().to_list()}
    runs.record_step(source, day, "compress", "compress", rows.height, None, config, run_id, began)
    return count


def measured(source: str, day: str) -> pl.DataFrame:
    """What the compressions of a data set are worth: tables 3 and 5, significance, and figure 6.

    Systems are measured on the sentences that they compressed, by language; each is held against the best of the
    baselines and of PPL Deleter in F1.

    Returns:
        Rows of `studies`.
    """
    where = (pl.col("source") == source) & (pl.col("day") == parse_day(day))
    every = warehouse.scan("compressions", where).sort("item_id", "system").collect()
    found: list[dict[str, Any]] = []
    for (lang,), part in every.partition_by("lang", as_dict=True, maintain_order=True).items():
        gold = part.filter(pl.col("system") == GOLD).select("item_id", "words", "lang", kept=_kept())
        subset, known = f"{source}:{lang}", {}
        for (system,), mine in part.partition_by("system", as_dict=True, maintain_order=True).items():
            told = mine.select("item_id", said=_kept()).join(gold, on="item_id", maintain_order="left")
            found += _positions(told, str(system), subset, day)
            if system == GOLD:
                continue
            numbers = measures.evaluate(told["said"], told)
            found += rows_of("compression", day, subset, {"system": system}, numbers)
            known[str(system)] = told
        found += _significance(known, subset, day)
    return framed(found)


def _kept() -> pl.Expr:
    return pl.col("rounds").list.eval(pl.element() == 0)


def _positions(told: pl.DataFrame, system: str, subset: str, day: str) -> list[dict[str, Any]]:
    """How many words stay in each tenth of a sentence (figure 6; NDD-37)."""
    lengths = [len(stays) for stays in told["said"]]
    if not any(lengths):
        return []
    at = np.concatenate([np.arange(length) * BINS // length for length in lengths])
    values = np.concatenate([stays.to_numpy() for stays in told["said"]])
    counted = [
        {"metric": f"kept_{number}", "value": values[at == number].mean(), "n": int((at == number).sum())}
        for number in np.unique(at).tolist()
    ]
    return rows_of("compression", day, subset, {"system": system}, counted)


def _significance(known: Mapping[str, pl.DataFrame], subset: str, day: str) -> list[dict[str, Any]]:
    """Each system against the best of the others in F1, on the sentences that both compressed (NDD-40)."""
    rivals = [name for name in known if name in {"head", "tail", "random", "ppl_deleter"}]  # copying is no compression
    found: list[dict[str, Any]] = []
    for name, mine in known.items():
        every = {rival: _beside(mine, known[rival]) for rival in rivals if rival != name}
        others = {rival: both for rival, both in every.items() if len(both)}
        if name in measures.BASELINES or not others:
            continue
        best = max(others, key=lambda rival: _f1(others[rival]))
        both = others[best]
        told = measures.compare(both["said"], both["beside"], both)
        for each in told.filter(pl.col("metric").is_in(["f1_macro", "rouge_l"])).to_dicts():
            values = {"difference": each["difference"], "p": each["p"]}
            for kind, value in values.items():
                ends = {end: each[end] for end in ("low", "high")} if kind == "difference" else {}
                number = {"metric": f"{each['metric']}_{kind}", "value": value, "n": each["n"], **ends}
                found += rows_of("compression", day, subset, {"system": name, "against": best}, [number])
    return found


def _beside(mine: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return mine.join(other.select("item_id", beside="said"), on="item_id", maintain_order="left")


def _f1(both: pl.DataFrame) -> float:
    found = measures.evaluate(both["beside"], both, draws=1)
    return float(found.filter(pl.col("metric") == "f1_macro")["value"].item())


def ratios(
    rows: pl.DataFrame, source: str, day: str, ref: str | None = None, done: Done = lambda _: None
) -> pl.DataFrame:
    """Table 6: Fast NDD under the paper's thresholds and longest spans, without a ratio (NDD-33)."""
    from pipeline.score.compress.search import Search

    found = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        opened = masked_lm.opened(ref, compress.spoken(str(lang)), day)
        for threshold, longest in GRID:
            search = Search(threshold=threshold, longest=longest)
            answers = compress.compressed(part["words"].to_list(), "fast_ndd", opened, search, done=done)
            numbers = measures.evaluate([each.is_kept.tolist() for each in answers], part)
            about = {"system": "fast_ndd", "threshold": threshold, "longest": longest}
            found += rows_of("compression", day, f"{source}:{lang}:thresholds", about, numbers)
    return framed(found)


def put(study: str, rows: pl.DataFrame, day: str, run_id: str = "cli", subsets: str = "") -> int:
    """Put rows of a study in place of all of the day, by whatever model, whose subset matches a pattern.

    Args:
        study: its name.
        rows: of `studies`; none take away what was there.
        day: of the run.
        run_id: of Airflow.
        subsets: a regular expression; of compressions `MEASURED` or `TRIED` with the data set's name, else those of
            the rows alone.
    """
    if study == "compression" and not subsets:
        subsets = f"^({'|'.join(map(re.escape, rows['subset'].unique()))})$"
    return studies.put(study, rows, day, run_id, replaced=pl.col("subset").str.contains(subsets))


def overview(source: str, day: str) -> pl.DataFrame:
    """What `measured` put into `studies` of a data set: by, lang, metric, value, low, high, n."""
    where = (pl.col("study") == "compression") & (pl.col("day") == parse_day(day))
    rows = warehouse.scan("studies", where).collect().filter(pl.col("subset").str.contains(MEASURED.format(source)))
    about = pl.Struct({"system": pl.String, "against": pl.String})
    told = rows.with_columns(pl.col("setting").str.json_decode(about)).unnest("setting")
    lang = pl.col("subset").str.split(":").list.last()
    found = told.filter(pl.col("against").is_null()).select(
        "metric", "value", "low", "high", by="system", lang=lang, n="row_count"
    )
    return found.sort("lang", "by", "metric")
