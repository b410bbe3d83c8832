"""Find predicates: the words without which a sentence means something else (NDD, section 5.2, table 8; NDD-35).

Each word is deleted, masked or replaced by a stop word, one at a time, and counts as much as the sentence thereby moves
away from itself. The paper does not say how it weighs neighbours and edits (here: means), nor over what its AUC is
taken (here: both readings). Its English rows cannot be re-run as printed (errata E19).
"""

from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput, check_name
from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.distance import Divergence, Floats, IndexArray, MaskedModel, Sentence
from pipeline.metrics.resample import DRAWS, SEED, bounds, iterate_counts

Edit = Literal["delete", "mask", "stop_word"]
Bools = npt.NDArray[np.bool_]
MASK = "[MASK]"
"""Replaces a masked word by default: a word that no sentence has. `models.ndd.masked_lm` has its own `mask_word`."""
STOP_WORDS = {"en": "a", "es": "el", "zh": "的"}
"""What replaces a word (footnote 10, which has `that` for English out of domain); the Chinese one is our own choice."""
LONGEST = 50  # words (footnote 9)
_PAIRS = 1 << 16  # neighbours of edits that are gone through at a time


def list_edits(sentence: Sentence, edit: Edit, word: str = "") -> list[list[str]]:
    """Edit each word of a sentence in turn, as many sentences as words: delete removes it, the others replace it."""
    replacement = [] if edit == "delete" else [word]
    return [[*sentence[:i], *replacement, *sentence[i + 1 :]] for i in range(len(sentence))]


def score_words(
    model: MaskedModel,
    sentences: Sequence[Sentence],
    edit: Edit,
    *,
    divergence: Divergence = "kl",
    stop_word: str = STOP_WORDS["en"],
    mask_word: str = MASK,
) -> list[Floats]:
    """Compute NDD between a sentence and its edit, for each of its words.

    The neighbours are all the other words, each with the same weight. The model is asked n times for a sentence of n
    words, and n (n - 1) times for its edits. The paper goes on with KL here (footnote 8).

    Returns for each sentence [words], at least 0; higher is more of a predicate. The only word of a sentence has 0.
    BadInput for no such edit.
    """
    word = _choose_word(edit, stop_word, mask_word)
    word_scores = []
    for block in distance.split_blocks([len(sentence) ** 2 for sentence in sentences], _PAIRS):
        texts: list[Sentence] = []
        first_places, second_places = [], []
        for sentence in sentences[block]:
            number, place = np.nonzero(~np.eye(len(sentence), dtype=bool))
            edit_place = place - (place > number) if edit == "delete" else place
            first_places.append(np.stack([np.full(len(place), len(texts)), place], axis=1))
            second_places.append(np.stack([len(texts) + 1 + number, edit_place], axis=1))
            texts += [sentence, *list_edits(sentence, edit, word)]
        ends = np.cumsum([*map(len, first_places)])
        places = np.concatenate(first_places), np.concatenate(second_places)
        block_values = np.split(distance.divergences(model, texts, *places, divergence), ends[:-1])
        for sentence, values in zip(sentences[block], block_values, strict=True):
            neighbour_count = max(len(sentence) - 1, 0)
            word_values = values.reshape(len(sentence), neighbour_count)
            word_scores.append((word_values * (1 / max(neighbour_count, 1))).sum(axis=1))
    return word_scores


def score_perplexity(
    model: MaskedModel,
    sentences: Sequence[Sentence],
    edit: Edit,
    *,
    stop_word: str = STOP_WORDS["en"],
    mask_word: str = MASK,
) -> list[Floats]:
    """Compute ΔPPL for each word, the paper's comparison: how much less likely the edited sentence is.

    PPL is the mean of -log p over the model's units, in nats, as section 2.1 has it (NDD-01), and so over the mask word
    or stop word, too. Arguments and errors are as of `score_words`.

    Returns for each sentence [words]; below 0 where the edit reads better. The only word of a sentence has 0 if
    deleted, as nothing is left.
    """
    word = _choose_word(edit, stop_word, mask_word)
    word_scores = []
    for block in distance.split_blocks([len(sentence) ** 2 for sentence in sentences], _PAIRS):
        texts_by_sentence = []
        for sentence in sentences[block]:
            variants = [variant for variant in list_edits(sentence, edit, word) if variant]
            texts_by_sentence.append([sentence, *variants] if variants else [])
        surprisals = iter(model.surprisals([*chain(*texts_by_sentence)]))
        for sentence, texts in zip(sentences[block], texts_by_sentence, strict=True):
            mean = np.array([float(np.mean(next(surprisals))) for _ in texts])
            word_scores.append(mean[1:] - mean[0] if texts else np.zeros(len(sentence)))
    return word_scores


