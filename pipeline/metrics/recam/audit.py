"""What a cloze set reveals without reading: by options, by questions, by how often words are right (REC-32).

A reader's worth is what it scores above these. They are unpublished for the official files: of the trial file
Intersection 60 of 100 items are answered by taking the option that is most often right elsewhere (errata E15), and of
the dev files, by taking the one that is right most often of the times it is offered, 30 and 32, where chance is 20.

Counting over all other items misleads: in a set where each word is right once and wrong four times, the right one is
the one that is right *least* in the others. So each score is asked both ways, for its
largest option and for its smallest.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.items import PLACEHOLDER, normalise

FOLDS = 5
SEED = 42
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.str_]

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")  # a placeholder's neighbour may be a comma
_PRIOR = 1.0  # items assumed for an option that is in no other item, a fifth of them right
_SUFFIXES = ("ing", "ed", "ly", "ness", "ment", "tion", "ity", "ous", "ive", "ful", "al", "er", "est", "ss", "s")
_STRENGTH = 0.1  # of the linear models, scikit-learn's C: they have more features than options to learn from
OPPOSITE = {
    "often_right": "seldom_right", "right_when_offered": "wrong_when_offered", "often_offered": "seldom_offered",
    "absent": "present", "in_question": "not_in_question", "in_other_question": "not_in_other_question",
    "longest": "shortest", "capital": "small_letter", "central": "odd_one_out",
    "option_only": "option_only_reversed", "question_only": "question_only_reversed",
}  # fmt: skip
"""The ways to answer without reading, each with the one that takes the smallest of the same score."""


def audit(items: pl.DataFrame, folds: int = FOLDS, seed: int = SEED) -> pl.DataFrame:
    """Measure the accuracy of answering without reading.

    Counted in all other items, leaving out the item alone:

    - `often_right`: the option that is most often right; `seldom_right`: least.
    - `right_when_offered`: the one with the largest share of right among its offers; `wrong_when_offered`.
    - `often_offered`: the one that is offered most; `seldom_offered`.

    Seen in the item:

    - `absent`: one of those that the passage does not hold, as gold words never stand there (errata E15); `present`.
    - `in_question`: one that the question holds; `in_other_question`: one that the question of another item on the same
      article holds, as two items made of one summary name each other's gold word.
    - `longest`, `shortest`; `capital`, `small_letter`: of the first letter.
    - `central`: the option with most pairs and threes of letters in common with the other four; `odd_one_out`.

    Learnt in folds, no article in two of them, by a logistic regression of right against wrong:

    - `option_only`: the options alone: their letters, length, how often they are right and wrong in other items, and
      what they share with the other four.
    - `question_only`: these, and each option with the words of the question, above all its neighbours at the
      placeholder, and how often it is next to them in questions on other articles.
    - their reverse: the option that the model believes in least.

    Where several options are as good, the share of them that is right counts, so that nothing is drawn.

    Args:
        items: article, question, options (k of them), label, as of `examples.recam.items`; the order is of no account.
        folds: of what is learnt; with fewer than two articles nothing is learnt, and all options tie.
        seed: of the folds.

    Returns:
        baseline, accuracy, error (its standard error over items), chance, gap (accuracy less chance), sigmas (the gap
        in standard errors, null where there is no error), n.
    """
    schema = {"baseline": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64), "n": pl.Int64}
    if items.is_empty():
        return pl.DataFrame(schema=schema)
    ordered, labels = _sort_items(items)
    raw = np.array(ordered["options"].to_list())
    options = np.char.lower(raw)
    is_right = np.arange(options.shape[1]) == labels[:, None]
    right, offered = _count_elsewhere(options, is_right)
    chance = 1 / options.shape[1]
    articles = ordered.select(normalise())["article"]
    scores = {
        "often_right": right,
        "right_when_offered": (right + _PRIOR * chance) / (offered + _PRIOR),
        "often_offered": offered,
        "absent": -_find_in_texts(options, [ordered["article"].to_list()]),
        "in_question": _find_in_texts(options, [ordered["question"].to_list()]),
        "in_other_question": _find_in_other_questions(options, articles, ordered["question"].to_list()),
        "longest": np.char.str_len(options).astype(np.float64),
        "capital": np.vectorize(lambda option: option[:1].isupper(), otypes=[np.float64])(raw),
        "central": _share_letters(options),
    }
    folds_by_item = _draw_folds(articles, folds, seed)
    option_rows = list(_describe_options(raw))
    question_rows = [
        option_features + question_features
        for option_features, question_features in zip(
            option_rows, _describe_questions(options, articles, ordered["question"]), strict=True
        )
    ]
    counts = _build_count_features(options, is_right, folds_by_item)
    scores["option_only"], scores["question_only"] = (
        _cross_validate(rows, counts, is_right, folds_by_item) for rows in (option_rows, question_rows)
    )
    rows = [
        (baseline, *_summarize_accuracy(score, is_right, chance), len(labels))
        for name, values in scores.items()
        for baseline, score in ((name, values), (OPPOSITE[name], -values))
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


_NUMBERS = ("accuracy", "error", "chance", "gap", "sigmas")


def _sort_items(items: pl.DataFrame) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Sort items and their options, since fits depend a little on the order; return them with their labels."""
    with_gold = items.select("article", "question", "options", gold=pl.col("options").list.get(pl.col("label")))
    trimmed = with_gold.with_columns(
        pl.col("options").list.eval(pl.element().str.strip_chars()).list.sort(), pl.col("gold").str.strip_chars()
    )
    ordered = trimmed.sort("article", "question", pl.col("options").list.join("\n"), "gold")
    sizes = ordered.select(pl.col("options").list.eval(pl.element()).list.len())  # of one size, as an array has to be
    if sizes["options"].n_unique() != 1:
        raise ValueError("items should all have as many options")
    labels = [options.index(gold) for options, gold in ordered.select("options", "gold").iter_rows()]
    return ordered, np.array(labels, np.int64)


