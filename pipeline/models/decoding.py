"""Text generation with any model that gives the next word's probabilities: beam search, greedy and sampling.

Hypotheses have two axes: n sources (articles), k hypotheses of each. The text of a source depends only on that source,
its number and the decoding, not on the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import BadInput, check_name

Method = Literal["beam", "sample", "greedy"]
State = tuple[Tensor, ...]  # tensors [n, k, ...], which are reordered with the hypotheses
Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""Last tokens [n, k] and state to log probabilities [n, k, vocabulary] and state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The options of text generation. Britz et al. (2017) advise 5 to 10 beams and a length penalty of 1."""

    method: Method = "beam"
    beams: int = 5  # hypotheses kept; greedy has one
    length_penalty: float = 1.0  # alpha of Wu et al. (2016), Eq. 14; 0 compares log probabilities as they are
    temperature: float = 1.0  # of sampling, as are top_k and top_p
    top_k: int = 0  # words that are drawn among; 0 is all
    top_p: float = 1.0  # share of probability that is sampled from, without the tail (Holtzman et al., 2020)
    no_repeat_ngram: int = 0  # no n-gram of this length occurs twice; 0 is no such rule
    least: int = 1  # words
    longest: int = 50
    seed: int = 42
    best: int = 1  # candidates returned

    def __post_init__(self) -> None:
        bounds = {"beams": 1, "length_penalty": 0, "top_k": 0, "no_repeat_ngram": 0, "least": 0, "seed": 0, "best": 1}
        for name, bound in bounds.items():
            if not bound <= getattr(self, name) < float("inf"):
                raise BadInput(f"{name} should be {bound} or more; found {getattr(self, name)!r}")
        check_name("method", self.method, get_args(Method))
        if not 0 < self.temperature < float("inf"):
            raise BadInput(f"temperature should be above 0; found {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top_p should be above 0 and at most 1; found {self.top_p!r}")
        if not max(self.least, 1) <= self.longest:
            raise BadInput(f"longest should be {max(self.least, 1)} or more; found {self.longest!r}")
        if self.method != "sample" and self.best > self.width:
            raise BadInput(f"best should be at most {self.width}, the hypotheses kept; found {self.best}")

    @property
    def width(self) -> int:
        """Hypotheses of a source at a time."""
        return {"beam": self.beams, "greedy": 1, "sample": self.best}[self.method]

    def normalise(self, log_probability: float, words: int) -> float:
        """Return the score by which beam search compares finished texts: log P / ((5 + words) / 6)^alpha."""
        return float(log_probability / ((5 + words) / 6) ** self.length_penalty)

    def score(self, candidate: "Candidate") -> float:
        return self.normalise(candidate.log_probability, len(candidate.tokens))


class Marks(NamedTuple):
    """The special tokens."""

    begin: int
    end: int
    never: tuple[int, ...] = ()  # such as <unk>: never generated


class Candidate(NamedTuple):
    """A generated text without its special tokens."""

    tokens: list[int]
    log_probability: float  # natural, of the model itself, with the end token if there is one


def decode(
    step: Step, state: State, count: int, decoding: Decoding, marks: Marks, device: str = "cpu", first: int = 0
) -> list[list[Candidate]]:
    """Generate candidates for each source: of beam search the best first, at most `best`; samples as they were drawn.

    A text of the longest length ends without an end token, so that the probabilities of all possible texts sum to 1. A
    text also ends where the rules allow no further word. The state at the beginning has tensors [count, ...]. `first`
    is the number of the first source, which seeds its samples, so that parts of a corpus can be decoded apart.
    """
    if not count:
        return []
    width = decoding.width
    state = tuple(value.unsqueeze(1).expand(-1, width, *value.shape[1:]) for value in state)
    last = torch.full((count, width), marks.begin, device=device)
    if decoding.method == "sample":
        return _draw_samples(step, state, last, decoding, marks, first)
    return _search_beams(step, state, last, decoding, marks)


def _search_beams(step: Step, state: State, last: Tensor, decoding: Decoding, marks: Marks) -> list[list[Candidate]]:
    """Search by beams: a step keeps the k best continuations of a source; the best finished ones are candidates."""
    count, width = last.shape
    rows = torch.arange(count, device=last.device).unsqueeze(1)
    tokens = last.new_zeros((count, width, 0))
    total = torch.full((count, width), -torch.inf, device=last.device)
    total[:, 0] = 0.0  # all hypotheses start equal: one is enough
    results: list[list[Candidate]] = [[] for _ in range(count)]
    for _ in range(decoding.longest):
        logs, state = step(last, state)
        logs = _apply_rules(logs.float(), tokens, decoding, marks)
        size = logs.shape[2]
        total, place = (total.unsqueeze(2) + logs).flatten(1).topk(width, dim=1)
        beam, last = place // size, place % size
        tokens, state = tokens[rows, beam], tuple(value[rows, beam] for value in state)
        is_end = last == marks.end
        _collect_ended(results, tokens, total, is_end, decoding)
        tokens = torch.cat([tokens, last.unsqueeze(2)], dim=2)
        total = total.masked_fill(is_end, -torch.inf)
        if all(map(_is_finished, results, total.max(dim=1).values.tolist(), [decoding] * count)):
            break
    else:
        _collect_ended(results, tokens, total, torch.ones_like(is_end), decoding)
    return [candidates[: decoding.best] for candidates in results]


