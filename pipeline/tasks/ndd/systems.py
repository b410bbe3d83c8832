"""Text compression as tasks: the systems of tables 3, 5 and 12, on sentences, texts and files (NDD, section 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import __version__, settings
from pipeline.errors import BadInput
from pipeline.metrics.ndd.weights import MU
from pipeline.tasks.ndd import masked_lm
from pipeline.text import sentences, trees
from pipeline.text.language import detect_language

if TYPE_CHECKING:
    from pipeline.metrics.ndd.distance import Divergence
    from pipeline.score.compress.scorers import Scorer
    from pipeline.score.compress.search import Compression, Search

Done = Callable[[int], None]


class How(NamedTuple):
    """What makes a system."""

    scorer: str
    has_trees: bool = False  # only whole subtrees are dropped (SC)


SCORERS = ("ndd", "fast_ndd", "ppl_deleter", "cosine", "bertscore")
SYSTEMS = {
    f"{scorer}{'_sc' if has_trees else ''}": How(scorer, has_trees) for scorer in SCORERS for has_trees in (False, True)
}
"""The unsupervised systems of tables 3, 5 and 12 by name."""
VECTORS = ("cosine", "bertscore")  # scorers that need states, which counts have not
SYSTEM, SYNTAX_SYSTEM = "ndd", "ndd_sc"
LONGEST_TEXT = 100_000  # characters of a text
LONGEST = 128  # words of a sentence; what has more is cut, as the search takes the square of it
_SENTENCES = 64  # searched at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of the distance."""

    divergence: "Divergence" = "kl"
    weighting: str = "balanced"
    mu: float = MU
    nu: float = 1.0  # below 1 later words are dropped more easily


