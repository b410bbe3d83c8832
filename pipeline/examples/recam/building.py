"""From articles with summaries to cloze items: question, answer, passage, and wrong options (ReCAM, section 3).

A rule selects words that are abstract enough (sections 3.2 and 3.3). Filters leave out those that the passage gives
away (section 3.4); each sees only what those before it keep. Targets are found a few articles at a time. An item's id
is a hash of where its word stands. Wrong options come from readers of the other folds, who have not seen the item; the
four commonest words that are not right as well count (section 3.5; REC-15, REC-16).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam import items as cloze
from pipeline.examples.recam.items import OPTIONS, PLACEHOLDER, SCHEMA, normalise
from pipeline.io.hashes import hash_number, hash_text
from pipeline.progress import track
from pipeline.reasons import Read
from pipeline.text import concreteness, wordnet
from pipeline.text.senses import Sense
from pipeline.text.tagging import Analyzer, Token

SIMILAR = 0.85  # sections 3.4 and 3.5; what is just as similar is kept (REC-13)
TARGETS: dict[str, pl.DataType] = {
    "thread_id": pl.String(), "start": pl.Int64(), "end": pl.Int64(), "word": pl.String(), "lemma": pl.String(),
    "upos": pl.String(), "score": pl.Float64(), "sense": pl.String(), "reason": pl.String(),
}  # fmt: skip

Floats = npt.NDArray[np.floating]
Vectors = Callable[[Sequence[str]], Floats]  # vectors [n, d] of words; zeros for a word that has none
States = Callable[[Sequence[Sequence[str]]], Sequence[Floats]]
"""Vectors [tokens, d] of the tokens of each sentence, each sentence embedded alone (REC-14)."""


class Pair(NamedTuple):
    """An article and its summary, cut into sentences of tokens."""

    thread_id: str
    summary: list[list[Token]]
    passage: list[list[Token]]


class Verdict(NamedTuple):
    """What a rule finds of a token: its number, the sense that has it, and the reason if it is no target."""

    score: float | None = None
    sense: str | None = None
    reason: str | None = None


Rule = Callable[[Pair, Sequence[Token]], list[Verdict]]
Filter = Callable[[Pair, Sequence[Token]], list[str | None]]  # of each token the reason to leave it out, or None


def build_imperceptibility_rule(
    scores: Mapping[str, float], threshold: float = concreteness.THRESHOLD, *, by_lemma: bool = False
) -> Rule:
    """Subtask 1: content words whose concreteness is strictly under the threshold (section 3.2; REC-07).

    Reasons: not_content, no_score (unknown to the scorer), concrete. The official items follow Brysbaert et al. (2014),
    not MRC as the paper says: all 836 gold words of the dev file that they rate are under 2.4, which is 0.35 of their
    scale. Scores are those of words in lower case, in [0, 1]. With `by_lemma`, for lists of ratings, the lemma's score
    counts, and that of the form where the lemma has none.
    """

    def judge(token: Token) -> Verdict:
        score = scores.get(token.text.lower())
        if by_lemma:
            score = scores.get(token.lemma, score)
        if token.upos not in concreteness.CONTENT_POS:
            return Verdict(reason="not_content")
        if score is None:
            return Verdict(reason="no_score")
        return Verdict(score, reason=None if score < threshold else "concrete")

    return lambda _, tokens: [judge(token) for token in tokens]


def build_nonspecificity_rule(
    senses: Callable[[Sequence[tuple[str, str]], Iterable[str]], list[Sense | None]],
    threshold: int = wordnet.NONSPECIFIC,
) -> Rule:
    """Subtask 2: nouns and verbs whose sense, chosen by summary and passage, is under a level (section 3.3; REC-10).

    Reasons: not_content (no noun or verb), no_sense, specific. The score is the level. The official items seem to count
    nodes of a path, not edges: a threshold of 5 follows them. `senses` finds the senses of (lemma, part of speech) in a
    context of tokens, as `text.senses.disambiguate` does.
    """

    def judge(sense: Sense | None) -> Verdict:
        if sense is None or sense.level is None:
            return Verdict(reason="no_sense")
        return Verdict(float(sense.level), sense.synset, None if sense.level < threshold else "specific")

    def rule(pair: Pair, tokens: Sequence[Token]) -> list[Verdict]:
        words = [t for t in tokens if t.upos in {"NOUN", "VERB"}]
        context = (t.text for t in chain(*pair.summary, *pair.passage))
        senses_of_words = senses([(t.lemma, wordnet.POS[t.upos]) for t in words], context) if words else []
        verdicts = dict(zip((t.start for t in words), map(judge, senses_of_words), strict=True))
        return [verdicts.get(t.start, Verdict(reason="not_content")) for t in tokens]

    return rule


def flag_in_passage(pair: Pair, tokens: Sequence[Token]) -> list[str | None]:
    """Words of which a form is in the passage: its lemma or its own form is there (section 3.4; REC-11)."""
    passage_words = _list_forms(pair)
    return ["in_passage" if {token.lemma, token.text.lower()} & passage_words else None for token in tokens]


def _list_forms(pair: Pair) -> set[str]:
    return {name for token in chain(*pair.passage) for name in (token.text.lower(), token.lemma)}


def flag_in_question(pair: Pair, tokens: Sequence[Token]) -> list[str | None]:
    """Words that the rest of the summary holds too. The paper has no such rule; the question would hold the answer."""
    lemmas = [token.lemma for token in chain(*pair.summary)]
    return ["in_question" if lemmas.count(token.lemma) > 1 else None for token in tokens]


def flag_related(pair: Pair, tokens: Sequence[Token]) -> list[str | None]:
    """Words of which any sense has a synonym or an antonym in the passage, of one word or of several (REC-12)."""
    passage_words, words = _list_forms(pair), list(chain(*pair.passage))
    passage_texts = [f" {' '.join(names)} " for names in ([t.text.lower() for t in words], [t.lemma for t in words])]

    def is_in_passage(word: str) -> bool:
        return any(f" {word} " in text for text in passage_texts) if " " in word else word in passage_words

    reasons: list[str | None] = []
    for token in tokens:
        synonyms, antonyms = wordnet.find_pools(token.lemma)
        kinds = (("synonym_in_passage", synonyms), ("antonym_in_passage", antonyms))
        reasons.append(next((reason for reason, pool in kinds if any(map(is_in_passage, pool))), None))
    return reasons


def build_passage_filter(vectors: Vectors, most: float = SIMILAR) -> Filter:
    """Words whose vector is nearer to that of a passage word than `most`, by the cosine (section 3.4; REC-13)."""

    def filter_(pair: Pair, tokens: Sequence[Token]) -> list[str | None]:
        passage_words = sorted({token.text.lower() for token in chain(*pair.passage)})
        if not passage_words or not tokens:
            return [None] * len(tokens)
        word_vectors = vectors([*(token.text.lower() for token in tokens), *passage_words])
        cosines = _cosine(word_vectors[: len(tokens)], word_vectors[len(tokens) :])
        return ["similar_in_passage" if value > most else None for value in cosines.max(axis=1)]

    return filter_


def build_context_filter(states: States, most: float = SIMILAR) -> Filter:
    """Words whose state in the summary is nearer to a passage token's than `most` (section 3.4; REC-14)."""
    last: list[tuple[Pair, Floats, Floats]] = []  # so that a pair is embedded once for both subtasks

    def embed(pair: Pair) -> tuple[Floats, Floats]:
        """States of the summary's tokens and of the passage's."""
        if not last or last[0][0] is not pair:
            sentences = [[t.text for t in sentence] for sentence in chain(pair.summary, pair.passage) if sentence]
            sentence_states = states(sentences)
            count = sum(1 for sentence in pair.summary if sentence)
            last[:] = [(pair, np.concatenate(sentence_states[:count]), np.concatenate(sentence_states[count:]))]
        return last[0][1:]

    def filter_(pair: Pair, tokens: Sequence[Token]) -> list[str | None]:
        if not tokens or not any(pair.passage):
            return [None] * len(tokens)
        summary_states, passage_states = embed(pair)
        row = {token.start: number for number, token in enumerate(chain(*pair.summary))}
        cosines = _cosine(summary_states[[row[token.start] for token in tokens]], passage_states)
        return ["similar_in_context" if value > most else None for value in cosines.max(axis=1)]

    return filter_


