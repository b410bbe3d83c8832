"""What a cloze set gives away to who does not read: by options, by questions, by how often words are right (REC-32).

A reader is worth what it has above these. On the official files nobody has published them: of the trial file
Intersection 60 of 100 items are answered by taking the option that is most often right elsewhere (errata E15), and of
the dev files, by taking the one that is right most often of the times it is offered, 30 and 32, where chance is 20.

Telling an item from all others is treacherous: in a set where each word is right once and wrong four times, whoever
counts the others finds the right one to be the one that is right *least*. So each score is asked both ways, for its
largest option and for its smallest.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.items import PLACEHOLDER, normalised

FOLDS = 5
SEED = 42
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.str_]

_WORD = re.compile(r"\w+")
_BESIDE = re.compile(r"\w+|[^\w\s]")  # what stands beside a placeholder may be a comma
_PRIOR = 1.0  # items that an option nobody has seen elsewhere is taken to have been in, a fifth of them right
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
    """Accuracy of answering without reading, each item told from others.

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
    - `question_only`: these, and each option with the words of the question, those beside the placeholder above all,
      and how often it stands beside them in questions on other articles.
    - their reverse: the option that the model believes in least.

    Where several options are as good, the share of them that is right counts, so that nothing is drawn.

    Args:
        items: article, question, options (k of them), label, as of `examples.recam.items`; the order is of no account.
        folds: of what is learnt; with fewer articles than two there is nothing to learn from, and all are as good.
        seed: of the folds.

    Returns:
        baseline, accuracy, error (its standard error over items), chance, gap (accuracy less chance), sigmas (the gap
        in standard errors, null where there is no error), n.
    """
    schema = {"baseline": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64), "n": pl.Int64}
    if items.is_empty():
        return pl.DataFrame(schema=schema)
    given, labels = _ordered(items)
    raw = np.array(given["options"].to_list())
    options = np.char.lower(raw)
    is_right = np.arange(options.shape[1]) == labels[:, None]
    right, offered = _elsewhere(options, is_right)
    chance = 1 / options.shape[1]
    articles = given.select(normalised())["article"]
    scores = {
        "often_right": right,
        "right_when_offered": (right + _PRIOR * chance) / (offered + _PRIOR),
        "often_offered": offered,
        "absent": -_held(options, [given["article"].to_list()]),
        "in_question": _held(options, [given["question"].to_list()]),
        "in_other_question": _held_by_others(options, articles, given["question"].to_list()),
        "longest": np.char.str_len(options).astype(np.float64),
        "capital": np.vectorize(lambda option: option[:1].isupper(), otypes=[np.float64])(raw),
        "central": _shared(options),
    }
    place = _folds(articles, folds, seed)
    own = list(_option_features(raw))
    both = [
        own_ + asked for own_, asked in zip(own, _question_features(options, articles, given["question"]), strict=True)
    ]
    counts = _counts_apart(options, is_right, place)
    scores["option_only"], scores["question_only"] = (_learnt(rows, counts, is_right, place) for rows in (own, both))
    rows = [
        (way, *_accuracy(score, is_right, chance), len(labels))
        for name, values in scores.items()
        for way, score in ((name, values), (OPPOSITE[name], -values))
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


_NUMBERS = ("accuracy", "error", "chance", "gap", "sigmas")


def _ordered(items: pl.DataFrame) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Items and their options in an order of their own, since what is learnt depends on it a little, and the labels."""
    given = items.select("article", "question", "options", gold=pl.col("options").list.get(pl.col("label")))
    trimmed = given.with_columns(
        pl.col("options").list.eval(pl.element().str.strip_chars()).list.sort(), pl.col("gold").str.strip_chars()
    )
    found = trimmed.sort("article", "question", pl.col("options").list.join("\n"), "gold")
    place = found.select(pl.col("options").list.eval(pl.element()).list.len())  # of one size, as an array has to be
    if place["options"].n_unique() != 1:
        raise ValueError("items should all have as many options")
    labels = [options.index(gold) for options, gold in found.select("options", "gold").iter_rows()]
    return found, np.array(labels, np.int64)


