"""Wrong options that give nothing away to who does not read the passage (REC-16, REC-32, errata E15).

By the paper's rule (`choices.choose`) the wrong options are words that readers like to name, most of them often, and
the right one is told by how often it is right elsewhere. Here wrong options are drawn so that each of five might as
well be the gold word of its item. Words are gold words of other items, of one shape; and the number of times a word is
drawn is that of gold words *as seen from the item*, with the item itself left out.

That is the trap: if each word were wrong exactly four times as often as it is right, then from outside of an item its
gold word is right once less than its count says, and of words that are right once nothing is left: an option that is
never right elsewhere would be the right one. The way out is to think of words as having rates: a word of rate r is
right about r times and wrong about 4 r times, neither depending on the other (a Poisson mixture). Rates are estimated
from how many words are right once, twice and so on, and drawn for each word given its count. Some words then are never
right, though offered: they are words of items that are left out, and if those are too few (Chao, 1984: at least
f1 f1 / 2 f2 words, f1 of them right once and f2 twice) further items go, whose words are right only there.

Within an item, words are drawn by the readers' ranks, times weights that are fitted, by iterative proportional fitting,
until the drawn words agree with the gold words not only in rates, but also in how well they go with the question: with
the words beside the placeholder, by form and by ending, and by vectors with all of it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.choices import SEED, Chosen, placed
from pipeline.examples.recam.items import DROPPED, OPTIONS, PLACEHOLDER, SCHEMA, normalised
from pipeline.examples.recam.targets import SIMILAR, Vectors
from pipeline.text import wordnet

WRONG = OPTIONS - 1
EXTRA = 120  # words beside the readers', by how often they are gold: they name few of the rare ones
LEAST = 2 * WRONG  # words an item may choose from; of fewer the weights cannot be fitted
SHARE = 1 / (OPTIONS + 1)  # of the gold words of a shape that may be one word: it is wrong four times as often
UNSEEN = 1.3  # words never right as a multiple of what they are at least: rates of rare words differ, too
RANK = 10.0  # the words of this rank and of the first stand as 1 to 2
TOLD = 0.3  # probability of a gold word, told by the question, from which an item is left out
_SOME = 1e-4  # a fit that is not nothing
_FAR = 4.0  # deviations to which fits are cut
ROUNDS = 30  # of fitting
SPARE = 3 * WRONG  # words drawn for an item, as some stand too near to each other
ROWS = 512  # items whose passages are held at a time
_SMOOTH = 5.0  # times that a neighbour is taken to have been seen with all words alike
_SUFFIXES = ("ing", "ed", "ly", "est", "er", "s")
_TOKEN = re.compile(r"\w+")
_BESIDE = re.compile(r"\w+|[^\w\s]")

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]

REASONS = (
    None, "not_drawn", "gold", "form_of_gold", "synonym_of_gold", "similar_to_gold", "in_question", "in_passage",
    "related_in_passage", "other_article", "other_shape", "no_gold_word",
)  # fmt: skip
"""What became of a candidate: null for those taken. other_article: it goes with an, the gold word with a."""
_CODE = {reason: code for code, reason in enumerate(REASONS)}


def choose_balanced(
    items: pl.DataFrame, candidates: pl.DataFrame, vectors: Vectors | None = None,
    pools: Callable[[str], wordnet.Pools] = wordnet.pools, most: float = SIMILAR, seed: int = SEED,
) -> Chosen:  # fmt: skip
    """Four wrong options for each item, such that no baseline of `metrics.recam.audit` finds the right one.

    Options are in small letters. Words are compared by all their base forms: a wrong option is not in the passage or
    the question in any form, nor has it a synonym or antonym of one word there, as gold words have none (section 3.4);
    it is of the gold word's shape: the same `upos` and `tag`, where items have these, the same ending of inflection,
    both base forms or neither; no two options are forms, synonyms or neighbours of each other.

    Items left out, with their reason:

    - `same_article`: another item of the article is kept; two items of one summary name each other's gold word.
    - `too_few_choices`: fewer than `LEAST` words are left, or no four of those drawn stand apart.
    - `too_frequent`: its gold word is that of more than `SHARE` of the items of its shape.
    - `never_right`: its gold word is right nowhere else, and is needed as a word that is offered but never right.
    - `told_by_question`: a model of the question alone gives its gold word more than `TOLD`, so that no passage is
      needed, whatever the other options are.

    Args:
        items: item_id, article, question, answer, and upos, tag where they are known. Of a small set (some hundreds of
            a shape) words and rates are too few for the numbers to come out even.
        candidates: item_id, word, rank (from 1): the best words of each reader; a word may come from several. They need
            not be many, since `EXTRA` others are added, but 50 of each reader leave more of them to choose from.
        vectors: of words; without, nothing is too near, and questions are compared by neighbours alone.
        pools: synonyms and antonyms of a lemma.
        most: cosine from which, exclusively, a word is too near to another.
        seed: of all draws. An item's depend on its id and the set, not on the order of rows.

    Returns:
        As `choices.choose`; candidates are those of readers with their reason, but for items that are left
        out for their article or gold word, and the words taken beside them, whose
        token_count is 0 and whose best_rank is null.

    Raises:
        BadInput: two items have the same id.
    """
    every = _every(items, seed)
    every, lexicon = _lexicon(every, pools)
    relations = _relations(lexicon, vectors, most)
    is_first = every.select((pl.col("draw") == pl.col("draw").min()).over("passage")).to_series()
    dropped = [_out(every.filter(~is_first), "same_article")]
    kept = every.filter(is_first)
    # first for all, to see which items have too few words or need no passage, then for those that are left
    for is_last in (False, True):
        reasons = _thinned(kept, lexicon)
        dropped += _sorted_out(kept, reasons)
        kept = kept.filter(pl.Series(reasons == ""))
        named, odd = _named(kept, candidates, lexicon)
        pool = _pool(kept, named, lexicon, relations, _fits(kept, lexicon, vectors), seed)
        draws = pool.where(pool.code == _CODE["not_drawn"])
        is_in = np.bincount(draws.item, minlength=kept.height) >= LEAST
        draws = draws.where(is_in[draws.item])
        gold = kept["type"].to_numpy()
        share, told = _shares(draws, is_in, gold, lexicon, _rates(gold[is_in], lexicon, seed), seed)
        reasons = np.where(is_in, "", "too_few_choices").astype(object)
        if not is_last:
            reasons[told > TOLD] = "told_by_question"
            dropped += _sorted_out(kept, reasons)
            gone = pl.Series(reasons != "")
            nothing = np.full((kept.height, WRONG), -1, np.int32)
            before = _told(pool, kept, lexicon, nothing, odd).join(kept.filter(gone), on="item_id", how="semi")
            kept = kept.filter(~gone)
    taken, is_full = _drawn(draws, share, kept["draw"].to_numpy(), lexicon, relations, seed)
    dropped.append(_out(kept.filter(pl.Series(~is_full)), "too_few_choices"))
    words = lexicon.words.gather(lexicon.word[taken[is_full].ravel()]).to_list()
    rows = kept.select("item_id", "article", "question", "answer").filter(pl.Series(is_full))
    wrong = pl.Series("wrong", [words[i : i + WRONG] for i in range(0, len(words), WRONG)], dtype=pl.List(pl.String))
    made = [placed(row, seed) for row in rows.with_columns(wrong).iter_rows(named=True)]
    became = pl.concat([before, _told(pool, kept, lexicon, np.where(is_full[:, None], taken, -1), odd)])
    return Chosen(pl.DataFrame(made, schema=SCHEMA), pl.concat(dropped).sort("row_key"), _in_order(became))


def _every(items: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Items by their ids, with a number of their own that draws them: nothing depends on the order they came in."""
    found = items.sort("item_id").with_columns(
        pl.col("answer").str.to_lowercase(),
        normalised().alias("passage"),
        pl.Series("draw", [_number(f"{seed} {name}") for name in items["item_id"].sort()], dtype=pl.UInt64),
    )
    if twice := found.filter(pl.col("item_id").is_duplicated())["item_id"].to_list():
        raise BadInput(f"items: field 'item_id' should differ between rows, found {twice[0]!r} more than once")
    return found


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _out(items: pl.DataFrame, reason: str) -> pl.DataFrame:
    return items.select(reason=pl.lit(reason), row_key="item_id").cast(DROPPED)  # type: ignore[arg-type]


