"""The thirteen data sets ImpScore was trained on (section 4, table 6), and sentences of one's own.

In: the files as their makers published them. Out: rows of the table `sentences` but for its source, and those left
out with a reason. Nothing is downloaded; each reader's docstring names the layout it expects.
"""

from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources import dialogue, hate, opinion
from pipeline.examples.sources.layout import Read, Source, kept
from pipeline.examples.sources.own import own

__all__ = ["SOURCES", "Read", "Source", "read", "read_own"]

LABELS = "labels"
GPT35 = "gpt-3.5-turbo-0125"  # the footnote of Table 6
GPT4 = "gpt-4o"

SOURCES: dict[str, Source] = {
    "toxigen": Source(hate.toxigen, hate.PROMPT, 2_648, GPT35),
    "latent_hatred": Source(hate.latent_hatred, None, 12_036, LABELS),
    "dghsd": Source(hate.dghsd, hate.PROMPT, 3_415, GPT35),
    "ishate": Source(hate.ishate, hate.PROMPT, 25_193, GPT35),
    "sbic": Source(hate.sbic, None, 8_316, LABELS),
    "implicatures": Source(dialogue.implicatures, dialogue.PROMPT, 955, GPT35),
    "imppres": Source(dialogue.imppres, None, 300, LABELS),
    "ludwig": Source(dialogue.ludwig, None, 718, GPT35),  # see dialogue.LUDWIG_ALTERNATIVE
    "semeval_irony": Source(opinion.semeval_irony, "irony_en", 1_316, GPT4),
    "absa": Source(opinion.absa, "review_en", 933, GPT35),
    "snarks": Source(opinion.snarks, "sarcasm_en", 180, GPT4),
    "r3": Source(opinion.r3, None, 150, LABELS),
    "pdtb": Source(dialogue.pdtb, None, 130, LABELS),
}
"""By name, in the order of Table 6."""


def read(name: str, path: Path, keep: pl.Expr | None = None) -> Read:
    """Sentences of one of the thirteen.

    Args:
        name: A key of SOURCES.
        path: The published file, or the folder of the published files.
        keep: Which sentences to keep, over the columns of the answer; the others are dropped as `filtered`. For
            pairs that differ in entailment but not in implicitness (IMP-18).

    Raises:
        BadInput: for another name, absent files, and what breaks the layout, by file, line and field.
    """
    if name not in SOURCES:
        raise BadInput(f"there is no source {name!r}; expected one of {', '.join(SOURCES)}")
    return _checked(name, SOURCES[name].read(path), keep)


def read_own(path: Path, keep: pl.Expr | None = None) -> Read:
    """Sentences of a file of one's own with a column `text` (see `own.own` for the others); `keep` as in `read`."""
    return _checked("own", own(path), keep)


def _checked(name: str, found: Read, keep: pl.Expr | None) -> Read:
    from pipeline.tables import Sentences

    found = found if keep is None else kept(found, keep)
    Sentences.validate(found.sentences.with_columns(source=pl.lit(name)))
    return found