def _count_elsewhere(options: Words, is_right: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Count how often each option is right, and offered, in other items: [n, k] each."""
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    right = np.bincount(ids[is_right], minlength=len(words))[ids] - is_right
    offered = np.bincount(ids.ravel(), minlength=len(words))[ids] - 1
    return right.astype(np.float64), offered.astype(np.float64)


def _find_in_texts(options: Words, texts: Sequence[Sequence[str]]) -> Floats:
    """Return 1 where a text of the item holds the option as a word, else 0: [n, k]."""
    words = [{word for text in row for word in _WORD.findall(text.lower())} for row in zip(*texts, strict=True)]
    return np.array(
        [[option in text_words for option in row] for row, text_words in zip(options, words, strict=True)], np.float64
    )


def _find_in_other_questions(options: Words, articles: pl.Series, questions: Sequence[str]) -> Floats:
    """Return 1 where the question of another item on the same article holds the option, else 0: [n, k]."""
    rows = defaultdict(list)
    for row, article in enumerate(articles):
        rows[article].append(row)
    other_rows = [[other for other in rows[article] if other != row] for row, article in enumerate(articles)]
    return _find_in_texts(options, [["\n".join(questions[other] for other in indices) for indices in other_rows]])


def _list_letter_groups(option: str) -> set[str]:
    """List pairs and threes of letters; the word's ends count as letters."""
    text = f"<{option}>"
    return {text[i : i + n] for n in (2, 3) for i in range(len(text) - n + 1)}


def _share_letters(options: Words) -> Floats:
    """Compute the mean share of letter groups that an option shares with each other option: [n, k]."""
    letters_by_option = {option: _list_letter_groups(option) for option in np.unique(options)}
    shares = np.zeros(options.shape)
    for row, row_options in zip(shares, options, strict=True):
        groups = [letters_by_option[option] for option in row_options]
        for first in range(len(row_options)):
            for second in range(first):
                share = len(groups[first] & groups[second]) / len(groups[first] | groups[second])
                row[first] += share
                row[second] += share
    shares /= max(options.shape[1] - 1, 1)
    return shares


def _draw_folds(articles: pl.Series, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw the fold of each item, the same for items of one article; few articles give fewer folds."""
    distinct = articles.unique().sort()
    fold_numbers = np.random.default_rng(seed).permutation(len(distinct)) % count
    return articles.replace_strict(distinct, pl.Series(fold_numbers, dtype=pl.Int64)).to_numpy()


def _bin_count(count: float) -> int:
    """Bin a count: 0, 1, 2, 3 and then by doubling, as word counts grow."""
    return int(count) if count < 4 else 2 + int(np.log2(count))


def _find_suffix(word: str) -> str:
    return next((suffix for suffix in _SUFFIXES if word.endswith(suffix) and len(word) > len(suffix) + 1), "")


def _describe_options(raw: Words) -> Iterator[list[str]]:
    """Yield the features of each option without the question and without labels, a list an option, row by row."""
    for row in raw:
        lowered = [option.lower() for option in row]
        suffixes = [_find_suffix(option) for option in lowered]
        for j, option in enumerate(lowered):
            other_indices = [k for k in range(len(lowered)) if k != j]
            likeness = {
                "suffix": sum(suffixes[k] == suffixes[j] for k in other_indices),
                "start": sum(lowered[k][:4] == option[:4] for k in other_indices),
                "end": sum(lowered[k][-2:] == option[-2:] for k in other_indices),
                "longer": sum(len(lowered[k]) > len(option) for k in other_indices),
                "capital": sum(row[k][:1].isupper() for k in other_indices),
            }
            yield [
                f"w {option}", f"suffix {suffixes[j]}", f"size {min(len(option), 15)}",
                f"is capital {row[j][:1].isupper()}", f"mark {'-' in option} {option.isalpha()}",
                *(f"g {group}" for group in sorted(_list_letter_groups(option))),
                *(f"{name} {n}" for name, n in likeness.items()),
            ]  # fmt: skip


def _build_count_features(
    options: Words, is_right: npt.NDArray[np.bool_], item_folds: npt.NDArray[np.int64]
) -> Callable[[int], list[list[str]]]:
    """Build the features that count how often options are right and wrong, for the model of one fold.

    Counts for an item leave out its own fold and the test fold; for items of the test fold they leave out one other
    fold, so both rest on equally many items. Counts over all other items would reveal the labels of the test fold: a
    word that is right n times is right n times elsewhere where it is wrong, and n - 1 times where it is right.
    """
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    folds = int(item_folds.max()) + 1
    by_fold = np.zeros((2, folds, len(words)))
    for kind, mask in enumerate((is_right, ~is_right)):
        np.add.at(by_fold[kind], (np.broadcast_to(item_folds[:, None], ids.shape)[mask], ids[mask]), 1)
    total = by_fold.sum(axis=1)

    def features(answered: int) -> list[list[str]]:
        left_out_fold = np.where(item_folds == answered, (answered + 1) % folds, item_folds)[:, None]
        right, wrong = (total[k][ids] - by_fold[k, answered][ids] - by_fold[k, left_out_fold, ids] for k in range(2))
        order = [
            np.argsort(np.argsort(table, axis=1), axis=1) for table in (right / (right + wrong + 1), right + wrong)
        ]
        rows = zip(*(table.ravel().tolist() for table in (right, wrong, *order)), strict=True)
        return [
            [
                f"right {_bin_count(right_count)}",
                f"wrong {_bin_count(wrong_count)}",
                f"both {_bin_count(right_count)} {_bin_count(wrong_count)}",
                f"rank {share_rank} {right_count == 0}",
                f"offer {offer_rank}",
            ]
            for right_count, wrong_count, share_rank, offer_rank in rows
        ]

    return features


def _describe_questions(options: Words, articles: pl.Series, questions: pl.Series) -> Iterator[list[str]]:
    """Yield the features of each option with its question, a list an option, row by row."""
    question_parts = [
        [_TOKEN.findall(part.lower()) for part in question.split(PLACEHOLDER, 1)] for question in questions
    ]
    question_parts = [[*parts, []][:2] for parts in question_parts]
    everywhere, within = _count_pairs(question_parts, articles, set(options.ravel().tolist()))
    for row_options, article, (before, after) in zip(options, articles, question_parts, strict=True):
        near_words = {"l1": (before[-1:] or ["^"])[0], "r1": (after[:1] or ["$"])[0]}
        near_words |= {"l2": " ".join(["^", *before][-2:]), "r2": " ".join([*after, "$"][:2])}
        far_words = sorted({word for word in before + after if len(word) > 3})
        for option in row_options.tolist():
            shapes = (
                option,
                option[-3:],
                option[-2:],
                option[-1:],
                f"{option[0] in 'aeiou'} start",
                _find_suffix(option),
            )
            neighbour_pairs = {"l": (near_words["l1"], option), "r": (option, near_words["r1"])}
            counts = {side: everywhere[pair] - within[article, pair] for side, pair in neighbour_pairs.items()}
            yield [
                *(f"{side} {word}|{shape}" for side, word in near_words.items() for shape in shapes),
                *(f"q {word}|{option}" for word in far_words),
                *(f"q {word}|{option[-2:]}" for word in far_words),
                *(f"beside {side} {_bin_count(count)}" for side, count in counts.items()),
            ]


_Pairs = Counter[tuple[str, str]]


def _count_pairs(
    question_parts: list[list[list[str]]], articles: pl.Series, option_words: set[str]
) -> tuple[_Pairs, Counter[object]]:
    """Count adjacent words of questions, one of them an option: in all, and in those of an article.

    A question that several items have in parts counts once for each.
    """
    everywhere: _Pairs = Counter()
    within: Counter[object] = Counter()
    for article, parts in zip(articles, question_parts, strict=True):
        for part in parts:
            for pair in pairwise(part):
                if pair[0] in option_words or pair[1] in option_words:
                    everywhere[pair] += 1
                    within[article, pair] += 1
    return everywhere, within


def _cross_validate(
    rows: list[list[str]],
    counts: Callable[[int], list[list[str]]],
    is_right: npt.NDArray[np.bool_],
    item_folds: npt.NDArray[np.int64],
) -> Floats:
    """Score each option by a linear model that was fitted to the items of other folds: [n, k]."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import LogisticRegression

    scores = np.zeros(is_right.shape)
    if len(np.unique(item_folds)) < 2:
        return scores
    fixed = FeatureHasher(2**19, input_type="string", alternate_sign=False).transform(rows)
    hasher = FeatureHasher(2**12, input_type="string", alternate_sign=False)
    target, option_folds = is_right.ravel(), np.repeat(item_folds, is_right.shape[1])
    for fold in np.unique(item_folds):
        table = hstack([fixed, hasher.transform(counts(int(fold)))], format="csr")
        table = table[:, np.unique(table.indices)]  # liblinear's vectors are dense, and few of the buckets are used
        model = LogisticRegression(C=_STRENGTH, solver="liblinear", random_state=0)
        model.fit(table[option_folds != fold], target[option_folds != fold])
        scores[item_folds == fold] = model.decision_function(table[option_folds == fold]).reshape(-1, is_right.shape[1])
    return scores


def _summarize_accuracy(scores: Floats, is_right: npt.NDArray[np.bool_], chance: float) -> tuple[float | None, ...]:
    """Compute accuracy and its numbers: the mean share of right options among the best of each item."""
    scores = scores.round(9)  # sums of the same numbers in another order are no better
    best = scores == scores.max(axis=1, keepdims=True)
    share = (best & is_right).sum(axis=1) / best.sum(axis=1)
    accuracy, error = float(share.mean()), float(share.std() / np.sqrt(len(share)))
    return accuracy, error, chance, accuracy - chance, (accuracy - chance) / error if error > 1e-9 else None