def _sorted_out(items: pl.DataFrame, reasons: npt.NDArray[np.object_]) -> list[pl.DataFrame]:
    return [_out(items.filter(pl.Series(reasons == why)), str(why)) for why in sorted({*reasons} - {""})]


class _Lexicon(NamedTuple):
    """The gold words of the set; a type is a word of a shape, as reads of past or present would be two."""

    words: pl.Series  # in alphabetical order
    names: list[frozenset[str]]  # of each word: itself and its base forms
    related: list[frozenset[str]]  # its synonyms and antonyms
    synonyms: list[frozenset[str]]
    word: Ids  # of each type
    shape: Ids  # of each type; types go by shape and word
    types: pl.DataFrame  # type, shape, word
    draw: npt.NDArray[np.uint64]  # of each word


def _lexicon(every: pl.DataFrame, pools: Callable[[str], wordnet.Pools]) -> tuple[pl.DataFrame, _Lexicon]:
    """The items with shape and type, and the gold words."""
    tags = [name for name in ("upos", "tag") if name in every.columns]
    known = every.select("answer", *tags).unique().sort(pl.all())
    poses = known["upos"].to_list() if "upos" in tags else [""] * known.height
    shapes = pl.Series([_shape(word, upos) for word, upos in zip(known["answer"], poses, strict=True)])
    label = pl.concat_str(*(pl.col(name).fill_null("") for name in tags), shapes.alias("form"), separator="\t")
    known = known.with_columns(
        label=known.select(label).to_series() if known.height else pl.Series([], dtype=pl.String)
    )
    types = known.select("label", "answer").unique().sort("label", "answer").with_row_index("type")
    types = types.with_columns(
        shape=pl.col("label").rank("dense").cast(pl.Int32) - 1, type=pl.col("type").cast(pl.Int32)
    )
    found = every.join(known, on=["answer", *tags], how="left", nulls_equal=True, maintain_order="left").join(
        types, on=["label", "answer"], how="left", maintain_order="left"
    )
    words = types["answer"].unique().sort()
    names, related, synonyms = [], [], []
    for word in words:
        forms = {wordnet.lemma(word, upos) for upos in wordnet.POS}
        near = [pools(form) for form in forms | {word}]
        names.append(frozenset(forms | {word}))
        synonyms.append(frozenset(name for pool in near for name in pool.synonyms))
        related.append(synonyms[-1] | frozenset(name for pool in near for name in pool.antonyms))
    place = types["answer"].replace_strict(words, pl.Series(range(len(words)), dtype=pl.Int32), return_dtype=pl.Int32)
    return found, _Lexicon(
        words, names, related, synonyms, place.cast(pl.Int32).to_numpy(), types["shape"].to_numpy(),
        types.select("type", "shape", word="answer"), np.array([_number(word) for word in words], np.uint64),
    )  # fmt: skip


