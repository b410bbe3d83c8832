"""The two ways to judge the texts of one language, round by round."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline import __version__
from pipeline.errors import BadInput
from pipeline.left_out import record_note
from pipeline.llm.ledger.answers import Answer
from pipeline.llm.questions import judging
from pipeline.llm.questions.answer import format_question
from pipeline.llm.request import Request, dump_json
from pipeline.metrics.judging import bradley_terry, reliability
from pipeline.tasks import asking

SCALE, PAIRWISE = "scale", "pairwise"
LOGPROBS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 20}  # what `scale` asks a server for by default
SCHEMA: dict[str, Any] = {"item": pl.Int64, **dict.fromkeys(("value", "low", "high"), pl.Float64), "answers": pl.Int64}
SCHEMA |= {"signature": pl.String}
DECIMALS = 6


class Plan(NamedTuple):
    """How to judge."""

    rubric: str = "implicitness"
    mode: str = SCALE
    repeats: int = 3  # answers to a text on a scale, where the server gives no log probabilities
    comparisons: int = 10  # for each text, so that it is in twice as many
    rounds: int = 10  # into which the comparisons are divided
    seed: int = 42

    @property
    def metric(self) -> str:
        """The metric of the values in `scores`."""
        return f"{self.rubric}_judged"

    @property
    def columns(self) -> list[str]:
        """The columns that are added to rows."""
        labels = [*judging.get_rubric(self.rubric).fields][1:] if self.mode == SCALE else []
        return [self.metric, *[name for name in SCHEMA if name not in ("item", "value")], *labels]


@dataclass
class Session:
    """The texts (item, text, context) of a language, and what was asked about them in the last round."""

    items: pl.DataFrame
    lang: str  # en or zh
    plan: Plan
    options: asking.Options
    targets: dict[str, Any] = field(default_factory=dict)  # what each request is about, by its key
    reasons: dict[str, str] = field(default_factory=dict)  # why an answer could not be read, by the key of its request
    version: str = ""  # of the prompt
    round_count: int = 0
    request_count: int = 0  # at most, of all rounds

    def __post_init__(self) -> None:
        """Check the plan, and prepare what a mode keeps."""

    def build_request(self, kind: str, fields: Mapping[str, Any]) -> Request:
        """Build a request about the fields of a question."""
        name = f"judge_{self.plan.rubric}_{kind}_{self.lang}"
        request = asking.build_request(name, format_question(fields), self.options)
        self.version = request.prompt_version
        return request

    def parse_answers(self, answers: Mapping[str, Answer], rubric: judging.Rubric) -> list[tuple[Any, Answer, Any]]:
        """List target, answer and labels of the answers to the last round; note why others cannot be read."""
        parsed = []
        for key, target in self.targets.items():
            if answer := answers.get(key):
                labels, reason = judging.parse_labels(answer.response, rubric)
                if reason := "truncated" if answer.is_cut else reason:
                    self.reasons[key] = reason
                else:
                    parsed.append((target, answer, labels))
        return parsed

    def sign(self, detail: str) -> str:
        """Build the signature of values: who was asked by which prompt, and how often."""
        model = f"{self.options.model}@{self.options.revision}" if self.options.revision else self.options.model
        changes = {name: value for name, value in self.options.params.items() if name not in LOGPROBS}
        params = f"|params:{dump_json(changes)}" if changes else ""
        prompt = f"rubric:{self.version}|lang:{self.lang}|{detail}{params}"
        return f"{self.plan.metric}|judge:{model}|mode:{self.plan.mode}|{prompt}|undertone:{__version__}"


class Scale(Session):
    """Each text is scored by itself: once where the server gives log probabilities, else `plan.repeats` times."""

    def __post_init__(self) -> None:
        if self.plan.repeats < 1:
            raise BadInput(f"expected at least 1 answer for each text, found {self.plan.repeats}")
        self.rubric = judging.get_rubric(self.plan.rubric)
        self.round_count = min(self.plan.repeats, 2)
        self.request_count = self.items.height * self.plan.repeats
        self.labels: dict[int, list[dict[str, Any]]] = defaultdict(list)  # by item
        self.weighed: dict[int, tuple[float, float]] = {}  # mean and variance by item

    def list_requests(self, number: int) -> list[Request]:
        """List a request for each text, then the further ones of the texts whose answer has no log probabilities."""
        requests, self.targets = [], {}
        for item, *fields in self.items.iter_rows():
            first = self.build_request("scale", dict(zip(("text", "context"), fields, strict=True)))
            for attempt in range(1, self.plan.repeats) if number else range(1):
                if item not in self.weighed:
                    requests.append(first._replace(attempt=attempt))
                    self.targets[requests[-1].key] = item
        return requests

    def add_answers(self, answers: Mapping[str, Answer]) -> None:
        """Add the answers to the last round."""
        for item, answer, labels in self.parse_answers(answers, self.rubric):
            self.labels[item].append(labels)
            if weighed := judging.weigh_score(answer.logprobs, self.rubric):
                self.weighed[item] = weighed

    def estimate(self) -> pl.DataFrame:
        """Compute the mean of the answers to each text, weighted by log probabilities if any, and its interval."""
        first, *other_fields = self.rubric.fields
        grades = {item: np.array([labels[first] for labels in rows], float) for item, rows in self.labels.items()}
        degrees = sum(len(values) - 1 for values in grades.values())
        spread = sum(values.var() * len(values) for values in grades.values()) / degrees if degrees else None
        rows = []
        for item, values in grades.items():
            mean, variance = self.weighed.get(item, (values.mean(), spread and spread / len(values)))
            half = None if variance is None else bradley_terry.Z * variance**0.5
            levels = self.rubric.levels
            edges = (None, None) if half is None else (max(mean - half, levels[0]), min(mean + half, levels[-1]))
            signature = self.sign(f"answers:{'weighted' if item in self.weighed else len(values)}")
            counts = [Counter(str(labels[name]) for labels in self.labels[item]) for name in other_fields]
            rows.append((item, mean, *edges, len(values), signature, *(count.most_common(1)[0][0] for count in counts)))
        return pl.DataFrame(rows, schema={**SCHEMA, **dict.fromkeys(other_fields, pl.String)}, orient="row")

    def check(self) -> pl.DataFrame:
        """Check that the answers come from the texts."""
        if self.weighed:
            means, variances = np.array([*self.weighed.values()]).T
            return reliability.check_grades(np.array([*self.weighed]), means, variances)
        first = next(iter(self.rubric.fields))
        pairs = [(item, labels[first]) for item, rows in self.labels.items() for labels in rows]
        items, grades = np.array(pairs, float).reshape(-1, 2).T
        return reliability.check_grades(items.astype(int), grades)


class Pairwise(Session):
    """Texts are compared two by two."""

    def __post_init__(self) -> None:
        if not judging.get_rubric(self.plan.rubric).has_pairs:
            raise BadInput(f"texts are not compared by the rubric {self.plan.rubric!r}; use the mode {SCALE!r}")
        if min(self.plan.comparisons, self.plan.rounds) < 1:
            raise BadInput("expected at least 1 comparison for each text and 1 round")
        size = self.items.height
        if size == 1:
            record_note(f"{self.lang}: one text has no value, as there is no other to compare it with")
        self.round_count = self.plan.rounds if size > 1 else 0
        self.request_count = min(self.plan.comparisons * size, size * (size - 1))
        self.pairs: list[bradley_terry.Pair] = []  # all that were asked about
        self.outcomes: list[tuple[int, int, int]] = []
        self.fit: bradley_terry.Estimates | None = None

    def list_requests(self, number: int) -> list[Request]:
        """List the comparisons of a round: at first of random pairs in both orders, then where least is known."""
        size = self.items.height
        pairs = bradley_terry.draw_first_pairs(size, self.plan.seed)
        if self.plan.rounds == 1:
            count = self.request_count - len(pairs)
            pairs += bradley_terry.choose_pairs(np.zeros(size), np.ones(size), pairs, count, self.plan.seed)
        if number:
            comparisons = self._collect()
            fit = bradley_terry.fit_values(comparisons, size)
            errors = bradley_terry.approximate_errors(comparisons, fit)
            rounded = fit.values.round(DECIMALS), errors.round(DECIMALS)  # the same pairs on each machine
            count = -(-(self.request_count - len(self.pairs)) // (self.plan.rounds - number))
            pairs = bradley_terry.choose_pairs(*rounded, self.pairs, count, self.plan.seed + number)
        self.pairs += pairs
        texts = self.items.select("text", "context").to_dicts()
        requests = [self.build_request("pair", {"a": texts[a], "b": texts[b]}) for a, b in pairs]
        self.targets = {request.key: pair for request, pair in zip(requests, pairs, strict=True)}
        return requests

    def add_answers(self, answers: Mapping[str, Answer]) -> None:
        """Add the outcomes of the last round."""
        for pair, _, labels in self.parse_answers(answers, judging.PAIR):
            self.outcomes.append((*pair, judging.OUTCOMES[labels["more_implicit"]]))

    def _collect(self) -> bradley_terry.Comparisons:
        return bradley_terry.Comparisons(*np.array(self.outcomes, np.int64).reshape(-1, 3).T)

    def estimate(self) -> pl.DataFrame:
        """Estimate the values in log-odds, with a mean of 0."""
        comparisons, size = self._collect(), self.items.height
        self.fit = fit = bradley_terry.estimate(comparisons, size)
        half = bradley_terry.Z * fit.errors
        texts = dump_json(self.items.select("text", "context").rows())
        columns: dict[str, Any] = {"value": fit.values, "low": fit.values - half, "high": fit.values + half}
        columns["answers"] = np.bincount(np.concatenate(comparisons[:2]), minlength=size)
        name = f"comparisons:{len(self.outcomes)}|set:{hashlib.sha256(texts.encode()).hexdigest()[:12]}"
        frame = pl.DataFrame({"item": self.items["item"], **columns, "signature": self.sign(name)}, schema=SCHEMA)
        return frame.filter(pl.col("answers") > 0)

    def check(self) -> pl.DataFrame:
        """Check that the answers come from the texts and not from their places."""
        return reliability.check_comparisons(self._collect(), self.fit.p_equal if self.fit else 0.0)


MODES: dict[str, type[Scale] | type[Pairwise]] = {SCALE: Scale, PAIRWISE: Pairwise}
