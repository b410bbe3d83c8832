"""Compress sentences, texts and files by the systems of tables 3, 5 and 12 (NDD, section 4)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import __version__, settings
from pipeline.errors import BadInput, check_name
from pipeline.metrics.ndd.distance import DIVERGENCES, MU, WEIGHTS, Divergence
from pipeline.progress import OnProgress
from pipeline.score.compress import scorers
from pipeline.score.compress.search import Compression, Search, compress
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.ndd import masked_lm
from pipeline.text import sentences, trees
from pipeline.text.language import detect_language


class System(NamedTuple):
    """What makes a system."""

    scorer: str
    has_trees: bool = False  # drops only whole subtrees (SC)


SYSTEMS = {  # the unsupervised systems of tables 3, 5 and 12 by name
    f"{scorer}{'_sc' if has_trees else ''}": System(scorer, has_trees)
    for scorer in ("ndd", "fast_ndd", "ppl_deleter", "cosine", "bertscore")
    for has_trees in (False, True)
}
NDD_SCORERS = ("ndd", "fast_ndd")  # those of a divergence and weights
STATE_SCORERS = ("cosine", "bertscore")  # these need states, which a model of counts does not have
DEFAULT_SYSTEM, DEFAULT_SYNTAX_SYSTEM = "ndd", "ndd_sc"
LONGEST_TEXT = 100_000  # characters
LONGEST_SENTENCE = 128  # words; a longer one is split, as the search takes the square of its length
DROPPED: dict[str, Any] = {"round": pl.Int64, "words": pl.String, "places": pl.List(pl.Int64), "cost": pl.Float64}
_BATCH_SIZE = 512  # sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceOptions:
    """The numbers of the distance; BadInput if one is none of its choices or out of range."""

    divergence: Divergence = "kl"
    weighting: str = "balanced"
    mu: float = MU
    nu: float = 1.0  # below 1 later words are dropped more easily

    def __post_init__(self) -> None:
        if self.divergence not in DIVERGENCES or self.weighting not in WEIGHTS:
            expected = f"a divergence of {', '.join(DIVERGENCES)} and weights of {', '.join(WEIGHTS)}"
            raise BadInput(f"expected {expected}; found {self.divergence!r} and {self.weighting!r}")
        if not 0 < self.mu <= 1 or not 0 < self.nu <= 1:
            raise BadInput(f"mu and nu should be above 0 and at most 1, found {self.mu} and {self.nu}")

    def format_signature(self, lm: masked_lm.LoadedModel) -> str:
        """Name model, divergence and weights."""
        return f"{lm.model.signature}|divergence:{self.divergence}|weights:{self.weighting}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How to compress: a system and its numbers."""

    system: str = DEFAULT_SYSTEM
    search: Search = field(default_factory=Search)
    distance: DistanceOptions = field(default_factory=DistanceOptions)

    def format_signature(self, lm: masked_lm.LoadedModel) -> str:
        """Name what made a compression: system, model, divergence, weights, and numbers that are no default."""
        changes: list[str] = []
        is_ndd = get_system(self.system).scorer in NDD_SCORERS
        for options in (self.search, self.distance) if is_ndd else (self.search,):
            for option in fields(options):
                value = getattr(options, option.name)
                if value != option.default or option.name in ("divergence", "weighting"):
                    name = "weights" if option.name == "weighting" else option.name
                    changes.append(f"{name}:{value:g}" if isinstance(value, float) else f"{name}:{value}")
        return "|".join([f"compression:{self.system}", lm.model.signature, *changes, f"undertone:{__version__}"])


def get_system(name: str) -> System:
    """Get a system by its name."""
    return SYSTEMS[check_name("system", name, SYSTEMS)]


def compress_sentences(
    words: Sequence[Sequence[str]],
    method: Method,
    lm: masked_lm.LoadedModel,
    heads: Sequence[Sequence[int]] | None = None,
    on_progress: OnProgress = lambda _: None,
) -> list[Compression]:
    """Compress sentences by a system, in batches, so that memory does not grow with their number."""
    scorer_name, has_trees = get_system(method.system)
    if not has_trees:
        heads = None
    elif heads is None:
        need = "drops only whole subtrees and needs a tree of each sentence"
        raise BadInput(f"{method.system} {need}: --syntax F.conllu")
    if scorer_name in STATE_SCORERS and masked_lm.is_count_model(lm):
        need = "compares the states of a transformer, and a model of counts has none"
        raise BadInput(f"{scorer_name} {need}; give --model")
    model: Any = lm.model  # with states, where the scorer needs them
    rivals: dict[str, Callable[[Any], scorers.Scorer]] = {
        "ppl_deleter": scorers.perplexity, "cosine": scorers.cosine, "bertscore": scorers.bertscore,
    }  # fmt: skip
    try:
        if rival := rivals.get(scorer_name):
            scorer = rival(model)
        else:
            scorer = scorers.ndd(model, **asdict(method.distance), is_fast=scorer_name == "fast_ndd")
        answers: list[Compression] = []
        for start in range(0, len(words), _BATCH_SIZE):
            batch = slice(start, start + _BATCH_SIZE)
            answers += compress(words[batch], scorer, method.search, heads and heads[batch], on_progress)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return answers