def _shape(word: str, upos: str) -> str:
    """The ending that inflection shows itself by, and if the word is a base form."""
    ending = next((one for one in _SUFFIXES if word.endswith(one) and len(word) > len(one) + 1), "")
    ending = "" if word.endswith(("ss", "us", "is")) else ending
    poses = [upos] if upos in wordnet.POS else list(wordnet.POS)
    is_base = all(wordnet.lemma(word, one) == word for one in poses)
    return f"{ending} {'base' if is_base else 'inflected'}"


def _relations(lexicon: _Lexicon, vectors: Vectors | None, most: float) -> Any:
    """Which words may not stand in one item: a sparse table [words, words] of places in REASONS."""
    from scipy.sparse import csr_array

    count = len(lexicon.words)
    by_name = defaultdict(list)
    for word, names in enumerate(lexicon.names):
        for name in names:
            by_name[name].append(word)

    def keys(lists: Sequence[Iterable[str]]) -> Keys:
        found = {word * count + other for word, names in enumerate(lists) for name in names for other in by_name[name]}
        found |= {key % count * count + key // count for key in found}
        return np.array(sorted(found), np.int64)

    near: list[Keys] = [np.zeros(0, np.int64)]
    if vectors and count:
        table = _unit(vectors(lexicon.words.to_list()))
        for start in range(0, count, ROWS):
            one, other = np.nonzero(table[start : start + ROWS] @ table.T > most)
            near.append((one + start) * count + other)
    lists = {
        "gold": np.arange(count, dtype=np.int64) * (count + 1), "form_of_gold": keys(lexicon.names),
        "synonym_of_gold": keys(lexicon.synonyms), "similar_to_gold": np.concatenate(near),
    }  # fmt: skip
    code = np.concatenate([np.full(len(found), _CODE[reason], np.uint8) for reason, found in lists.items()])
    every, first = np.unique(np.concatenate(list(lists.values())), return_index=True)  # the first reason holds
    return csr_array((code[first], np.divmod(every, max(count, 1))), shape=(count, count))


def _unit(table: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return found.astype(np.float32)


def _is_among(keys: Keys, known: Keys) -> Masks:
    """Which numbers are among sorted ones."""
    if not len(known):
        return np.zeros(keys.shape, np.bool_)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: Masks = known[at] == keys
    return found


class _Pool(NamedTuple):
    """Items, each with the words it may choose from, in the order of item and type: [p] each."""

    item: Ids  # row among the items
    type: Ids
    rank: Ids  # the best that a reader gives it
    times: Ids  # readers that name it
    code: npt.NDArray[np.uint8]  # place in REASONS
    fits: Singles  # how well it goes with the question, in several ways: [p, ways]
    golds: Singles  # and the gold word of each item: [items, ways]

    def where(self, mask: Masks) -> "_Pool":
        item, type_, rank, times = (column[mask] for column in (self.item, self.type, self.rank, self.times))
        return _Pool(item, type_, rank, times, self.code[mask], self.fits[mask], self.golds)


def _named(kept: pl.DataFrame, candidates: pl.DataFrame, lexicon: _Lexicon) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What readers name for the items: item, type, rank, count; and words that are of no type of the item's shape."""
    rows = kept.select("item_id", "shape").with_row_index("item").with_columns(pl.col("item").cast(pl.Int32))
    found = candidates.select("item_id", pl.col("word").str.to_lowercase(), "rank").join(rows, on="item_id")
    found = found.group_by("item", "shape", "word").agg(
        count=pl.len().cast(pl.Int32), rank=pl.col("rank").min().cast(pl.Int32)
    )
    found = found.join(lexicon.types, on=["shape", "word"], how="left")
    odd = found.filter(pl.col("type").is_null()).join(rows.select("item", "item_id"), on="item")
    is_gold = pl.col("word").is_in(lexicon.words.implode())
    odd = odd.select(
        "item_id", "word", token_count=pl.col("count").cast(pl.Int64), best_rank=pl.col("rank").cast(pl.Int64),
        reason=pl.when(is_gold).then(pl.lit("other_shape")).otherwise(pl.lit("no_gold_word")),
    )  # fmt: skip
    return found.filter(pl.col("type").is_not_null()).select("item", "type", "rank", "count"), odd


def _pool(
    kept: pl.DataFrame, named: pl.DataFrame, lexicon: _Lexicon, relations: Any, fits: Sequence["_Fit"], seed: int
) -> _Pool:
    """The readers' words and `EXTRA` others of those that may stand, drawn by their rates."""
    gold, shape, draw = (kept[name].to_numpy() for name in ("type", "shape", "draw"))
    usual = np.log(np.maximum(_rates(gold, lexicon, seed), 0.1))
    says = named.sort("item", "type").to_numpy().astype(np.int32).reshape(-1, 4)
    starts = np.searchsorted(says[:, 0], np.arange(kept.height + 1))
    parts, golds = [], []
    for rows, codes in _codes(kept, lexicon, relations):
        said = says[starts[rows.start] : starts[rows.stop]]
        values = [fit(rows) for fit in fits]
        key = usual - np.log(-np.log(_uniform(draw[rows, None], lexicon.draw[lexicon.word], seed + 1)))
        key[(shape[rows, None] != lexicon.shape) | (codes[:, lexicon.word] != _CODE["not_drawn"])] = -np.inf
        key[said[:, 0] - rows.start, said[:, 1]] = -np.inf
        at, column = np.nonzero(_greatest(key, EXTRA))
        deepest = np.zeros(len(key), np.int32)
        np.maximum.at(deepest, said[:, 0] - rows.start, said[:, 2])
        more = np.stack([at + rows.start, column, deepest[at] + 1, np.zeros_like(at)], axis=1)
        both = np.concatenate([said, more.astype(np.int32)])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        row, word = both[:, 0] - rows.start, lexicon.word[both[:, 1]]
        code = codes[row, word]
        is_open = code == _CODE["not_drawn"]
        found, own = _centred(values, fits, row, word, is_open, lexicon.word[gold[rows]], rows)
        parts.append((both, code, found))
        golds.append(own)
    ways = sum(1 + fit.is_of_words for fit in fits)
    none, nothing = np.zeros((0, 4), np.int32), np.zeros((0, ways), np.float32)
    table = np.concatenate([none, *(part[0] for part in parts)])
    code = np.concatenate([np.zeros(0, np.uint8), *(part[1] for part in parts)])
    found = np.concatenate([nothing, *(part[2] for part in parts)])
    item, type_, rank, times = np.ascontiguousarray(table.T)
    return _Pool(item, type_, rank, times, code, found, np.concatenate([nothing, *golds]))


def _greatest(keys: Floats, count: int) -> Masks:
    """Which are the greatest of each row, of those that are not infinitely small."""
    found = np.zeros(keys.shape, np.bool_)
    if keys.shape[1]:
        best = np.argpartition(-keys, min(count, keys.shape[1]) - 1, axis=1)[:, :count]
        np.put_along_axis(found, best, np.isfinite(np.take_along_axis(keys, best, axis=1)), axis=1)
    return found


def _centred(
    values: Sequence[Singles], fits: Sequence["_Fit"], row: Ids, word: Ids, is_open: Masks, gold: Ids, rows: slice
) -> tuple[Singles, Singles]:
    """How well words go with an item, and its gold word, and if at all, less the mean of words that may stand in it."""
    count = len(gold)
    known = [(value[row, word], value[np.arange(count), gold] - fit.less[rows])
             for fit, value in zip(fits, values, strict=True)]  # fmt: skip
    known += [
        ((one > _SOME).astype(np.float32), (other > _SOME).astype(np.float64))
        for (one, other), fit in zip(known, fits, strict=True)
        if fit.is_of_words
    ]
    found, own = np.empty((len(row), len(known)), np.float32), np.empty((count, len(known)), np.float32)
    size = np.maximum(np.bincount(row, weights=is_open, minlength=count), 1)
    for way, (one, other) in enumerate(known):
        mean = np.bincount(row, weights=one * is_open, minlength=count) / size
        found[:, way] = one - mean[row]
        own[:, way] = other - mean
    return found, own


def _uniform(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], seed: int) -> Floats:
    """Numbers in (0, 1) that depend on the two numbers and the seed alone: splitmix64, twice."""

    def mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    with np.errstate(over="ignore"):
        found = mixed(mixed(one ^ np.uint64(seed)) ^ mixed(other))
    return ((found >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _codes(kept: pl.DataFrame, lexicon: _Lexicon, relations: Any) -> Iterator[tuple[slice, npt.NDArray[np.uint8]]]:
    """Of `ROWS` items at a time why a word may not stand in them, the first reason that holds: [items, words]."""
    gold = lexicon.word[kept["type"].to_numpy()]
    has_vowel = lexicon.words.str.contains("^[aeiou]").to_numpy()
    is_after = kept["question"].str.contains(rf"(?i)\ban?\s+{PLACEHOLDER}").to_numpy()
    for rows, held in _texts(kept, lexicon):
        codes = relations[gold[rows]].toarray()
        held["other_article"] = is_after[rows, None] & (has_vowel != has_vowel[gold[rows], None])
        for reason, table in held.items():
            codes[(codes == 0) & table] = _CODE[reason]
        codes[codes == 0] = _CODE["not_drawn"]
        yield rows, codes


def _texts(kept: pl.DataFrame, lexicon: _Lexicon) -> Iterator[tuple[slice, dict[str, Masks]]]:
    """Of `ROWS` items at a time which words their question and their passage hold, in any form: [items, words] each."""
    from scipy.sparse import csr_array

    number: dict[str, int] = {}
    for names in (*lexicon.names, *lexicon.related):
        for name in names:
            number.setdefault(name, len(number))

    def table(lists: Sequence[Iterable[int]]) -> Any:
        rows = [sorted(set(row)) for row in lists]
        ends = np.cumsum([0, *map(len, rows)])
        ids = np.fromiter((one for row in rows for one in row), np.int64, int(ends[-1]))
        return csr_array((np.ones(len(ids), np.int32), ids, ends), shape=(len(rows), max(len(number), 1)))

    own, near = (table([[number[name] for name in names] for names in lists]).T.tocsr()
                 for lists in (lexicon.names, lexicon.related))  # fmt: skip
    known: dict[str, tuple[int, ...]] = {}

    def ids(text: str) -> Iterator[int]:
        for token in set(_TOKEN.findall(text.lower())):
            if token not in known:
                forms = {token, *(wordnet.lemma(token, upos) for upos in wordnet.POS)}
                known[token] = tuple(number[form] for form in forms if form in number)
            yield from known[token]

    for start in range(0, kept.height, ROWS):
        part = kept[start : start + ROWS]
        asked, said = (table([ids(text) for text in part[name]]) for name in ("question", "article"))
        yield slice(start, start + part.height), {
            "in_question": (asked @ own).toarray() > 0, "in_passage": (said @ own).toarray() > 0,
            "related_in_passage": (said @ near).toarray() > 0,
        }  # fmt: skip


def _thinned(kept: pl.DataFrame, lexicon: _Lexicon) -> npt.NDArray[np.object_]:
    """Why an item goes, or nothing: its gold word is too frequent, or is needed as one that is never right: [items]."""
    reasons = np.full(kept.height, "", object)
    gold, draw = kept["type"].to_numpy(), kept["draw"].to_numpy()
    order = np.argsort(draw, kind="stable")
    while True:
        here = order[reasons[order] == ""]
        counts = np.bincount(gold[here], minlength=len(lexicon.word))
        sizes = np.bincount(lexicon.shape, weights=counts)[lexicon.shape]
        over = np.flatnonzero(counts > np.maximum(sizes * SHARE, 1))
        if not len(over):
            break
        for one in over:
            own = here[gold[here] == one]
            reasons[own[int(max(sizes[one] * SHARE, 1)) :]] = "too_frequent"
    for shape in np.unique(lexicon.shape[gold[here]]):
        none, once, twice = (int(((counts == n) & (lexicon.shape == shape)).sum()) for n in range(3))
        spare = next((n for n in range(once) if none + n >= UNSEEN * _unseen(once - n, twice)), once)
        alone = here[(counts[gold[here]] == 1) & (lexicon.shape[gold[here]] == shape)]
        reasons[alone[:spare]] = "never_right"
    return reasons


def _unseen(once: int, twice: int) -> float:
    """Words never seen, at least, when so many are seen once and twice: Chao (1984), corrected for small numbers."""
    return once * (once - 1) / (2 * (twice + 1))


def _rates(gold: Ids, lexicon: _Lexicon, seed: int) -> Floats:
    """A rate for each type, drawn given how often it is gold; those of a shape add up to its items: [types].

    The distribution of a shape's rates is that under which its counts are most likely, by EM on a grid (Laird, 1978).
    """
    counts = np.bincount(gold, minlength=len(lexicon.word))
    at = _uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 2)
    rates = np.zeros(len(counts))
    for shape in np.unique(lexicon.shape[gold]):
        own = lexicon.shape == shape
        seen, of_type, times = np.unique(counts[own], return_inverse=True, return_counts=True)
        grid = np.geomspace(0.05, 1.5 * seen[-1] + 1, 80)
        logs = seen[:, None] * np.log(grid) - grid  # less log n!, which is the same for all rates
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        mix = np.full(len(grid), 1 / len(grid))
        for _ in range(1000):
            given = likely * mix
            given /= given.sum(axis=1, keepdims=True)
            mix = times @ given / times.sum()
        chosen = (np.cumsum(given, axis=1)[of_type] < at[own, None]).sum(axis=1)
        drawn = grid[np.minimum(chosen, len(grid) - 1)]
        rates[own] = drawn * counts[own].sum() / drawn.sum()
    return rates


class _Shares(NamedTuple):
    """How words are drawn, and what a model of the question alone makes of gold words."""

    share: Floats  # how probable each word is among the four of its item, [p]
    told: Floats  # the probability of each item's gold word, [items]


def _shares(draws: _Pool, is_in: Masks, gold: Ids, lexicon: _Lexicon, rates: Floats, seed: int) -> _Shares:
    """Probabilities that agree with gold words in how often words come, and in the means of how well they fit.

    The weights are log-linear in the type and in the fits, as those of the distribution nearest to the readers' ranks
    are that agrees in these (Csiszár, 1975); the former are fitted in turn, the latter by damped Newton steps.
    """
    from scipy.stats import poisson

    told = np.zeros(len(is_in))
    if not len(draws.item):
        return _Shares(np.zeros(0), told)
    starts = np.flatnonzero(np.diff(draws.item, prepend=-1))
    sizes = np.diff(starts, append=len(draws.item))
    counts = np.bincount(gold[is_in], minlength=len(rates))
    fits, golds = _compared(draws, counts[draws.type], counts[gold] - 1, is_in)
    base = 1 / (RANK + draws.rank - 1)
    of_type, slope = np.ones(len(rates)), np.zeros(fits.shape[1])

    def shares() -> Floats:
        found: Floats = base * of_type[draws.type] * np.exp(fits @ slope)
        for _ in range(3):  # what the bound cuts off goes to the others
            found = np.minimum(found * np.repeat(WRONG / np.add.reduceat(found, starts), sizes), 0.95)
        return found

    wanted, goal = WRONG * rates, WRONG * golds[is_in].sum(axis=0)
    for turn in range(ROUNDS):
        share = shares()
        now = np.bincount(draws.type, weights=share, minlength=len(rates))
        if turn == ROUNDS // 2:
            # how often a word comes should vary as in a Poisson distribution: what the draws lack is added here
            spread = np.bincount(draws.type, weights=share * (1 - share), minlength=len(rates))
            lack = np.sqrt(np.clip(1 - spread / np.maximum(now, 1e-9), 0, 1))
            at = _uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 4)
            wanted = np.maximum(wanted + lack * (poisson.ppf(at, wanted) - wanted), 0.0)
        of_type *= np.clip(wanted / np.maximum(now, 1e-9), 0.1, 10)
        share = shares()
        curve = (fits * share[:, None]).T @ fits
        step = np.linalg.solve(curve + (0.01 * np.trace(curve) + 1e-9) * np.eye(len(slope)), goal - share @ fits)
        slope += np.clip(step / 2, -0.5, 0.5)
    # the question alone, and how often words are gold: an item's own word once less, as seen from outside
    items, usual = draws.item[starts], counts + 0.5
    own = (usual[gold[items]] - 1) * np.exp(golds[items] @ slope)
    told[items] = own / (own + np.add.reduceat(usual[draws.type] * np.exp(fits @ slope), starts))
    share = shares()
    return _Shares(np.maximum(share, 1e-12), told)


def _compared(draws: _Pool, often: Keys, golds_often: Keys, is_in: Masks) -> tuple[Floats, Floats]:
    """Fits less the mean of words that are gold about as often, as deviations of gold words: [p, ways], [items, ways].

    Rare words fit less, or more, than others whatever the question is; were that left, the weights of fits would make
    up for what rates have not quite reached.
    """
    one, other = (np.log2(np.maximum(counts, 0) + 1).round(0).astype(np.int64) for counts in (often, golds_often))
    size = int(max(one.max(), other.max())) + 1
    sizes = np.maximum(np.bincount(one, minlength=size), 1)
    means = np.stack([np.bincount(one, weights=way, minlength=size) / sizes for way in draws.fits.T], axis=1)
    fits, golds = draws.fits - means[one], draws.golds - means[other]
    scale = np.maximum(golds[is_in].std(axis=0), 1e-6)
    return np.clip(fits / scale, -_FAR, _FAR), np.clip(golds / scale, -_FAR, _FAR)


class _Fit(NamedTuple):
    """How well words go with each item's question, told from other items."""

    left: Any  # [items, f]
    right: Any  # [f, words]
    less: Floats  # of each item: by how much its gold word goes worse, seen from outside
    is_of_words: bool

    def __call__(self, rows: slice) -> Singles:
        """[rows, words]"""
        found = self.left[rows] @ self.right
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), np.float32)