def _elsewhere(options: Words, is_right: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """How often each option is right, and offered, in other items: [n, k] each."""
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    right = np.bincount(ids[is_right], minlength=len(words))[ids] - is_right
    offered = np.bincount(ids.ravel(), minlength=len(words))[ids] - 1
    return right.astype(np.float64), offered.astype(np.float64)


def _held(options: Words, texts: Sequence[Sequence[str]]) -> Floats:
    """1 where a text of the item, of one of the lists of texts, holds the option as a word, else 0: [n, k]."""
    words = [{word for text in row for word in _WORD.findall(text.lower())} for row in zip(*texts, strict=True)]
    return np.array([[option in held for option in row] for row, held in zip(options, words, strict=True)], np.float64)


def _held_by_others(options: Words, articles: pl.Series, questions: Sequence[str]) -> Floats:
    """1 where the question of another item on the same article holds the option, else 0: [n, k]."""
    rows = defaultdict(list)
    for row, article in enumerate(articles):
        rows[article].append(row)
    others = [[one for one in rows[article] if one != row] for row, article in enumerate(articles)]
    return _held(options, [["\n".join(questions[one] for one in each) for each in others]])


def _letters(option: str) -> set[str]:
    """Pairs and threes of letters, the word's ends among them."""
    text = f"<{option}>"
    return {text[i : i + n] for n in (2, 3) for i in range(len(text) - n + 1)}


def _shared(options: Words) -> Floats:
    """The mean share of letter groups that an option has in common with each of the others: [n, k]."""
    known = {option: _letters(option) for option in np.unique(options)}
    found = np.zeros(options.shape)
    for row, some in zip(found, options, strict=True):
        groups = [known[option] for option in some]
        for one in range(len(some)):
            for other in range(one):
                share = len(groups[one] & groups[other]) / len(groups[one] | groups[other])
                row[one] += share
                row[other] += share
    found /= max(options.shape[1] - 1, 1)
    return found


def _folds(articles: pl.Series, count: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each item, those of one article in the same; fewer folds than asked for if articles are few."""
    distinct = articles.unique().sort()
    place = np.random.default_rng(seed).permutation(len(distinct)) % count
    return articles.replace_strict(distinct, pl.Series(place, dtype=pl.Int64)).to_numpy()


def _bin(count: float) -> int:
    """0, 1, 2, 3 and then by doubling: counts of words grow so."""
    return int(count) if count < 4 else 2 + int(np.log2(count))


def _suffix(word: str) -> str:
    return next((suffix for suffix in _SUFFIXES if word.endswith(suffix) and len(word) > len(suffix) + 1), "")


def _option_features(raw: Words) -> Iterator[list[str]]:
    """What is to be seen of each option without the question and without labels, a list an option, row by row."""
    for row in raw:
        low = [option.lower() for option in row]
        suffixes = [_suffix(option) for option in low]
        for j, option in enumerate(low):
            others = [k for k in range(len(low)) if k != j]
            alike = {
                "suffix": sum(suffixes[k] == suffixes[j] for k in others),
                "start": sum(low[k][:4] == option[:4] for k in others),
                "end": sum(low[k][-2:] == option[-2:] for k in others),
                "longer": sum(len(low[k]) > len(option) for k in others),
                "capital": sum(row[k][:1].isupper() for k in others),
            }
            yield [
                f"w {option}", f"suffix {suffixes[j]}", f"size {min(len(option), 15)}",
                f"is capital {row[j][:1].isupper()}", f"mark {'-' in option} {option.isalpha()}",
                *(f"g {group}" for group in sorted(_letters(option))), *(f"{name} {n}" for name, n in alike.items()),
            ]  # fmt: skip


def _counts_apart(
    options: Words, is_right: npt.NDArray[np.bool_], place: npt.NDArray[np.int64]
) -> Callable[[int], list[list[str]]]:
    """How often options are right and wrong, for a model that is to answer one fold: a list an option, row by row.

    For each item it is told from neither its own fold nor the one to be answered, and for items of this from all but
    one: so much is known of either. Were items that the model learns from told from all others, they would tell the
    labels of those it is to answer: a word that is right n times is right n times elsewhere where it is wrong, and
    n - 1 times where it is right.
    """
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    folds = int(place.max()) + 1
    by_fold = np.zeros((2, folds, len(words)))
    for kind, mask in enumerate((is_right, ~is_right)):
        np.add.at(by_fold[kind], (np.broadcast_to(place[:, None], ids.shape)[mask], ids[mask]), 1)
    total = by_fold.sum(axis=1)

    def features(answered: int) -> list[list[str]]:
        apart = np.where(place == answered, (answered + 1) % folds, place)[:, None]
        right, wrong = (total[k][ids] - by_fold[k, answered][ids] - by_fold[k, apart, ids] for k in range(2))
        order = [
            np.argsort(np.argsort(table, axis=1), axis=1) for table in (right / (right + wrong + 1), right + wrong)
        ]
        rows = zip(*(table.ravel().tolist() for table in (right, wrong, *order)), strict=True)
        return [
            [
                f"right {_bin(r)}",
                f"wrong {_bin(w)}",
                f"both {_bin(r)} {_bin(w)}",
                f"rank {one} {r == 0}",
                f"offer {two}",
            ]
            for r, w, one, two in rows
        ]

    return features


def _question_features(options: Words, articles: pl.Series, questions: pl.Series) -> Iterator[list[str]]:
    """What is to be seen of each option with its question, a list an option, row by row."""
    cut = [[_BESIDE.findall(part.lower()) for part in question.split(PLACEHOLDER, 1)] for question in questions]
    cut = [[*parts, []][:2] for parts in cut]
    everywhere, within = _pairs(cut, articles, set(options.ravel().tolist()))
    for row, article, (before, after) in zip(options, articles, cut, strict=True):
        near = {"l1": (before[-1:] or ["^"])[0], "r1": (after[:1] or ["$"])[0]}
        near |= {"l2": " ".join(["^", *before][-2:]), "r2": " ".join([*after, "$"][:2])}
        far = sorted({word for word in before + after if len(word) > 3})
        for option in row.tolist():
            shapes = (option, option[-3:], option[-2:], option[-1:], f"{option[0] in 'aeiou'} start", _suffix(option))
            beside = {"l": (near["l1"], option), "r": (option, near["r1"])}
            counts = {side: everywhere[pair] - within[article, pair] for side, pair in beside.items()}
            yield [
                *(f"{side} {word}|{shape}" for side, word in near.items() for shape in shapes),
                *(f"q {word}|{option}" for word in far),
                *(f"q {word}|{option[-2:]}" for word in far),
                *(f"beside {side} {_bin(count)}" for side, count in counts.items()),
            ]


_Pairs = Counter[tuple[str, str]]


def _pairs(cut: list[list[list[str]]], articles: pl.Series, known: set[str]) -> tuple[_Pairs, Counter[object]]:
    """How often two words stand side by side in questions, one of them an option: in all, and in those of an article.

    A question that several items have in parts counts once for each.
    """
    everywhere: _Pairs = Counter()
    within: Counter[object] = Counter()
    for article, parts in zip(articles, cut, strict=True):
        for part in parts:
            for pair in pairwise(part):
                if pair[0] in known or pair[1] in known:
                    everywhere[pair] += 1
                    within[article, pair] += 1
    return everywhere, within


def _learnt(
    rows: list[list[str]], counts: Callable[[int], list[list[str]]], is_right: npt.NDArray[np.bool_],
    place: npt.NDArray[np.int64],
) -> Floats:  # fmt: skip
    """What a linear model says of each option that was fitted to the items of other folds: [n, k]."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import LogisticRegression

    found = np.zeros(is_right.shape)
    if len(np.unique(place)) < 2:
        return found
    fixed = FeatureHasher(2**19, input_type="string", alternate_sign=False).transform(rows)
    hasher = FeatureHasher(2**12, input_type="string", alternate_sign=False)
    target, of_option = is_right.ravel(), np.repeat(place, is_right.shape[1])
    for fold in np.unique(place):
        table = hstack([fixed, hasher.transform(counts(int(fold)))], format="csr")
        table = table[:, np.unique(table.indices)]  # liblinear's vectors are dense, and few of the buckets are used
        model = LogisticRegression(C=_STRENGTH, solver="liblinear", random_state=0)
        model.fit(table[of_option != fold], target[of_option != fold])
        found[place == fold] = model.decision_function(table[of_option == fold]).reshape(-1, is_right.shape[1])
    return found


def _accuracy(scores: Floats, is_right: npt.NDArray[np.bool_], chance: float) -> tuple[float | None, ...]:
    """Accuracy and the numbers behind it: the mean share of right options among the best ones of each item."""
    scores = scores.round(9)  # sums of the same numbers in another order are no better
    best = scores == scores.max(axis=1, keepdims=True)
    share = (best & is_right).sum(axis=1) / best.sum(axis=1)
    accuracy, error = float(share.mean()), float(share.std() / np.sqrt(len(share)))
    return accuracy, error, chance, accuracy - chance, (accuracy - chance) / error if error > 1e-9 else None
