"""Read a graded group from a model's answer: one intent in five ways, from the most explicit to the most implicit."""

import re
from typing import NamedTuple

import polars as pl

from pipeline.llm.questions import answer
from pipeline.reasons import find_fault

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
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and halves of surrogate pairs


class Parsed(NamedTuple):
    """The sentences from most explicit to most implicit, or the reason there are none."""

    sentences: list[str] | None
    reason: str | None


def parse(text: str, lang: str) -> Parsed:
    """Return the five sentences of an answer's JSON, or why not: malformed, wrong_count, repeated, other_language."""
    entry = next(answer.list_objects(answer.strip_thinking(text)), None)
    values = entry.get("sentences") if entry else None
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        return Parsed(None, "malformed")
    sentences = [value.strip() for value in values]
    reason = find_fault(
        malformed=any(_UNFIT.search(sentence) for sentence in sentences),
        wrong_count=len(sentences) != SENTENCES,
        repeated=len({sentence.casefold() for sentence in sentences}) < SENTENCES,
        other_language=any(answer.has_han(sentence) != (lang == "zh") for sentence in sentences),
    )
    return Parsed(None, reason) if reason else Parsed(sentences, None)


def balance(groups: pl.DataFrame) -> pl.DataFrame:
    """Measure whether length, punctuation or words give the level away.

    Length is compared by the mean of the groups' Kendall tau (equation 11: a tie is neither way) and by the ratio of
    the levels' means; each cue by the difference of the levels' shares. What chance would give a set of that size,
    three standard errors, is added to each limit, so that a few groups are not refused for nothing. A row is a
    sentence: group, level (from 1), text; ValueError without any. Returns check, value, limit, holds.
    """
    if not len(groups):
        raise ValueError("expected at least one group")
    cues = {name: pl.col("text").str.contains(pattern) for name, pattern in CUES.items()}
    rows = groups.select("group", "level", length=pl.col("text").str.len_chars().cast(pl.Int64), **cues)
    means = [pl.col(name).mean() for name in ("length", *CUES)]
    levels = rows.group_by("level").agg(pl.len().alias("n"), *means).sort("level")
    least = int(levels["n"].to_numpy().min())
    n = len(levels)
    variance = 2 * (2 * n + 5) / (9 * n * (n - 1)) if n > 1 else 0.0  # of one group's tau
    tau_error = (variance / groups["group"].n_unique()) ** 0.5
    pairs = rows.join(rows, on="group", suffix="_b").filter(pl.col("level") < pl.col("level_b"))
    direction = (pl.col("length_b") - pl.col("length")).sign()
    taus = pairs.group_by("group").agg(direction.mean().alias("tau"))["tau"].to_numpy()
    checks = [("tau of length and level", abs(float(taus.mean()) if len(taus) else 0.0), TAU + _ERRORS * tau_error)]
    spread = float(rows.select(pl.col("length").std(ddof=0) / pl.col("length").mean()).item())
    ratio = float(levels["length"].to_numpy().max() / levels["length"].to_numpy().min())
    checks.append(("longest by shortest level", ratio, RATIO + _ERRORS * spread * (2 / least) ** 0.5))
    for name in CUES:
        share = float(rows.select(pl.col(name).mean()).item())
        shares = levels[name].to_numpy()
        limit = SPREAD + _ERRORS * (2 * share * (1 - share) / least) ** 0.5
        checks.append((f"difference of {name} shares", float(shares.max() - shares.min()), limit))
    table = pl.DataFrame(checks, schema={"check": pl.String, "value": pl.Float64, "limit": pl.Float64}, orient="row")
    return table.with_columns(holds=pl.col("value") <= pl.col("limit"))