def _fits(kept: pl.DataFrame, lexicon: _Lexicon, vectors: Vectors | None) -> list[_Fit]:
    """By the words left of the placeholder and right of it, one and two, by all of the question; by vectors."""
    gold = lexicon.word[kept["type"].to_numpy()]
    cut = [[_BESIDE.findall(part.lower()) for part in question.split(PLACEHOLDER, 1)] for question in kept["question"]]
    cut = [[["^", *parts[0]], [*([] if len(parts) < 2 else parts[1]), "$"]] for parts in cut]
    before, after = [[left[-1]] for left, _ in cut], [[right[0]] for _, right in cut]
    far = [sorted({word for part in parts for word in part if len(word) > 3}) for parts in cut]
    around = [[f"{' '.join(left[-2:])} <", f"> {' '.join(right[:2])}"] for left, right in cut]
    found = [
        _fit(gold, len(lexicon.words), features, beside)
        for features, beside in (
            (before, None), (after, None), (before, _beside(cut, lexicon, 0)), (after, _beside(cut, lexicon, 1)),
            (around, None), (far, None),
        )
    ]  # fmt: skip
    if vectors:
        means = _means([[word for part in parts for word in part] for parts in cut], vectors)
        words = _unit(vectors(lexicon.words.to_list())).T
        found.append(_Fit(means, words, np.zeros(len(cut)), is_of_words=False))
    return found


