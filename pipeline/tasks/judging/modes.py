"""The two ways to judge texts, round by round: each lists the requests of a round and takes the answers to them.

In both, `items` are distinct texts: text, context, lang (en or zh). `add_answers` gets the answers to the last round's
requests. `estimate` returns a row for each item with an answer: item, value, low,
high (95 %), answers (their number), signature, and `check` the checks of `metrics.judging.reliability`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline import __version__
from pipeline.errors import BadInput
from pipeline.llm.ledger.answers import Answer
from pipeline.llm.questions import judging
from pipeline.llm.request import Request, dump_json
from pipeline.metrics.judging import bradley_terry, pairing, reliability
from pipeline.metrics.judging.bradley_terry import Comparisons
from pipeline.tasks import asking
from pipeline.tasks.asking import Options

SCALE, PAIRWISE = "scale", "pairwise"
LOGPROBS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 20}  # what `scale` asks a server for by default
DECIMALS = 6
SCHEMA: dict[str, Any] = {"item": pl.Int64, **dict.fromkeys(("value", "low", "high"), pl.Float64), "answers": pl.Int64}


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


def _sign(plan: Plan, options: Options, lang: str, prompt_version: str, detail: str) -> str:
    """Build the signature of values: what they were asked of, by which prompt, and how often."""
    model = f"{options.model}@{options.revision}" if options.revision else options.model
    changes = {name: value for name, value in options.params.items() if name not in LOGPROBS}
    params = f"|params:{dump_json(changes)}" if changes else ""
    rubric = f"rubric:{prompt_version}|lang:{lang}|{detail}{params}"
    return f"{plan.metric}|judge:{model}|mode:{plan.mode}|{rubric}|undertone:{__version__}"


def _join_checks(checks: list[pl.DataFrame]) -> pl.DataFrame:
    """Join the checks of each language: lang, and the columns of `reliability.SCHEMA`."""
    return pl.concat([pl.DataFrame(schema={"lang": pl.String, **reliability.SCHEMA}), *checks])


@dataclass
class Scale:
    """Each text is scored by itself: once where the server gives log probabilities, else `plan.repeats` times."""

    items: pl.DataFrame
    plan: Plan
    options: Options
    reasons: dict[str, str] = field(default_factory=dict)  # why an answer could not be read, by key
    labels: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    weighed: dict[int, tuple[float, float]] = field(default_factory=dict)  # mean and variance by item

    def __post_init__(self) -> None:
        if self.plan.repeats < 1:
            raise BadInput(f"expected at least 1 answer for each text, found {self.plan.repeats}")
        self.rubric = judging.get_rubric(self.plan.rubric)
        self.round_count = 2 if self.plan.repeats > 1 else 1
        self.request_count = self.items.height * self.plan.repeats  # at most
        self.requests: dict[str, tuple[int, Request]] = {}

    def list_requests(self, number: int) -> list[Request]:
        """List a request for each text, then the further ones of the texts whose answer has no log probabilities."""
        names = [f"judge_{self.plan.rubric}_scale_{lang}" for lang in self.items["lang"]]
        rows = zip(names, *(self.items[name] for name in ("text", "context")), strict=True)
        fields = [(name, judging.format_question(judging.format_text(text, context))) for name, text, context in rows]
        first = {item: asking.build_request(*parts, self.options) for item, parts in enumerate(fields)}
        attempts = range(1, self.plan.repeats) if number else range(1)
        self.requests = {}
        for item, request in first.items():
            for attempt in attempts if item not in self.weighed else ():
                repeated = request._replace(attempt=attempt)
                self.requests[repeated.key] = (item, repeated)
        self.versions = {request.prompt: request.prompt_version for request in first.values()}
        return [request for _, request in self.requests.values()]

    def add_answers(self, answers: Mapping[str, Answer]) -> None:
        """Add the answers; one that is malformed is counted by its reason."""
        levels = self.rubric.levels
        for key, answer in answers.items():
            item = self.requests[key][0]
            parsed = judging.parse_labels(answer.response, self.rubric)
            if reason := "truncated" if answer.is_cut else parsed.reason:
                self.reasons[key] = reason
                continue
            self.labels[item].append(parsed.labels)
            if "score" in self.rubric.fields and (weighed := judging.weigh_score(answer.logprobs, levels)):
                self.weighed[item] = weighed

    def estimate(self) -> pl.DataFrame:
        """Compute the mean of the answers to each text; its interval is from the spread of all repeated answers.

        Where the server gave log probabilities, it is the mean weighted by them, and the interval that of one answer.
        """
        first = next(iter(self.rubric.fields))
        grades = {item: np.array([labels[first] for labels in rows], float) for item, rows in self.labels.items()}
        pooled = [(values.var() * len(values), len(values) - 1) for values in grades.values()]
        degrees = sum(count for _, count in pooled)
        spread = sum(total for total, _ in pooled) / degrees if degrees else None
        rows, levels = [], self.rubric.levels
        for item, values in sorted(grades.items()):
            mean, variance = self.weighed.get(item, (values.mean(), spread and spread / len(values)))
            half = None if variance is None else bradley_terry.Z * variance**0.5
            edges = (None, None) if half is None else (max(mean - half, levels[0]), min(mean + half, levels[-1]))
            detail = "answers:weighted" if item in self.weighed else f"answers:{len(values)}"
            lang = self.items["lang"][item]
            version = self.versions[f"judge_{self.plan.rubric}_scale_{lang}"]
            rows.append((item, mean, *edges, len(values), _sign(self.plan, self.options, lang, version, detail)))
        frame = pl.DataFrame(rows, schema={**SCHEMA, "signature": pl.String}, orient="row")
        return frame.with_columns(pl.col(pl.Float64).round(DECIMALS), *self._list_labels(frame["item"]))

    def _list_labels(self, items: pl.Series) -> list[pl.Series]:
        """List the most frequent label of each further field of the rubric."""
        names = list(self.rubric.fields)[1:]
        rows = [
            [Counter(str(labels[name]) for labels in self.labels[item]).most_common(1)[0][0] for name in names]
            for item in items
        ]
        return [pl.Series(name, [row[place] for row in rows], pl.String) for place, name in enumerate(names)]

    def check(self) -> pl.DataFrame:
        """Check for each language that the answers come from the texts."""
        first = next(iter(self.rubric.fields))
        langs = self.items["lang"].to_list()
        checks = []
        for lang in sorted({langs[item] for item in self.labels}):
            weighed = {item: pair for item, pair in self.weighed.items() if langs[item] == lang}
            if weighed:
                means, variances = (np.array(column) for column in zip(*weighed.values(), strict=True))
                part = reliability.check_grades(np.array([*weighed]), means, variances)
            else:
                pairs = [(i, labels[first]) for i, rows in self.labels.items() for labels in rows if langs[i] == lang]
                items, grades = np.array(pairs, float).T
                part = reliability.check_grades(items.astype(int), grades)
            checks.append(part.insert_column(0, pl.lit(lang).alias("lang")))
        return _join_checks(checks)


@dataclass
class Pairwise:
    """Texts are compared two by two, those of each language among themselves."""

    items: pl.DataFrame
    plan: Plan
    options: Options
    reasons: dict[str, str] = field(default_factory=dict)  # why an answer could not be read, by key

    def __post_init__(self) -> None:
        if not judging.get_rubric(self.plan.rubric).has_pairs:
            raise BadInput(f"texts are not compared by the rubric {self.plan.rubric!r}; use the mode {SCALE!r}")
        if min(self.plan.comparisons, self.plan.rounds) < 1:
            raise BadInput("expected at least 1 comparison for each text and 1 round")
        rows = self.items.with_row_index("item").partition_by("lang", as_dict=True, maintain_order=True)
        self.members = {str(lang): part["item"].to_list() for (lang,), part in rows.items() if part.height > 1}
        self.asked: dict[str, list[pairing.Pair]] = {lang: [] for lang in self.members}
        self.outcomes: dict[str, list[tuple[int, int, int]]] = {lang: [] for lang in self.members}
        self.requests: dict[str, tuple[str, pairing.Pair, Request]] = {}
        self.fits: dict[tuple[int, ...], dict[str, bradley_terry.Estimates]] = {}
        self.round_count = self.plan.rounds
        sizes = [len(members) for members in self.members.values()]
        self.request_count = sum(min(self.plan.comparisons * size, size * (size - 1)) for size in sizes)
        self.versions: dict[str, str] = {}

    def list_requests(self, number: int) -> list[Request]:
        """List the comparisons of a round: at first of random pairs in both orders, then where least is known."""
        self.requests = {}
        for lang, members in self.members.items():
            size = len(members)
            if number == 0:
                pairs = pairing.draw_first_pairs(size, self.plan.seed)
            else:
                asked, rest = self.asked[lang], self.plan.comparisons * size - len(self.asked[lang])
                comparisons = self._collect(lang)
                fit = bradley_terry.fit_values(comparisons, size)
                values = fit.values.round(DECIMALS)  # the same pairs on each machine
                errors = bradley_terry.approximate_errors(comparisons, fit).round(DECIMALS)
                count = -(-rest // (self.plan.rounds - number))
                pairs = pairing.choose_pairs(values, errors, asked, count, self.plan.seed + number)
            self.asked[lang] += pairs
            for pair in pairs:
                request = self._build_request(lang, *(members[place] for place in pair))
                self.requests[request.key] = (lang, pair, request)
        return [request for _, _, request in self.requests.values()]

    def _build_request(self, lang: str, a: int, b: int) -> Request:
        texts = [judging.format_text(*self.items.row(item, named=False)[:2]) for item in (a, b)]
        question = judging.format_question(dict(zip("ab", texts, strict=True)))
        request = asking.build_request(f"judge_{self.plan.rubric}_pair_{lang}", question, self.options)
        self.versions[lang] = request.prompt_version
        return request

    def add_answers(self, answers: Mapping[str, Answer]) -> None:
        """Add the outcomes; an answer that is malformed is counted by its reason."""
        for key, (lang, pair, _) in self.requests.items():
            if not (answer := answers.get(key)):
                continue
            parsed = judging.parse_choice(answer.response)
            if reason := "truncated" if answer.is_cut else parsed.reason:
                self.reasons[key] = reason
            else:
                self.outcomes[lang].append((*pair, parsed.labels["outcome"]))

    def _collect(self, lang: str) -> Comparisons:
        return Comparisons(*np.array(self.outcomes[lang], np.int64).reshape(-1, 3).T)

    def _fit(self) -> dict[str, bradley_terry.Estimates]:
        """Estimate the values of each language; once for the same answers, since the largest fits take seconds."""
        key = tuple(map(len, self.outcomes.values()))
        if key not in self.fits:
            sizes = {lang: len(members) for lang, members in self.members.items()}
            self.fits = {key: {lang: bradley_terry.estimate(self._collect(lang), n) for lang, n in sizes.items()}}
        return self.fits[key]

    def estimate(self) -> pl.DataFrame:
        """Estimate the values in log-odds: the mean of the texts of a language is 0."""
        frames = [pl.DataFrame(schema={**SCHEMA, "signature": pl.String})]
        for lang, fit in self._fit().items():
            members, comparisons = self.members[lang], self._collect(lang)
            counts = np.bincount(np.concatenate(comparisons[:2]), minlength=len(members))
            half = bradley_terry.Z * fit.errors
            texts = self.items[members].select("text", "context").rows()
            detail = (
                f"comparisons:{len(comparisons.first)}|set:{hashlib.sha256(dump_json(texts).encode()).hexdigest()[:12]}"
            )
            columns = {"value": fit.values, "low": fit.values - half, "high": fit.values + half, "answers": counts}
            frame = pl.DataFrame({"item": members, **columns}, schema=SCHEMA).filter(pl.col("answers") > 0)
            signature = _sign(self.plan, self.options, lang, self.versions[lang], detail)
            frames.append(frame.with_columns(pl.col(pl.Float64).round(DECIMALS), signature=pl.lit(signature)))
        return pl.concat(frames).sort("item")

    def check(self) -> pl.DataFrame:
        """Check for each language that the answers come from the texts and not from their places."""
        checks = [
            reliability.check_comparisons(self._collect(lang), fit.p_equal).insert_column(0, pl.lit(lang).alias("lang"))
            for lang, fit in self._fit().items()
        ]
        return _join_checks(checks)


MODES: dict[str, type[Scale] | type[Pairwise]] = {SCALE: Scale, PAIRWISE: Pairwise}
