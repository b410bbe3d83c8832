"""Questions to a judge about texts, and its answers: a score, labels, or which of two texts is more implicit."""

import json
import math
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from pipeline.errors import check_name
from pipeline.llm.questions import answer

OUTCOMES = {"a": 1, "b": -1, "tie": 0}  # of a comparison: 1 for the first text
_TAGS: tuple[object, ...] = (1, 0, -1)
_EMOTIONS = ("anger", "fear", "disgust", "trust", "joy", "surprise", "anticipation", "sad", "None")
_LABELS = ("subtext", "sarcasm", "metaphor", "exaggeration", "homophonic", "other", "sentiment")
_FENCE = re.compile(r"\A```(?:json)?\s(.*)```\Z", re.DOTALL)
_LEAST_MASS = 0.5  # of the probability must be on the scores, else the text of the answer counts


class Rubric(NamedTuple):
    """What an answer holds: each field with its values. The first field is the value of the text."""

    fields: Mapping[str, tuple[object, ...]]
    has_pairs: bool = False  # whether two texts can be compared by it

    @property
    def levels(self) -> list[int]:
        """The values of the text, from the lowest."""
        return sorted(level for level in next(iter(self.fields.values())) if isinstance(level, int))


RUBRICS = {
    "implicitness": Rubric({"score": (0, 1, 2, 3, 4)}, has_pairs=True),
    "quality": Rubric({"score": (1, 2, 3, 4, 5)}),  # of comments (commenting, appendix A.1)
    "subtext": Rubric({**dict.fromkeys(_LABELS, _TAGS), "emotion": _EMOTIONS}),  # eight kinds (CSD, section 3.2)
}
"""What a judge can be asked, by name; each has prompts `judge_NAME_scale_LANG`, some `judge_NAME_pair_LANG`."""
PAIR = Rubric({"more_implicit": tuple(OUTCOMES)})  # what the answer to a comparison holds


def get_rubric(name: str) -> Rubric:
    return RUBRICS[check_name("rubric", name, RUBRICS)]


def parse_labels(response: str, rubric: Rubric) -> tuple[dict[str, Any], str | None]:
    """Return the fields of a rubric in an answer of one JSON object; or a reason: malformed, out_of_range."""
    try:
        entry = json.loads(_FENCE.sub(r"\1", answer.strip_thinking(response).strip()))
    except (ValueError, RecursionError):  # broken, a number of too many digits, too deep
        return {}, "malformed"
    if not isinstance(entry, dict) or not rubric.fields.keys() <= entry.keys():
        return {}, "malformed"
    labels = {name: entry[name] for name in rubric.fields}
    if any(isinstance(value, bool) or not isinstance(value, str | int) for value in labels.values()):
        return {}, "malformed"
    is_valid = all(value in rubric.fields[name] for name, value in labels.items())
    return (labels, None) if is_valid else ({}, "out_of_range")


def weigh_score(logprobs: str | None, rubric: Rubric) -> tuple[float, float] | None:
    """Return mean and variance of the score by its digits' probabilities; None if half of these are off the levels."""
    tokens = json.loads(logprobs) if logprobs else []
    starts = [0, *accumulate(len(token) for token, _ in tokens)]
    matches = list(re.finditer(r'"score"\s*:\s*(\d)', "".join(token for token, _ in tokens)))
    if not matches:
        return None
    # the last one stands after all reasoning
    place = max(index for index, start in enumerate(starts) if start <= matches[-1].start(1))
    masses = dict.fromkeys(rubric.levels, 0.0)
    for alternative, logprob in tokens[place][1].items():
        digits = re.fullmatch(r"\D*(\d)\D*", alternative)
        if digits and int(digits[1]) in masses and logprob <= 0:
            masses[int(digits[1])] += math.exp(logprob)
    total = sum(masses.values())
    if total < _LEAST_MASS:
        return None
    mean = sum(level * mass for level, mass in masses.items()) / total
    return mean, sum((level - mean) ** 2 * mass for level, mass in masses.items()) / total
