"""NDD in the tables: data sets compressed by every system, and what the distance is worth (NDD, sections 3 to 5)."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples import compression as examples
from pipeline.examples import edits, similar
from pipeline.metrics import compression as measures
from pipeline.metrics import pruning, similarity
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks import compress, compression, masked_lm, studies
from pipeline.tasks.studies import framed, row
from pipeline.text import tagging, trees

if TYPE_CHECKING:
    from pipeline.metrics.ndd.model import Floats, Sentence
    from pipeline.score.compress.search import Search

log = logging.getLogger(__name__)

Done = Callable[[int], None]

SAMPLE, GOLD = "sample", "gold"
TESTS = ("similarity", "pruning", "predicates")  # studies that `study_rows` makes
BINS = 10  # parts of a sentence in figure 6
NAME = r"[a-z][a-z0-9_]{0,29}"  # of a data set: that of its labelling project has some letters before it
MEASURED, TRIED = r"^{}:[a-z]{{2,3}}$", r"^{}:[a-z]{{2,3}}:thresholds$"  # subsets of a data set's numbers, by language
TREES = 200  # sentences of a treebank that are gone through
SENTENCES = 500  # that are edited for the tests
THRESHOLDS = (1.0, 2.0)  # of table 7
GRID = ((4.0, 5), (2.0, 5), (1.0, 5), (0.5, 5), (0.25, 5), (1.0, 2), (1.0, 1))  # N_max and L_max of table 6
DECIMALS = 6


def items(data: str | None = None, form: str = "own", split: str | None = None) -> pl.DataFrame:
    """Sentences with gold compressions of a file, the sample's without one.

    The masks of Colloquial-SC stand as what people say instead (NDD-28).
    """
    read, name = compression.read(Path(data) if data else sample.COMPRESSIONS, form, split), data or "the sample"
    if read.dropped.height:
        log.warning("%s: left out %s", name, dict(read.dropped["reason"].value_counts().sort("reason").iter_rows()))
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

    search = None if ratio is None else Search(ratio=ratio)
    rows = items(data, form, split)
    found = compress_items(rows, system, source, day, ref, search, syntax=Path(syntax) if syntax else None)
    return warehouse.stage("compressions", found)


def publish(staged: Sequence[Staged], source: str, day: str, run_id: str = "cli") -> int:
    """Put a data set's compressions of a day in place, of all staged systems at once; how many rows.

    Those of other systems stay, where their sentences are still those of the data set; parts of a data set want names
    of their own.
    """
    if not staged:
        raise Missing(f"{source}: nothing was compressed")
    rows = warehouse.staged_rows("compressions", staged).collect()
    known = dict(rows.select("item_id", "words").iter_rows())

    def with_others(present: pl.LazyFrame) -> pl.DataFrame:
        others = present.filter(~pl.col("system").is_in(rows["system"].unique().to_list())).collect()
        stays = [known.get(name) == words for name, words in others.select("item_id", "words").iter_rows()]
        if not all(stays):
            log.warning("%s: %d compressions of other sentences go", source, len(stays) - sum(stays))
        return pl.concat([others.filter(pl.Series(stays, dtype=pl.Boolean)).select(rows.columns), rows])

    return warehouse.replace("compressions", warehouse.slice_of(source=source, day=day), with_others, run_id)


def measured(source: str, day: str) -> pl.DataFrame:
    """What the compressions of a data set are worth: tables 3 and 5, significance, and figure 6.

    Systems are measured on the sentences that they compressed, by language; each is held against the best of the
    baselines and of PPL Deleter in F1.

    Returns:
        Rows of `studies`.
    """
    where = warehouse.slice_of(source=source, day=day)
    every = (
        warehouse.scan("compressions").filter(**{**where, "day": parse_day(day)}).sort("item_id", "system").collect()
    )
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
            found += _rows_of("compression", day, subset, {"system": system}, numbers)
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
    return _rows_of("compression", day, subset, {"system": system}, counted)


def _significance(known: Mapping[str, pl.DataFrame], subset: str, day: str) -> list[dict[str, Any]]:
    """Each system against the best of the others in F1, on the sentences that both compressed (NDD-40)."""
    rivals = [name for name in known if name in {"head", "tail", "random", "ppl_deleter"}]  # copying is no compression
    found: list[dict[str, Any]] = []
    for name, mine in known.items():
        others = {rival: _beside(mine, known[rival]) for rival in rivals if rival != name}
        if name in measures.BASELINES or not any(map(len, others.values())):
            continue
        best = max(others, key=lambda rival: _f1(others[rival]))
        both = others[best]
        told = measures.paired(both["said"], both["beside"], both)
        for each in told.filter(pl.col("metric").is_in(["f1_macro", "rouge_l"])).to_dicts():
            values = {"difference": each["difference"], "p": each["p"]}
            for kind, value in values.items():
                ends = {end: each[end] for end in ("low", "high")} if kind == "difference" else {}
                number = {"metric": f"{each['metric']}_{kind}", "value": value, "n": each["n"], **ends}
                found += _rows_of("compression", day, subset, {"system": name, "against": best}, [number])
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
            numbers = measures.evaluate([each.kept.tolist() for each in answers], part)
            about = {"system": "fast_ndd", "threshold": threshold, "longest": longest}
            found += _rows_of("compression", day, f"{source}:{lang}:thresholds", about, numbers)
    return framed(found)


def distances(
    ones: "Sequence[Sentence]", others: "Sequence[Sentence]", opened: masked_lm.Opened
) -> "dict[str, Floats]":
    """NDD and what it is compared with, of pairs: all are distances but `cosine`."""
    from pipeline.metrics.ndd import comparisons, distance

    found = {
        "ndd": distance.distances(opened.model, ones, others),
        "ndd_kl": distance.distances(opened.model, ones, others, divergence="kl"),
        "perplexity": np.abs(comparisons.perplexity_change(opened.model, ones, others)),
    }
    if not masked_lm.is_counts(opened):
        found["cosine"] = comparisons.cosine(opened.model, ones, others)  # type: ignore[arg-type]
        found["ensemble"] = similarity.ensemble(pl.Series(found["ndd"]), pl.Series(found["cosine"])).to_numpy()
    return found


def pairs(data: str | None = None, syntax: str | None = None, limit: int = SENTENCES) -> pl.DataFrame:
    """Pairs of all tests: test, pair_id, sentence_id, one, other (words), is_positive, similarity, overlap.

    Those of test `supervised` are the graded pairs in English; the others are made of their sentences, as in section 3,
    with words of all of them. Parts of speech and lemmas are stanza's where its models are, else of the tagger that
    learns from the treebank, else WordNet's counts. How many sentences gave no pair is logged with the reasons.

    Args:
        data: graded pairs; the sample's without.
        syntax: a treebank to learn tagging from.
        limit: sentences that are edited.
    """
    read = similar.read(Path(data) if data else sample.SIMILAR)
    graded = similar.with_overlap(read.rows).filter(pl.col("lang") == "en")
    if others := read.rows.height - graded.height + read.dropped.height:
        log.info("%d pairs are without words or not in English, and are left out", others)
    texts = pl.concat([graded["one"], graded["other"]]).unique(maintain_order=True)
    tag = tagging.tagger(settings.resources() / "stanza", Path(syntax) if syntax else None, settings.scratch("tagging"))
    said = [
        edits.from_tokens(f"{number}.{part}", tokens)
        for number, text in enumerate(texts) for part, tokens in enumerate(tag.analyse(text))
    ]  # fmt: skip
    edited, columns = {each.sentence_id for each in said[:limit]}, ["test", "pair_id", "sentence_id", "one", "other"]
    made = []
    for test in edits.TESTS:
        found = edits.generate(said, test)
        reasons = dict(found.dropped["reason"].value_counts().iter_rows())
        log.info("%s: %d sentences, without a pair %s", test, len(said), reasons)
        made.append(found.rows.filter(pl.col("sentence_id").is_in(edited)).select(*columns, "is_positive"))
    supervised = graded.select(
        "pair_id", "similarity", "overlap", one="one_words", other="other_words", test=pl.lit("supervised"),
        sentence_id="pair_id",
    )  # fmt: skip
    return pl.concat([*made, supervised], how="diagonal")


def similarities(rows: pl.DataFrame, day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 1 and figures 3, 7 and 8 (NDD-10 to 13, 38): rows of `studies`."""
    opened = masked_lm.opened(ref, "en", day)
    found: list[dict[str, Any]] = []
    ones, others = rows["one"].to_list(), rows["other"].to_list()
    told = rows.hstack(pl.DataFrame(distances(ones, others, opened)))
    directions = {name: 1 if name == "cosine" else -1 for name in told.columns if name not in rows.columns}
    for (test,), part in told.partition_by("test", as_dict=True, maintain_order=True).items():
        about = {"test": test, "model": opened.model.signature}
        if test == "supervised":
            near = part.filter(pl.col("overlap") >= similar.OVERLAP)
            found += _correlated(similarity.correlations(near, directions), day, str(test), about)
            curve = similarity.by_overlap(part, directions)
            for (subset,), some in curve.partition_by("subset", as_dict=True, maintain_order=True).items():
                found += _correlated(some, day, f"overlap{subset}", about)
            continue
        numbers = similarity.correlations(part, directions, "is_positive", group="sentence_id")
        found += _correlated(numbers, day, str(test), about)
        for each in similarity.separation(part, directions).to_dicts():
            number = {**each, "metric": "paired_accuracy", "value": each["share"]}
            found += _rows_of("similarity", day, str(test), {**about, "measure": each["measure"]}, [number])
        for name in directions:
            for each in similarity.distributions(part, name).to_dicts():
                subset = f"{test}:{'positive' if each['is_positive'] else 'negative'}"
                number = {**each, "metric": f"q{each['quantile']:03d}"}
                found += _rows_of("similarity", day, subset, {**about, "measure": name}, [number])
    return framed(found)