def ensemble(parts: Sequence[Sequence[Floats]]) -> list[Floats]:
    """Average the scores of several edits word by word; the paper combines three and does not say how."""
    if not parts or len({tuple(map(len, part)) for part in parts}) > 1:
        raise BadInput(f"expected scores of the same words from every edit, found {[sum(map(len, p)) for p in parts]}")
    return [np.mean(of_sentence, axis=0) for of_sentence in zip(*parts, strict=True)]


def select_sentences(is_predicate: Sequence[Sequence[bool]]) -> tuple[IndexArray, pl.DataFrame]:
    """Select sentences of at most LONGEST words with at least one predicate (footnote 9); call it before scoring.

    Returns their numbers, and those of the others: sentence, reason (no_predicate or too_long).
    """
    reasons = ["too_long" if len(words) > LONGEST else None if any(words) else "no_predicate" for words in is_predicate]
    schema = {"sentence": pl.Int64, "reason": pl.String}
    rows = pl.DataFrame({"sentence": range(len(reasons)), "reason": reasons}, schema)
    indices = rows.filter(pl.col("reason").is_null())["sentence"].to_numpy()
    return indices, rows.drop_nulls()


def average_precision(score: Floats, is_right: Bools) -> float:
    """Compute mean precision at each recall [n], ties together, as scikit-learn does; NaN with none right.

    Scores that are all the same have the share of words that are right.
    """
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.diff(score[order], append=np.nan) != 0)
    hits = np.cumsum(is_right[order])[ends]
    return float(np.diff(hits, prepend=0) @ (hits / (ends + 1)) / hits[-1]) if is_right.any() else np.nan


def auc(score: Floats, is_right: Bools, weights: Floats | None = None) -> float:
    """Compute the chance that a right word scores above a wrong one, a tie half; NaN with none or all right.

    All are [n]; weights are how often each word counts, by default once.
    """
    return _auc(np.unique(score, return_inverse=True)[1], is_right, np.ones(len(score)) if weights is None else weights)


def _auc(place: IndexArray, is_right: Bools, weights: Floats) -> float:
    right, wrong = (np.bincount(place, weights * mask) for mask in (is_right, ~is_right))
    total = right.sum() * wrong.sum()
    return float(right @ (np.cumsum(wrong) - wrong / 2) / total) if total else np.nan


def evaluate(scores: Sequence[Floats], is_predicate: Sequence[Sequence[bool]], *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure how well scores find predicates, with percentile bootstrap intervals of 95 % over sentences.

    - map: the mean over sentences of `average_precision`.
    - auc_pooled: `auc` over the words of all sentences together.
    - auc_mean: the mean over sentences of theirs, of those with words of both kinds.

    What a scorer has to beat is what constant scores have. Without draws there is no interval.

    Returns a row a measure, null where there is nothing to measure: metric, value, low, high, n (sentences), words,
    no_predicate and too_long (sentences that do not count). BadInput if no sentence remains.
    """
    indices, dropped = select_sentences(is_predicate)
    if not len(indices):
        raise BadInput(
            f"none of {len(scores)} sentences has a predicate and at most {LONGEST} words; expected at least one"
        )
    scored = [(np.asarray(scores[index], np.float64), np.asarray(is_predicate[index], bool)) for index in indices]
    sizes = np.array([len(score) for score, _ in scored])
    owner, is_right = np.repeat(np.arange(len(scored)), sizes), np.concatenate([right for _, right in scored])
    place = np.unique(np.concatenate([score for score, _ in scored]), return_inverse=True)[1]
    precision = np.array([average_precision(*sentence) for sentence in scored])
    areas = np.array([auc(*sentence) for sentence in scored])
    columns: dict[str, list[float]] = {"map": [], "auc_pooled": [], "auc_mean": []}
    for weights in iterate_counts(len(scored), draws, SEED):
        columns["map"].append(_weighted_mean(precision, weights))
        columns["auc_pooled"].append(_auc(place, is_right, weights[owner]))
        columns["auc_mean"].append(_weighted_mean(areas, weights))
    rows = []
    for name, (value, *samples) in columns.items():
        low, high = bounds(np.array(samples))
        n = int(np.isfinite(areas).sum()) if name == "auc_mean" else len(scored)
        rows.append({"metric": name, "value": value, "low": low, "high": high, "n": n})
    reasons = dropped["reason"].to_list()
    counts = {reason: pl.lit(reasons.count(reason), pl.Int64) for reason in ("no_predicate", "too_long")}
    return pl.DataFrame(rows).fill_nan(None).with_columns(words=pl.lit(int(sizes.sum()), pl.Int64), **counts)


def _weighted_mean(values: Floats, weights: Floats) -> float:
    """Compute the weighted mean of the values that are not NaN."""
    is_defined = ~np.isnan(values)
    total = weights[is_defined].sum()
    return float(values[is_defined] @ weights[is_defined] / total) if total else np.nan


def _choose_word(edit: Edit, stop_word: str, mask_word: str) -> str:
    words = {"delete": "", "mask": mask_word, "stop_word": stop_word}
    return words[check_name("edit", edit, words)]
