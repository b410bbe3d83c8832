"""What a cloze set reveals without reading: by options, by questions, by how often words are right (REC-32).

A reader's worth is what it scores above these. Of the official trial file Intersection, 60 of 100 items are answered by
taking the option that is most often right elsewhere (errata E15). In a set where each word is right once and wrong four
times, the right one is right *least* in the others, so each score gives two answers: its largest and its smallest
option.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import Missing
from pipeline.examples.recam.building import assign_folds
from pipeline.examples.recam.items import PLACEHOLDER, normalise, select_right_option
from pipeline.metrics.resample import Floats, Ints
from pipeline.text import tagging

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5
Masks = npt.NDArray[np.bool_]
Words = npt.NDArray[np.str_]
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")  # a placeholder's neighbour may be a comma
_PRIOR = 1.0  # items assumed for an option that is in no other item, a fifth of them right
_SUFFIXES = ("ing", "ed", "ly", "ness", "ment", "tion", "ity", "ous", "ive", "ful", "al", "er", "est", "ss", "s")
_BUCKETS, _COUNT_BUCKETS = 2**19, 2**12  # of features
_STRENGTH = 0.1  # of the linear models, scikit-learn's C: they have more features than options to learn from
_NUMBERS = ("accuracy", "error", "chance", "gap", "sigmas")
OPPOSITE = {  # the ways to answer without reading, each with the one that takes the smallest of the same score
    "often_right": "seldom_right", "right_when_offered": "wrong_when_offered", "often_offered": "seldom_offered",
    "absent": "present", "in_question": "not_in_question", "in_other_question": "not_in_other_question",
    "part_of_speech": "other_part_of_speech", "longest": "shortest",
    "capital": "small_letter", "central": "odd_one_out",
    "option_only": "option_only_reversed", "question_only": "question_only_reversed",
}  # fmt: skip


def audit(items: pl.DataFrame) -> pl.DataFrame:
    """Measure the accuracy of answering without reading.

    Counted in all other items:

    - `often_right`: the option that is most often right; `right_when_offered`: the one with the largest share of right
      among its offers; `often_offered`: the one that is offered most.
    - `part_of_speech`: those of the part of speech with the largest share of right among its offers, by WordNet's
      counts; without WordNet the baseline is absent.

    Seen in the item:

    - `absent`: one of those that the passage does not hold, as gold words never stand there (errata E15).
    - `in_question`: one that the question holds; `in_other_question`: that of another item on the same article.
    - `longest`; `capital`: of the first letter; `central`: the one with most letter groups in common with the others.

    Learnt by a logistic regression in folds of articles; with fewer than two articles all options tie:

    - `option_only`: the options alone: their letters, length, counts in other items, and what they share.
    - `question_only`: these, and each option with the words of the question, above all its neighbours.

    Each has its opposite (`OPPOSITE`). Where several options are as good, the share of them that is right counts.

    Items have article, question, options, label, as of `examples.recam.items`; the order is of no account.
    Returns baseline, accuracy, error (its standard error over items), chance, gap (accuracy less chance), sigmas (the
    gap in standard errors, null where there is no error), n.
    """
    schema = {"baseline": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64), "n": pl.Int64}
    if items.is_empty():
        return pl.DataFrame(schema=schema)
    chance = 1 / items["options"].list.len()[0]
    rows = []
    for name, shares in answer_blindly(items).items():
        accuracy, error = float(shares.mean()), float(shares.std() / np.sqrt(len(shares)))
        gap = accuracy - chance
        rows.append((name, accuracy, error, chance, gap, gap / error if error > 1e-9 else None, len(shares)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def answer_blindly(items: pl.DataFrame) -> dict[str, Floats]:
    """Answer items without reading by each baseline of `audit`; return the shares of right among the best: [n] each."""
    # sorted, since fits depend a little on the order of items and options
    trimmed_options = pl.col("options").list.eval(pl.element().str.strip_chars()).list.sort()
    trimmed = items.select("article", "question", trimmed_options, gold=select_right_option().str.strip_chars())
    ordered = trimmed.with_row_index("row").sort("article", "question", pl.col("options").list.join("\n"), "gold")
    labels = np.array([options.index(gold) for options, gold in ordered.select("options", "gold").iter_rows()])
    raw = np.array(ordered["options"].to_list())
    options = np.char.lower(raw)
    is_right = np.arange(options.shape[1]) == labels[:, None]
    right, offered = _count_elsewhere(options, is_right)
    chance = 1 / options.shape[1]
    articles, questions = ordered.select(normalise())["article"], ordered["question"].to_list()
    rows_of_article = defaultdict(list)
    for row, article in enumerate(articles):
        rows_of_article[article].append(row)
    other_rows = ([other for other in rows_of_article[article] if other != row] for row, article in enumerate(articles))
    other_questions = ["\n".join(questions[other] for other in rows) for rows in other_rows]
    scores = {
        "often_right": right, "right_when_offered": (right + _PRIOR * chance) / (offered + _PRIOR),
        "often_offered": offered, "absent": -_find_in_texts(options, ordered["article"]),
        "in_question": _find_in_texts(options, questions),
        "in_other_question": _find_in_texts(options, other_questions),
        "longest": np.char.str_len(options).astype(np.float64),
        "capital": np.vectorize(lambda option: option[:1].isupper(), otypes=[np.float64])(raw),
        "central": _share_letters(options),
    }  # fmt: skip
    with suppress(Missing):
        scores["part_of_speech"] = _score_parts_of_speech(options, is_right)
    item_folds = assign_folds(ordered, FOLDS).to_numpy()
    counts = _build_count_features(options, is_right, item_folds)
    of_options = _hash_features(_describe_options(raw), _BUCKETS)
    of_questions = of_options + _hash_features(_describe_questions(options, articles, questions), _BUCKETS)
    scores["option_only"] = _cross_validate(of_options, counts, is_right, item_folds)
    scores["question_only"] = _cross_validate(of_questions, counts, is_right, item_folds)
    place = np.argsort(ordered["row"].to_numpy())
    return {
        baseline: _share_right(score, is_right)[place]
        for name, values in scores.items()
        for baseline, score in ((name, values), (OPPOSITE[name], -values))
    }


def _count_elsewhere(options: Words, is_right: Masks) -> tuple[Floats, Floats]:
    """Count how often each option is right, and offered, in other items: [n, k] each."""
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    right = np.bincount(ids[is_right], minlength=len(words))[ids] - is_right
    offered = np.bincount(ids.ravel(), minlength=len(words))[ids] - 1
    return right.astype(np.float64), offered.astype(np.float64)


def _score_parts_of_speech(options: Words, is_right: Masks) -> Floats:
    """Compute the share of right among the offers of each option's part of speech in other items: [n, k]."""
    analyse = tagging.load_counts().analyse
    tag_of = {word: [[t.upos for t in sentence] for sentence in analyse(word)] for word in np.unique(options).tolist()}
    _, ids = np.unique([str(tag_of[word]) for word in options.ravel().tolist()], return_inverse=True)
    ids = ids.reshape(options.shape)
    is_part = ids[:, :, None] == np.arange(ids.max() + 1)  # [n, k, parts of speech]
    right, offered = (rows.sum(axis=0) - rows for rows in (is_part[is_right].astype(np.int64), is_part.sum(axis=1)))
    return np.asarray(np.take_along_axis((right + _PRIOR / options.shape[1]) / (offered + _PRIOR), ids, axis=1))