def _correlated(numbers: pl.DataFrame, day: str, subset: str, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for each in numbers.to_dicts():
        told = [
            {"metric": kind, "value": each[kind], "n": each["n"],
             "low": each[f"{kind}_low"], "high": each[f"{kind}_high"]}
            for kind in ("pearson", "spearman") if each[kind] is not None
        ]  # fmt: skip
        found += _rows_of("similarity", day, subset, {**about, "measure": each["measure"]}, told)
    return found


def treebank(syntax: str | None = None, limit: int = TREES) -> list[trees.Tree]:
    """The first sentences of a treebank that have from 2 to 50 words; the sample's without a file."""
    found = [tree for tree in trees.read(Path(syntax) if syntax else sample.TREES) if 2 <= len(tree.words) <= 50]
    if not found:
        raise BadInput(f"{syntax}: no sentence of 2 to 50 words")
    return found[:limit]


def prunings(some: Sequence[trees.Tree], day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 7: what NDD, PPL Deleter and chance drop of a treebank's sentences, without its trees (NDD-34).

    PPL Deleter keeps as many words as NDD does under each threshold, since the same number means something else to it;
    chance drops as many spans of the same lengths. A span is a subtree in either reading of `metrics.pruning`, which is
    the `subset`: only `several` can give the paper's shares by chance.
    """
    from pipeline.score.compress.search import LONGEST, Search

    opened = masked_lm.opened(ref, "en", day)
    words, heads = [tree.words for tree in some], [tree.heads for tree in some]
    found: list[dict[str, Any]] = []
    for threshold in THRESHOLDS:
        kept = None
        for system in ("ndd", "ppl_deleter"):
            search = Search(threshold=threshold, longest=LONGEST, ratio=kept)
            answers = compress.compressed(words, system, opened, search)
            kept = round(sum(int(each.kept.sum()) for each in answers) / sum(map(len, words)), DECIMALS)
            spans = [pruning.dropped_spans(each.rounds.tolist()) for each in answers]
            beside = pruning.random_like([*map(len, words)], spans)
            about = {"threshold": threshold, "ratio": kept, "model": opened.model.signature}
            for name, dropped in ((system, spans), (f"random_like_{system}", beside)):
                for reading in get_args(pruning.Subtree):
                    numbers = pruning.evaluate(heads, dropped, subtree=reading)
                    found += _rows_of("pruning", day, reading, {"system": name, **about}, numbers)
    return framed(found)


def predicates(some: Sequence[trees.Tree], day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 8 with verbs in place of predicates (NDD-35): NDD of three edits and their ensemble, and perplexity."""
    from pipeline.metrics.ndd import predicates as detection

    opened = masked_lm.opened(ref, "en", day)
    kept = detection.selected([[upos == "VERB" for upos in tree.upos] for tree in some]).kept.tolist()
    words = [some[at].words for at in kept]
    is_verb = [[upos == "VERB" for upos in some[at].upos] for at in kept]
    mask = getattr(opened.model, "mask_word", detection.MASK)
    kinds: tuple[detection.Edit, ...] = get_args(detection.Edit)
    by_ndd = {edit: detection.scores(opened.model, words, edit, mask_word=mask) for edit in kinds}
    every = {("ndd", str(edit)): values for edit, values in by_ndd.items()}
    every["ndd", "ensemble"] = detection.ensemble(list(by_ndd.values()))
    every |= {
        ("perplexity", str(edit)): detection.perplexity_scores(opened.model, words, edit, mask_word=mask)
        for edit in kinds if edit != "stop_word"
    }  # fmt: skip
    every["chance", "none"] = [np.zeros(len(each)) for each in words]
    found: list[dict[str, Any]] = []
    for (measure, edit), scores in every.items():
        about = {"measure": measure, "edit": edit, "model": opened.model.signature}
        found += _rows_of("predicates", day, "verbs", about, detection.evaluate(scores, is_verb))
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


def study_rows(
    study: str, day: str, ref: str | None = None, pairs_file: str | None = None, syntax: str | None = None,
    limit: int = TREES,
) -> pl.DataFrame:  # fmt: skip
    """Rows of one of the studies `similarity`, `pruning` and `predicates`."""
    if study == "similarity":
        return similarities(pairs(pairs_file, syntax, limit), day, ref)
    some = treebank(syntax, limit)
    return prunings(some, day, ref) if study == "pruning" else predicates(some, day, ref)


def tests_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `study_rows` as people read them: neither quantiles nor curves, of subtrees the printed reading."""
    about = pl.Struct({"measure": pl.String, "edit": pl.String, "system": pl.String, "threshold": pl.Float64})
    told = rows.filter(~pl.col("metric").str.contains(r"^q\d{3}$"), pl.col("subset") != "several")
    told = told.filter(pl.col("metric") != "spearman", ~pl.col("subset").str.starts_with("overlap"))
    told = told.with_columns(pl.col("setting").str.json_decode(about)).unnest("setting")
    wide = told.select("subset", *about.to_schema(), "metric", "value", "low", "high", n="row_count")
    empty_columns = [name for name in about.to_schema() if not wide[name].count()]
    return wide.drop(empty_columns).with_columns(pl.col("value", "low", "high").round(3))


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


def _rows_of(
    study: str, day: str, subset: str, about: Mapping[str, Any], numbers: pl.DataFrame | Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of `studies` of numbers that have metric, value, n and perhaps low and high."""
    rows = numbers.to_dicts() if isinstance(numbers, pl.DataFrame) else numbers
    return [
        row(study, day, each["metric"], subset, each["value"], each["n"], setting=dict(about), low=each.get("low"),
            high=each.get("high"))
        for each in rows
    ]  # fmt: skip