def find_heads(words: Sequence[Sequence[str]], lang: str, syntax: Path | None) -> list[tuple[int, ...] | None]:
    """Find the heads of each sentence in a CoNLL-U file (None where it lacks it), or parse it with stanza."""
    if syntax:
        return [tree and tree.heads for tree in trees.match_trees(trees.read(syntax), words)]
    parse = trees.load_parser(settings.resources() / "stanza", lang)
    return [tree.heads for tree in parse(words)]


def compress_texts(
    rows: pl.DataFrame,
    column: str,
    method: Method = Method(),
    ref: str | None = None,
    syntax: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:
    """Compress the texts of any frame, sentence by sentence, by a model (see `masked_lm.load_model`).

    Returns the frame with `compressed`, `ratio` (share of the words that stay), `after` (the text after each round),
    `dropped` (`DROPPED` of each span, with places in the text from 0) and `signature`; all null where there is no text.
    """
    texts = rows.select(text=pl.col(column).fill_null("")).with_columns(lang=detect_language()).with_row_index("row")
    longest = max(map(len, texts["text"]), default=0)
    if longest > LONGEST_TEXT:
        raise BadInput(f"a text of {longest:,} characters; texts of up to {LONGEST_TEXT:,} can be compressed")
    schema: dict[str, Any] = {"compressed": pl.String, "ratio": pl.Float64, "after": pl.List(pl.String)}
    schema |= {"dropped": pl.List(pl.Struct(DROPPED)), "signature": pl.String}
    other_columns = drop_earlier_scores(rows, "compression", [*schema])
    values: list[tuple[object, ...]] = [(None,) * len(schema)] * texts.height
    for lang, part in split_languages(texts):
        model_lang = choose_model_lang(lang)
        lm = masked_lm.load_model(ref, model_lang)
        split_texts = [_split_text(text, lang) for text in part["text"]]
        words = [sentence.words for text_sentences in split_texts for _, sentence in text_sentences]
        heads: list[tuple[int, ...]] | None = None
        if get_system(method.system).has_trees:
            trees_of_words = find_heads(words, model_lang, syntax)
            if None in trees_of_words:
                missing = " ".join(words[trees_of_words.index(None)])
                raise BadInput(f"{syntax}: no tree of the words {missing[:80]!r}")
            heads = [tree for tree in trees_of_words if tree]
        answers = iter(compress_sentences(words, method, lm, heads))
        for row, text_sentences in zip(part["row"], split_texts, strict=True):
            if text_sentences:
                text_answers = [next(answers) for _ in text_sentences]
                text_rounds = _join_rounds(text_sentences, text_answers, model_lang)
                values[row] = (*text_rounds, method.format_signature(lm))
            on_progress(1)
    return other_columns.hstack(pl.DataFrame(values, schema, orient="row"))


def split_languages(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Split rows by `lang`, in the order in which languages first come."""
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        yield str(lang), part


def _split_text(text: str, lang: str) -> list[tuple[int, sentences.Sentence]]:
    """Split a text into sentences with the numbers of their lines, and a long one into parts."""
    text_sentences = []
    for number, line in enumerate(text.splitlines()):
        for sentence in sentences.split_sentences(line, lang):
            for start in range(0, len(sentence.words), LONGEST_SENTENCE):
                part = slice(start, start + LONGEST_SENTENCE)
                text_sentences.append((number, sentences.Sentence(sentence.words[part], sentence.blanks[part])))
    return text_sentences


def choose_model_lang(lang: str) -> str:
    """Choose the language whose model is used: Chinese for what is written without blanks, else English."""
    return "zh" if lang in ("zh", "ja") else "en"


def _join_rounds(
    text_sentences: Sequence[tuple[int, sentences.Sentence]], answers: "Sequence[Compression]", model_lang: str
) -> tuple[str, float, list[str], list[dict[str, Any]]]:
    """Join sentences: the text after the last round, its share of the words, the text after each, the dropped spans."""
    blank = "" if model_lang == "zh" else " "
    after = []
    for number in range(1, max(1, *(int(answer.rounds.max()) for answer in answers)) + 1):
        lines: dict[int, list[str]] = {}
        for (line, sentence), answer in zip(text_sentences, answers, strict=True):
            lines.setdefault(line, []).append(sentences.join_words(sentence, answer.after(number).tolist()))
        after.append("\n".join(blank.join(line) for line in lines.values()))
    kept_count = sum(int(answer.is_kept.sum()) for answer in answers)
    word_count, dropped = 0, []
    for (_, sentence), answer in zip(text_sentences, answers, strict=True):
        for number, places, cost in answer.dropped:
            words = blank.join(sentence.words[place] for place in places)
            values = (number, words, [word_count + place for place in places], round(cost, 6))
            dropped.append(dict(zip(DROPPED, values, strict=True)))
        word_count += len(sentence.words)
    return after[-1], kept_count / word_count, after, sorted(dropped, key=lambda span: (span["round"], span["places"]))