def _beside(cut: Sequence[Sequence[Sequence[str]]], lexicon: _Lexicon, side: int) -> list[tuple[str, int]]:
    """Where questions of the set hold gold words of it: the word to their left, or right, and their number."""
    number = {name: row for row, name in enumerate(lexicon.words)}
    pairs = (pair for parts in cut for part in parts for pair in pairwise(part))
    return [(pair[side], number[pair[1 - side]]) for pair in pairs if pair[1 - side] in number]


def _means(rows: Sequence[Sequence[str]], vectors: Vectors) -> Singles:
    """The direction of the mean vector of each row's words: [rows, d]."""
    found = []
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        known = sorted({name for row in some for name in row})
        each = dict(zip(known, vectors(known), strict=True))
        found.append(np.array([np.mean([each[name] for name in row], axis=0) for row in some]))
    return _unit(np.concatenate(found))


def _fit(gold: Ids, count: int, features: Sequence[Sequence[str]], beside: Sequence[tuple[str, int]] | None) -> _Fit:
    """By how much the features of an item make a word more probable, up to a number of the item.

    It is the sum of log (n(f, w) + s p(w)) / (s p(w)) over features f, n counting gold words, which seen from outside
    are once less in their own item; or the pairs given.
    """
    from scipy.sparse import coo_array, csr_array

    ids: dict[str, int] = {}
    rows = [[ids.setdefault(feature, len(ids)) for feature in row] for row in features]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.fromiter((one for row in rows for one in row), np.int64, int(ends[-1]))
    item = np.repeat(np.arange(len(rows)), np.diff(ends))
    shape = (len(ids), count)
    feature, word = flat, gold[item].astype(np.int64)
    if beside is not None:
        known = np.array([(ids[name], one) for name, one in beside if name in ids], np.int64).reshape(-1, 2)
        feature, word = known[:, 0], known[:, 1]
    counts = coo_array((np.ones(len(word)), (feature, word)), shape=shape).tocsr().tocoo()
    sizes, scale = np.bincount(word, minlength=count) + 0.5, _SMOOTH / max(len(word) + 0.5 * count, 1)
    value = np.log1p(counts.data / (sizes[counts.col] * scale))
    less: Floats = np.zeros(len(flat))
    if beside is None:
        at = np.searchsorted(counts.row * np.int64(count) + counts.col, flat * count + gold[item])
        own = sizes[gold[item]] - np.diff(ends)[item]  # seen from outside the word is rarer, too
        less = value[at] - np.log1p((counts.data[at] - 1) / (own * scale))
    return _Fit(
        csr_array((np.ones(len(flat)), flat, ends), shape=(len(rows), shape[0])),
        csr_array((value, (counts.row, counts.col)), shape=shape),
        np.bincount(item, weights=less, minlength=len(rows)).astype(np.float64), is_of_words=True,
    )  # fmt: skip


