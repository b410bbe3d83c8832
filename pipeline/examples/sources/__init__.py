"""The thirteen data sets that ImpScore was trained on (section 4, table 6), and a user's own sentences.

In: the files as their makers published them. Out: rows of the table `sentences` without `source`, and the dropped rows
with a reason. Nothing is downloaded; each reader's docstring describes the layout that it expects.
"""

from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources import dialogue, hate, opinion, own
from pipeline.examples.sources.dialogue import LUDWIG_ALTERNATIVE
from pipeline.examples.sources.layout import Read, Source

__all__ = ["LUDWIG_ALTERNATIVE", "READERS", "SOURCES", "Read", "Source", "read", "read_own"]

LABELS = "labels"
GPT35 = "gpt-3.5-turbo-0125"  # the footnote of Table 6
GPT4 = "gpt-4o"

SOURCES: dict[str, Source] = {
    "toxigen": Source(hate.read_toxigen, hate.PROMPT, 2_648, GPT35),
    "latent_hatred": Source(hate.read_latent_hatred, None, 12_036, LABELS),
    "dghsd": Source(hate.read_dghsd, hate.PROMPT, 3_415, GPT35),
    "ishate": Source(hate.read_ishate, hate.PROMPT, 25_193, GPT35),
    "sbic": Source(hate.read_sbic, None, 8_316, LABELS),
    "implicatures": Source(dialogue.read_implicatures, dialogue.PROMPT, 955, GPT35),
    "imppres": Source(dialogue.read_imppres, None, 300, LABELS),
    "ludwig": Source(dialogue.read_ludwig, None, 718, GPT35),  # see dialogue.LUDWIG_ALTERNATIVE
    "semeval_irony": Source(opinion.read_semeval_irony, "irony_en", 1_316, GPT4),
    "absa": Source(opinion.read_absa, "review_en", 933, GPT35),
    "snarks": Source(opinion.read_snarks, "sarcasm_en", 180, GPT4),
    "r3": Source(opinion.read_r3, None, 150, LABELS),  # "Original" in Table 6, whose text speaks of prompting (IMP-15)
    "pdtb": Source(dialogue.read_pdtb, None, 130, LABELS),
}
"""By name, in the order of Table 6."""
READERS = {name: source.read for name, source in SOURCES.items()} | {"davidson": hate.read_davidson}
"""Of these and of Davidson, whose implicitness is measured (section 7.1), and of which no pair is built."""


def read(name: str, path: Path, keep: pl.Expr | None = None) -> Read:
    """Read the sentences of one of the `READERS` from its published file or folder.

    Sentences that do not fulfil `keep`, a condition on the columns of the result, are dropped as `filtered`: for pairs
    that differ in entailment but not in implicitness (IMP-18). BadInput for an unknown name, absent files, or a fault
    in the layout, with file, line and field.
    """
    if name not in READERS:
        raise BadInput(f"there is no source {name!r}; expected one of {', '.join(READERS)}")
    return _check(name, READERS[name](path), keep)


def read_own(path: Path, keep: pl.Expr | None = None) -> Read:
    """Read a user's file with a column `text` (`own.read_own` names the other columns); `keep` as in `read`."""
    return _check("own", own.read_own(path), keep)


def _check(name: str, rows: Read, keep: pl.Expr | None) -> Read:
    from pipeline.tables import Sentences

    Sentences.validate(rows.sentences.with_columns(source=pl.lit(name)))
    if keep is None:
        return rows
    is_kept = keep.fill_null(value=False)
    dropped = rows.sentences.filter(~is_kept).select(reason=pl.lit("filtered"), row_key="item_id")
    return Read(rows.sentences.filter(is_kept), pl.concat([rows.dropped, dropped]))