def known(system: str) -> How:
    """A system by its name."""
    if system not in SYSTEMS:
        raise BadInput(f"no system {system!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[system]


def scorer(name: str, found: masked_lm.Opened, numbers: Numbers | None = None) -> "Scorer":
    """What scores spans.

    Raises:
        BadInput: the scorer compares states and the model is of counts, which have none; or a number is none.
    """
    from pipeline.metrics.ndd.distance import DIVERGENCES
    from pipeline.metrics.ndd.weights import WEIGHTS
    from pipeline.score.compress import scorers

    numbers = numbers or Numbers()
    if numbers.divergence not in DIVERGENCES or numbers.weighting not in WEIGHTS:
        raise BadInput(f"expected a divergence of {', '.join(DIVERGENCES)} and weights of {', '.join(WEIGHTS)}")
    if not 0 < numbers.mu <= 1 or not 0 < numbers.nu <= 1:
        raise BadInput(f"mu and nu should be above 0 and at most 1, found {numbers.mu} and {numbers.nu}")
    if name in VECTORS and masked_lm.is_counts(found):
        raise BadInput(f"{name} compares the states of a transformer, which a model of counts has not; give --model")
    if name == "ppl_deleter":
        return scorers.perplexity(found.model)
    if name == "cosine":
        return scorers.cosine(found.model)  # type: ignore[arg-type]  # a transformer, as was checked
    if name == "bertscore":
        return scorers.bertscore(found.model)  # type: ignore[arg-type]
    return scorers.ndd(
        found.model, divergence=numbers.divergence, weighting=numbers.weighting, mu=numbers.mu, nu=numbers.nu,
        is_fast=name == "fast_ndd",
    )  # fmt: skip


def compressed(
    words: Sequence[Sequence[str]], system: str, found: masked_lm.Opened, search: "Search | None" = None,
    numbers: Numbers | None = None, heads: Sequence[Sequence[int]] | None = None, done: Done = lambda _: None,
) -> "list[Compression]":  # fmt: skip
    """Compressions of sentences by a system; a few sentences at a time, so that memory does not grow with them."""
    from pipeline.score.compress.search import Search, compress

    how, search = known(system), search or Search()
    if how.has_trees and heads is None:
        raise BadInput(f"{system} drops whole subtrees alone and needs a tree of each sentence: --syntax F.conllu")
    try:
        scoring, every = scorer(how.scorer, found, numbers), []
        for at in range(0, len(words), _SENTENCES):
            part = slice(at, at + _SENTENCES)
            some = heads[part] if how.has_trees and heads is not None else None
            every += compress(words[part], scoring, search, some, done)
    except ValueError as why:
        raise BadInput(str(why)) from why
    return every


def heads(words: Sequence[Sequence[str]], lang: str, syntax: Path | None = None) -> list[tuple[int, ...] | None]:
    """Heads of each sentence, of a CoNLL-U file or of stanza's models; None where the file lacks the sentence.

    Raises:
        Missing: there is neither a file nor a parser of the language.
    """
    if syntax:
        return [tree and tree.heads for tree in trees.match_trees(trees.read(syntax), words)]
    parse = trees.load_parser(settings.resources() / "stanza", lang)
    return [tree.heads for tree in parse(words)]


def texts(
    rows: pl.DataFrame, column: str, ref: str | None = None, system: str = SYSTEM, search: "Search | None" = None,
    numbers: Numbers | None = None, syntax: Path | None = None, done: Done = lambda _: None,
) -> pl.DataFrame:  # fmt: skip
    """Any frame with its texts compressed, sentence by sentence.

    Returns:
        The frame with `compressed`, `ratio` (words that stay, a share), `after` (the text after each round, the last as
        `compressed`) and `signature`; all null where there is no text.

    Raises:
        BadInput: a text of more than 100,000 characters; a sentence that has no tree where the system needs one.
    """
    said = rows.select(text=pl.col(column).fill_null("")).with_columns(lang=detect_language())
    longest = max(map(len, said["text"]), default=0)
    if longest > LONGEST_TEXT:
        raise BadInput(f"a text of {longest:,} characters; texts of up to {LONGEST_TEXT:,} can be compressed")
    found: list[tuple[str | None, float | None, list[str] | None, str | None]] = [(None, None, None, None)] * len(said)
    for (lang,), part in said.with_row_index("at").partition_by("lang", as_dict=True, maintain_order=True).items():
        opened = masked_lm.opened(ref, spoken(str(lang)))
        cut = [_sentences(text, str(lang)) for text in part["text"]]
        every = [each.words for some in cut for _, each in some]
        above = _all_heads(every, spoken(str(lang)), syntax) if known(system).has_trees else None
        answers = iter(compressed(every, system, opened, search, numbers, above))
        signed = signature(system, opened, search, numbers)
        for at, some in zip(part["at"], cut, strict=True):
            if some:
                found[at] = (*_of_text(some, [next(answers) for _ in some], str(lang)), signed)
            done(1)
    kinds: dict[str, Any] = {
        "compressed": pl.String,
        "ratio": pl.Float64,
        "after": pl.List(pl.String),
        "signature": pl.String,
    }
    made = pl.DataFrame(found, schema=kinds, orient="row")
    return rows.drop(made.columns, strict=False).hstack(made)


def _sentences(text: str, lang: str) -> list[tuple[int, sentences.Sentence]]:
    """Sentences with the lines they stand in; of those longer than `LONGEST` words the parts."""
    return [
        (line, sentences.Sentence(each.words[at : at + LONGEST], each.blanks[at : at + LONGEST]))
        for line, told in enumerate(text.splitlines())
        for each in sentences.split_sentences(told, lang)
        for at in range(0, len(each.words), LONGEST)
    ]


def spoken(lang: str) -> str:
    """The language whose model answers: Chinese for what is written without blanks, else English."""
    return "zh" if lang in ("zh", "ja") else "en"


def _all_heads(words: Sequence[Sequence[str]], lang: str, syntax: Path | None) -> list[tuple[int, ...]]:
    found = []
    for sentence, each in zip(words, heads(words, lang, syntax), strict=True):
        if each is None:
            raise BadInput(f"{syntax}: no tree of the words {' '.join(sentence)[:80]!r}")
        found.append(each)
    return found


def _of_text(
    cut: Sequence[tuple[int, sentences.Sentence]], answers: "Sequence[Compression]", lang: str
) -> tuple[str, float, list[str]]:
    """What is left at last, its share of the words, and what is left after each round; lines stay lines."""
    between = "" if spoken(lang) == "zh" else " "
    after = []
    for number in range(1, max(1, *(int(each.rounds.max()) for each in answers)) + 1):
        lines: dict[int, list[str]] = {}
        for (line, one), each in zip(cut, answers, strict=True):
            lines.setdefault(line, []).append(sentences.join_words(one, each.after(number).tolist()))
        after.append("\n".join(between.join(part) for part in lines.values()))
    kept, words = sum(int(each.is_kept.sum()) for each in answers), sum(len(each.words) for _, each in cut)
    return after[-1], kept / words, after


def signature(
    system: str, found: masked_lm.Opened, search: "Search | None" = None, numbers: Numbers | None = None
) -> str:
    """What made a compression, as text: system, model, and the numbers that are not as usual."""
    from pipeline.score.compress.search import Search

    told: list[str] = []
    for given, usual in ((search or Search(), Search()), (numbers or Numbers(), Numbers())):
        told += [
            f"{name}:{getattr(given, name):g}"
            if isinstance(getattr(given, name), float)
            else f"{name}:{getattr(given, name)}"
            for name in type(given).__slots__
            if getattr(given, name) != getattr(usual, name)
        ]
    return "|".join([f"compression:{system}", found.model.signature, *told, f"undertone:{__version__}"])