def _drawn(
    draws: _Pool, share: Floats, numbers: npt.NDArray[np.uint64], lexicon: _Lexicon, relations: Any, seed: int
) -> tuple[Ids, Masks]:
    """Four types of each item, and which items have them: [n, 4] and [n]; by Pareto sampling (Rosén, 1997).

    It takes the smallest odds of a uniform number against those of the wanted probability, so that words come with
    about the probabilities wanted; of two that stand too near the later is passed over.
    """
    at = _uniform(numbers[draws.item], lexicon.draw[lexicon.word[draws.type]], seed + 3)
    odds = np.log(at / (1 - at)) - np.log(share / (1 - share))
    order = np.lexsort((odds, draws.item))
    place = np.arange(len(order)) - np.searchsorted(draws.item, draws.item)  # items are in order
    first = order[place < SPARE]
    drawn = np.full((len(numbers), SPARE), -1, np.int32)
    drawn[draws.item[first], place[place < SPARE]] = draws.type[first]
    taken = np.full((len(numbers), WRONG), -1, np.int32)
    counts = np.zeros(len(numbers), np.int64)
    near = relations.tocoo()
    known = np.sort(near.row.astype(np.int64) * len(lexicon.words) + near.col)
    for column in drawn.T:
        is_free = (column >= 0) & (counts < WRONG)
        for other in taken.T:
            key = lexicon.word[column].astype(np.int64) * len(lexicon.words) + lexicon.word[other]
            is_free &= (other < 0) | ~_is_among(key, known)
        rows = np.flatnonzero(is_free)
        taken[rows, counts[rows]] = column[rows]
        counts[rows] += 1
    return taken, counts == WRONG