def _cosine(first: Floats, second: Floats) -> Floats:
    """Cosines [n, m] of rows; 0 where one is nothing but zeros."""
    unit = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (first, second)]
    return np.asarray(unit[0] @ unit[1].T)


FILTERS: tuple[Filter, ...] = (flag_in_passage, flag_in_question, flag_related)  # those that need no vectors


def judge_tokens(pair: Pair, rule: Rule, filters: Sequence[Filter] = FILTERS) -> pl.DataFrame:
    """Give every token of a summary its score, and why it is no target, as `TARGETS`."""
    tokens = list(chain(*pair.summary))
    verdicts = rule(pair, tokens)
    reasons = [verdict.reason for verdict in verdicts]
    for filter_ in filters:
        open_places = [place for place, reason in enumerate(reasons) if reason is None]
        for place, reason in zip(open_places, filter_(pair, [tokens[place] for place in open_places]), strict=True):
            reasons[place] = reason
    rows = [
        (pair.thread_id, t.start, t.end, t.text, t.lemma, t.upos, verdict.score, verdict.sense, reason)
        for t, verdict, reason in zip(tokens, verdicts, reasons, strict=True)
    ]
    return pl.DataFrame(rows, schema=TARGETS, orient="row")


SUBTASKS = ("imperceptibility", "nonspecificity")
SHARES = {"train": 3227 / 6089, "validation": 837 / 6089, "test": 2025 / 6089}  # Table 5, subtask 1 (REC-27)
CHUNK = 100  # articles held as tokens at a time