def _find_in_texts(options: Words, texts: Sequence[str] | pl.Series) -> Floats:
    """Return 1 where the text of the item holds the option as a word, else 0: [n, k]."""
    rows = zip(options, (set(_WORD.findall(text.lower())) for text in texts), strict=True)
    return np.array([[option in words for option in row_options] for row_options, words in rows], np.float64)


def _list_letter_groups(option: str) -> set[str]:
    """List pairs and threes of letters; the word's ends count as letters."""
    text = f"<{option}>"
    return {text[i : i + n] for n in (2, 3) for i in range(len(text) - n + 1)}


def _share_letters(options: Words) -> Floats:
    """Compute the mean share of letter groups that an option shares with each other option: [n, k]."""
    groups_of = {option: _list_letter_groups(option) for option in np.unique(options)}
    shares = np.zeros(options.shape)
    for row, row_options in zip(shares, options, strict=True):
        for first, second in combinations(range(len(row_options)), 2):
            groups, other_groups = groups_of[row_options[first]], groups_of[row_options[second]]
            row[[first, second]] += len(groups & other_groups) / len(groups | other_groups)
    shares /= max(options.shape[1] - 1, 1)
    return shares


def _bin_count(count: float) -> int:
    """Bin a count: 0, 1, 2, 3 and then by doubling, as word counts grow."""
    return int(count) if count < 4 else 2 + int(np.log2(count))


def _find_suffix(word: str) -> str:
    return next((suffix for suffix in _SUFFIXES if word.endswith(suffix) and len(word) > len(suffix) + 1), "")


def _describe_options(raw: Words) -> Iterator[list[str]]:
    """Yield the features of each option without the question and without labels, a list an option, row by row."""
    for row in raw:
        options = [(option, option.lower(), _find_suffix(option.lower())) for option in row]
        for j, (as_written, option, suffix) in enumerate(options):
            other_options = options[:j] + options[j + 1 :]
            likeness = {
                "suffix": sum(other_suffix == suffix for *_, other_suffix in other_options),
                "start": sum(other[:4] == option[:4] for _, other, _ in other_options),
                "end": sum(other[-2:] == option[-2:] for _, other, _ in other_options),
                "longer": sum(len(other) > len(option) for _, other, _ in other_options),
                "capital": sum(other[:1].isupper() for other, *_ in other_options),
            }
            yield [
                f"w {option}", f"suffix {suffix}", f"size {min(len(option), 15)}",
                f"is capital {as_written[:1].isupper()}", f"mark {'-' in option} {option.isalpha()}",
                *(f"g {group}" for group in sorted(_list_letter_groups(option))),
                *(f"{name} {n}" for name, n in likeness.items()),
            ]  # fmt: skip