def _told(pool: _Pool, kept: pl.DataFrame, lexicon: _Lexicon, taken: Ids, odd: pl.DataFrame) -> pl.DataFrame:
    """What became of the readers' words, and the words that were taken beside them."""
    own = np.int64(max(len(lexicon.word), 1))
    rows, columns = np.nonzero(taken >= 0)
    key = pool.item.astype(np.int64) * own + pool.type
    is_taken = _is_among(key, np.sort(rows * own + taken[rows, columns]))
    code = np.where(is_taken, 0, pool.code)
    said = (pool.times > 0) | is_taken
    found = pl.DataFrame({
        "item_id": kept["item_id"].gather(pool.item[said]),
        "word": lexicon.words.gather(lexicon.word[pool.type[said]]),
        "token_count": pool.times[said].astype(np.int64), "best_rank": pool.rank[said].astype(np.int64),
        "reason": pl.Series(REASONS, dtype=pl.String).gather(code[said]),
    })  # fmt: skip
    found = found.with_columns(best_rank=pl.when(pl.col("token_count") > 0).then("best_rank"))
    return pl.concat([found, odd])


def _in_order(became: pl.DataFrame) -> pl.DataFrame:
    return became.sort("item_id", pl.col("reason").is_not_null(), "best_rank", "word", nulls_last=True)