def _collect_ended(
    results: list[list[Candidate]], tokens: Tensor, total: Tensor, is_end: Tensor, decoding: Decoding
) -> None:
    cells = (is_end & total.isfinite()).nonzero().tolist()
    for row, column in cells:
        results[row].append(Candidate(tokens[row, column].tolist(), float(total[row, column])))
    for row in {row for row, _ in cells}:
        results[row].sort(key=lambda candidate: (-decoding.score(candidate), candidate.tokens))
        del results[row][decoding.best :]


def _is_finished(candidates: list[Candidate], alive: float, decoding: Decoding) -> bool:
    """Return whether no hypothesis can become a candidate: log probabilities only fall."""
    if alive == -torch.inf:
        return True
    if len(candidates) < decoding.best:
        return False
    return decoding.score(candidates[-1]) > decoding.normalise(alive, decoding.longest)  # words decide between equals


def _draw_samples(
    step: Step, state: State, last: Tensor, decoding: Decoding, marks: Marks, first: int
) -> list[list[Candidate]]:
    """Sample word by word, with a random generator for each source."""
    count, width = last.shape
    shape = (width, decoding.longest)  # so the first sample is the same, however many are drawn
    numbers = [np.random.default_rng([decoding.seed, first + row]).random(shape) for row in range(count)]
    random_values = torch.from_numpy(np.stack(numbers)).to(last.device)
    tokens = last.new_zeros((count, width, 0))
    total = torch.zeros((count, width), device=last.device)
    length = torch.full((count, width), decoding.longest, device=last.device)
    for position in range(decoding.longest):
        logs, state = step(last, state)
        allowed = _apply_rules(logs.float(), tokens, decoding, marks)
        last = _pick_tokens(allowed, random_values[:, :, position], decoding)
        is_alive = length > position
        total += allowed.gather(2, last.unsqueeze(2)).squeeze(2).where(is_alive, 0.0)
        length = length.masked_fill(is_alive & (last == marks.end), position)
        tokens = torch.cat([tokens, last.unsqueeze(2)], dim=2)
        if not (length > position).any():
            break
    token_lists, lengths, totals = tokens.tolist(), length.tolist(), total.tolist()
    return [[Candidate(token_lists[i][j][: lengths[i][j]], totals[i][j]) for j in range(width)] for i in range(count)]


def _pick_tokens(logs: Tensor, random_values: Tensor, decoding: Decoding) -> Tensor:
    """Return a token for each hypothesis [n, k] by inverting the cumulative distribution at a number in [0, 1)."""
    logs, order = (logs / decoding.temperature).sort(dim=2, descending=True, stable=True)
    if decoding.top_k:
        logs[:, :, decoding.top_k :] = -torch.inf
    probabilities = logs.double().softmax(dim=2)
    before = probabilities.cumsum(dim=2) - probabilities
    probabilities = probabilities.masked_fill(before >= decoding.top_p, 0.0)
    reached = probabilities.cumsum(dim=2)
    position = (reached <= random_values.unsqueeze(2) * reached[:, :, -1:]).sum(dim=2, keepdim=True)
    last = (probabilities > 0).sum(dim=2, keepdim=True) - 1  # rounding may not lead beyond what can be drawn
    return order.gather(2, position.minimum(last.clamp(min=0))).squeeze(2)


def _apply_rules(logs: Tensor, tokens: Tensor, decoding: Decoding, marks: Marks) -> Tensor:
    """Set the log probabilities [n, k, v] of forbidden words to -inf; the end is allowed if nothing else is."""
    length, size = tokens.shape[2], decoding.no_repeat_ngram
    out = logs.clone()
    out[:, :, list({marks.begin, *marks.never} - {marks.end})] = -torch.inf
    if size and length >= size:
        runs = tokens.unfold(2, size, 1)  # [n, k, length - size + 1, size]
        is_same = (runs[..., :-1] == tokens[:, :, None, length - size + 1 :]).all(dim=3)
        repeat_count = torch.zeros_like(out).scatter_add_(2, runs[..., -1], is_same.to(out.dtype))
        out = out.masked_fill(repeat_count > 0, -torch.inf)
    if length < decoding.least:
        out[:, :, marks.end] = -torch.inf
    is_stuck = (out == -torch.inf).all(dim=2)
    out[:, :, marks.end] = torch.where(is_stuck, logs[:, :, marks.end], out[:, :, marks.end])
    return out