def _build_count_features(options: Words, is_right: Masks, item_folds: Ints) -> Callable[[int], Iterator[list[str]]]:
    """Build the features that count how often options are right and wrong, for the model of one fold.

    Counts for an item leave out its own fold and the test fold; for items of the test fold they leave out one other
    fold, so both rest on equally many items. Counts over all other items would reveal the labels of the test fold.
    """
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    folds = int(item_folds.max()) + 1
    by_fold = np.zeros((2, folds, len(words)))
    for kind, mask in enumerate((is_right, ~is_right)):
        np.add.at(by_fold[kind], (np.broadcast_to(item_folds[:, None], ids.shape)[mask], ids[mask]), 1)
    total = by_fold.sum(axis=1)

    def features(test_fold: int) -> Iterator[list[str]]:
        unused_fold = np.where(item_folds == test_fold, (test_fold + 1) % folds, item_folds)[:, None]
        right, wrong = (total[k][ids] - by_fold[k, test_fold][ids] - by_fold[k, unused_fold, ids] for k in range(2))
        tables = right / (right + wrong + 1), right + wrong
        ranks = [table.argsort(axis=1).argsort(axis=1) for table in tables]
        rows = zip(*(table.ravel().tolist() for table in (right, wrong, *ranks)), strict=True)
        for right_count, wrong_count, share_rank, offer_rank in rows:
            right_bin, wrong_bin = _bin_count(right_count), _bin_count(wrong_count)
            ranked = f"rank {share_rank} {right_count == 0}", f"offer {offer_rank}"
            yield [f"right {right_bin}", f"wrong {wrong_bin}", f"both {right_bin} {wrong_bin}", *ranked]

    return features


def _describe_questions(options: Words, articles: pl.Series, questions: Sequence[str]) -> Iterator[list[str]]:
    """Yield the features of each option with its question, a list an option, row by row."""
    halves = (question.partition(PLACEHOLDER) for question in questions)
    sides = [(_TOKEN.findall(before.lower()), _TOKEN.findall(after.lower())) for before, _, after in halves]
    everywhere, within = Counter[tuple[str, str]](), Counter[tuple[object, tuple[str, str]]]()
    option_words = set(options.ravel().tolist())
    for article, parts in zip(articles, sides, strict=True):  # a question that several items have counts for each
        pairs = [pair for part in parts for pair in pairwise(part) if not option_words.isdisjoint(pair)]
        everywhere.update(pairs)
        within.update((article, pair) for pair in pairs)
    for row_options, article, (before, after) in zip(options, articles, sides, strict=True):
        left, right = ["^", *before], [*after, "$"]
        near_words = {"l1": left[-1], "r1": right[0], "l2": " ".join(left[-2:]), "r2": " ".join(right[:2])}
        far_words = sorted({word for word in before + after if len(word) > 3})
        for option in row_options.tolist():
            endings = (option[-3:], option[-2:], option[-1:])
            shapes = (option, *endings, f"{option[0] in 'aeiou'} start", _find_suffix(option))
            neighbour_pairs = {"l": (left[-1], option), "r": (option, right[0])}
            counts = {side: everywhere[pair] - within[article, pair] for side, pair in neighbour_pairs.items()}
            yield [
                *(f"{side} {word}|{shape}" for side, word in near_words.items() for shape in shapes),
                *(f"q {word}|{option}" for word in far_words),
                *(f"q {word}|{option[-2:]}" for word in far_words),
                *(f"beside {side} {_bin_count(count)}" for side, count in counts.items()),
            ]


def _hash_features(rows: Iterable[list[str]], buckets: int) -> "csr_matrix":
    """Count features of options, which are not held, in buckets: [options, buckets]."""
    from sklearn.feature_extraction import FeatureHasher

    return FeatureHasher(buckets, input_type="string", alternate_sign=False).transform(rows)


def _cross_validate(
    table_of_options: "csr_matrix", counts: Callable[[int], Iterable[list[str]]], is_right: Masks, item_folds: Ints
) -> Floats:
    """Score each option by a linear model that was fitted to the items of other folds: [n, k]."""
    from scipy.sparse import hstack
    from sklearn.linear_model import LogisticRegression

    scores = np.zeros(is_right.shape)
    if len(np.unique(item_folds)) < 2:
        return scores
    target, option_folds = is_right.ravel(), np.repeat(item_folds, is_right.shape[1])
    for fold in np.unique(item_folds):
        table = hstack([table_of_options, _hash_features(counts(int(fold)), _COUNT_BUCKETS)], format="csr")
        table = table[:, np.unique(table.indices)]  # liblinear's vectors are dense, and few of the buckets are used
        model = LogisticRegression(C=_STRENGTH, solver="liblinear", random_state=0)
        model.fit(table[option_folds != fold], target[option_folds != fold])
        scores[item_folds == fold] = model.decision_function(table[option_folds == fold]).reshape(-1, is_right.shape[1])
    return scores


def _share_right(scores: Floats, is_right: Masks) -> Floats:
    """Compute the share of right options among the best of each item: [n]."""
    scores = scores.round(9)  # sums of the same numbers in another order are no better
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray((best & is_right).sum(axis=1) / best.sum(axis=1))
