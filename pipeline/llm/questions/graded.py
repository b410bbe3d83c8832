"""Asking a model for a graded group: one intent said in five ways, from the most explicit to the most implicit.

Models like to make hints longer, or to put them as questions, and then a ranking measures that: `balance` finds what
gives the level away, so that such a set is refused with the numbers that are against it.
"""

import re
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.llm import prompt
from pipeline.llm.questions import answer

SENTENCES = 5
CUES = {
    "question": "[?？]",
    "exclamation": "[!！]",
    "ellipsis": r"…|\.\.\.",
    "negation": r"(?i)\b(?:not|no|never|nothing|nobody|none)\b|n['’]t\b|[不没别]",
    "first_person": r"(?i)\b(?:i|me|my|mine|we|us|our)\b|[我咱]",
    "second_person": r"(?i)\b(?:you|your|yours)\b|[你您]",
}
"""Surface cues by name, as patterns."""
TAU = 0.03  # mean Kendall tau of level and length that is let pass
RATIO = 1.05  # mean length of the longest level by that of the shortest
SPREAD = 0.1  # difference between the levels' shares of sentences with a cue
_ERRORS = 3  # standard errors that chance may add to each limit in a small set
_HAN = re.compile(r"[\u4e00-\u9fff]")
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and halves of surrogate pairs


class Parsed(NamedTuple):
    """The sentences from most explicit to most implicit, or the reason there are none."""

    sentences: list[str] | None
    reason: str | None


class Balance(NamedTuple):
    """What the levels look like, and whether that gives them away."""

    levels: pl.DataFrame  # level, n, length (mean characters), and of each cue the share of sentences that have it
    checks: pl.DataFrame  # check, value, limit, holds

    @property
    def faults(self) -> list[str]:
        """The checks that do not hold, in words; none for a balanced set."""
        failed = self.checks.filter(~pl.col("holds")).iter_rows(named=True)
        return [f"{row['check']} is {row['value']:.3f}, expected at most {row['limit']:.3f}" for row in failed]


def messages(intent: str, lang: str, folder: Path | None = None) -> list[dict[str, str]]:
    """Messages that ask for one group of an intent, in English or Chinese (`lang` en or zh)."""
    return prompt.messages(intent, f"graded_{lang}", folder)


def parse(text: str, lang: str) -> Parsed:
    """The group in an answer: a JSON object; reasoning, words or a code fence around it are passed over.

    Returns:
        Five sentences; or a reason: malformed, wrong_count, repeated, other_language.
    """
    entry = next(answer.objects(answer.without_thinking(text)), None)
    sentences = entry.get("sentences") if entry else None
    if not isinstance(sentences, list) or not all(isinstance(s, str) and s.strip() for s in sentences):
        return Parsed(None, "malformed")
    said = [s.strip() for s in sentences]
    if any(_UNFIT.search(s) for s in said):
        return Parsed(None, "malformed")
    if len(said) != SENTENCES:
        return Parsed(None, "wrong_count")
    if len({s.casefold() for s in said}) < SENTENCES:
        return Parsed(None, "repeated")
    if any(bool(_HAN.search(s)) != (lang == "zh") for s in said):
        return Parsed(None, "other_language")
    return Parsed(said, None)


def balance(groups: pl.DataFrame) -> Balance:
    """Whether length, punctuation or words give the level away.

    Length is compared by the mean of the groups' Kendall tau (equation 11: a tie is neither way) and by the ratio of
    the levels' means; each cue by the difference of the levels' shares. What chance would give a set of that size,
    three standard errors, is added to each limit, so that a few groups are not refused for nothing.

    Args:
        groups: a row a sentence: group, level (from 1), text.

    Raises:
        ValueError: there are no sentences.
    """
    if not len(groups):
        raise ValueError("expected at least one group")
    size = pl.col("text").str.len_chars().cast(pl.Int64)
    cues = {name: pl.col("text").str.contains(pattern) for name, pattern in CUES.items()}
    rows = groups.select("group", "level", length=size, **cues)
    shares = [pl.col(name).mean() for name in CUES]
    levels = rows.group_by("level").agg(pl.len().alias("n"), pl.col("length").mean(), *shares).sort("level")
    least = int(levels["n"].to_numpy().min())
    count = groups["group"].n_unique()

    checks = [("tau of length and level", abs(_tau(rows)), TAU + _ERRORS * (_variance(len(levels)) / count) ** 0.5)]
    spread = float(rows.select(pl.col("length").std(ddof=0) / pl.col("length").mean()).item())
    means = levels["length"].to_numpy()
    ratio = float(means.max() / means.min())
    checks.append(("longest by shortest level", ratio, RATIO + _ERRORS * spread * (2 / least) ** 0.5))
    for name in CUES:
        share = float(rows.select(pl.col(name).mean()).item())
        found = levels[name].to_numpy()
        limit = SPREAD + _ERRORS * (2 * share * (1 - share) / least) ** 0.5
        checks.append((f"difference of {name} shares", float(found.max() - found.min()), limit))
    table = pl.DataFrame(checks, schema={"check": pl.String, "value": pl.Float64, "limit": pl.Float64}, orient="row")
    return Balance(levels, table.with_columns(holds=pl.col("value") <= pl.col("limit")))


def _tau(rows: pl.DataFrame) -> float:
    """Mean over groups of (pairs whose length rises with the level - those whose falls) / all pairs."""
    pairs = rows.join(rows, on="group", suffix="_b").filter(pl.col("level") < pl.col("level_b"))
    way = (pl.col("length_b") - pl.col("length")).sign()
    mean = pairs.group_by("group").agg(way.mean().alias("tau"))["tau"].to_numpy()
    return float(mean.mean()) if len(mean) else 0.0


def _variance(n: int) -> float:
    """Variance of Kendall's tau of n items in random order."""
    return 2 * (2 * n + 5) / (9 * n * (n - 1)) if n > 1 else 0.0