OPEN: dict[str, pl.DataType] = {
    "item_id": pl.String(), "source": pl.String(), "thread_id": pl.String(), "article": pl.String(),
    "question": pl.String(), "answer": pl.String(), "upos": pl.String(), "score": pl.Float64(), "start": pl.Int64(),
    "split": pl.String(),
}  # fmt: skip


def find_targets(
    articles: pl.DataFrame, analyse: Analyzer, rules: Mapping[str, Rule], filters: Sequence[Filter]
) -> Iterator[pl.DataFrame]:
    """Judge every token of the summaries, by the rule of each subtask: a frame for each `CHUNK` articles."""
    with track("articles", articles.height) as on_progress:
        for part in articles.iter_slices(CHUNK):
            rows = part.select("thread_id", "summary", "text").iter_rows()
            pairs = [Pair(name, analyse(summary), analyse(text)) for name, summary, text in rows]
            yield pl.concat(  # rule by rule for one pair: what a filter keeps of the last pair serves both
                judge_tokens(pair, rule, filters).with_columns(subtask=pl.lit(subtask))
                for pair in pairs
                for subtask, rule in rules.items()
            )
            on_progress(part.height)


def list_untargeted(articles: pl.DataFrame, tokens: pl.DataFrame, subtasks: Sequence[str] = SUBTASKS) -> pl.DataFrame:
    """List articles that give a subtask no question: reason (no_target), row_key (`<subtask>:<thread_id>`)."""
    articles_by_subtask = articles.select("thread_id").join(pl.DataFrame({"subtask": subtasks}), how="cross")
    targeted = tokens.filter(pl.col("reason").is_null())
    untargeted = articles_by_subtask.join(targeted, on=["thread_id", "subtask"], how="anti", maintain_order="left")
    return untargeted.select(reason=pl.lit("no_target"), row_key=pl.format("{}:{}", "subtask", "thread_id"))


def build_items(articles: pl.DataFrame, tokens: pl.DataFrame, subtask: str) -> pl.DataFrame:
    """Build the open items of a subtask's targets (`OPEN`), in the order of their ids.

    The split goes by the article: one that two items share is on one side, in both subtasks. It is that of the
    articles, if they have the column; else, and where it is null, it is drawn.
    """
    target_rows = tokens.filter((pl.col("subtask") == subtask) & pl.col("reason").is_null())
    rows = target_rows.join(articles, on=["source", "thread_id"], how="inner")
    places = ("\n".join(map(str, (subtask, *row))) for row in rows.select("source", "thread_id", "start").iter_rows())
    ids = [hash_text(place) for place in places]
    cuts = rows.select("summary", "start", "end").iter_rows()
    questions = [summary[:start] + PLACEHOLDER + summary[end:] for summary, start, end in cuts]
    texts = rows.select(cloze.normalise("text")).to_series()
    official = rows["split"] if "split" in rows.columns else [None] * rows.height
    splits = {text: split or choose_split(text) for text, split in dict(zip(texts, official, strict=True)).items()}
    columns = {"item_id": pl.Series(ids, dtype=pl.String), "question": pl.Series(questions, dtype=pl.String)}
    split = texts.replace_strict(splits, return_dtype=pl.String)
    return rows.with_columns(**columns, article="text", answer="word", split=split).select(*OPEN).sort("item_id")


def choose_split(article: str) -> str:
    """Choose train, validation or test for a normalised article, in the shares of Table 5."""
    place = hash_number(article) / 2**64
    if place < SHARES["train"]:
        return "train"
    return "validation" if place < SHARES["train"] + SHARES["validation"] else "test"


FOLDS = 4
TOP = 10  # words of each reader
SEED = 42


def assign_folds(items: pl.DataFrame, count: int = FOLDS, seed: int = SEED) -> pl.Series:
    """Assign each item a fold, 0 to count - 1; items of one article share it: no reader has seen the passage."""
    articles = items.select(normalise())["article"]
    distinct = articles.unique().sort()
    places = np.random.default_rng(seed).permutation(len(distinct)) % count
    return articles.replace_strict(distinct, pl.Series(places, dtype=pl.Int64)).alias("fold")


def choose_options(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    vectors: Vectors | None = None,
    threshold: float = SIMILAR,
    seed: int = SEED,
) -> Read:
    """Choose four wrong options for each item: of the words left in its pool those that most readers named.

    Then the better best rank and the alphabet decide. Left out are the gold word, its forms and synonyms, and words
    whose cosine with it is above the threshold (none is without vectors). Rows are as of `items`; an item with fewer
    than four words is dropped as too_few_choices.
    """
    words = candidates.with_columns(pl.col("word").str.to_lowercase()).group_by("item_id", "word")
    rows = words.agg(token_count=pl.len().cast(pl.Int64), best_rank=pl.col("rank").min())
    rows = rows.join(items.select("item_id", pl.col("answer").str.to_lowercase()), on="item_id", how="inner")
    wrong_pairs = _select_wrong(rows.select("answer", "word").unique(), vectors, threshold)
    rows = rows.join(wrong_pairs, on=["answer", "word"]).sort("item_id", -pl.col("token_count"), "best_rank", "word")
    wrong_words = rows.group_by("item_id", maintain_order=True).agg(wrong=pl.col("word").head(OPTIONS - 1))
    options = items.join(wrong_words, on="item_id", how="left", maintain_order="left")
    has_enough = pl.col("wrong").list.len().fill_null(0) == OPTIONS - 1
    chosen_items = [place_options(row, seed) for row in options.filter(has_enough).iter_rows(named=True)]
    too_few = options.filter(~has_enough).select(reason=pl.lit("too_few_choices"), row_key="item_id")
    return Read(pl.DataFrame(chosen_items, schema=SCHEMA), too_few)


def place_options(row: dict[str, object], seed: int) -> dict[str, object]:
    """Give an item its options in an order that depends on its id alone: the gold word's place tells nothing."""
    options = [str(row["answer"]), *row["wrong"]]  # type: ignore[misc]
    order = np.random.default_rng(hash_number(f"{seed} {row['item_id']}")).permutation(OPTIONS).tolist()
    item = {name: row[name] for name in ("item_id", "article", "question")}
    return {**item, "options": [options[place] for place in order], "label": order.index(0)}


def _select_wrong(pairs: pl.DataFrame, vectors: Vectors | None, threshold: float) -> pl.DataFrame:
    """Select the pairs of an answer and a word in which the word is not right as well."""
    cosines = np.zeros(pairs.height)
    if vectors and pairs.height:
        answer_vectors, word_vectors = (vectors(pairs[name].to_list()) for name in ("answer", "word"))
        lengths = np.linalg.norm(answer_vectors, axis=1) * np.linalg.norm(word_vectors, axis=1)
        cosines = np.einsum("nd,nd->n", answer_vectors, word_vectors) / np.maximum(lengths, 1e-12)
    is_wrong = cosines <= threshold
    for row, (answer, word) in enumerate(pairs.iter_rows()):
        gold_forms = {answer, *(wordnet.lemmatize(answer, upos) for upos in wordnet.POS)}
        word_forms = {word, *(wordnet.lemmatize(word, upos) for upos in wordnet.POS)}
        synonyms = {name for form in gold_forms for name in wordnet.find_pools(form).synonyms}
        is_wrong[row] &= word_forms.isdisjoint(gold_forms | synonyms)
    return pairs.filter(is_wrong)
