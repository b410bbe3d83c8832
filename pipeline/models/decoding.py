"""Writing word by word with any model that gives the next word's probabilities: beam search, greedy and sampling.

A model is a step function: of the words written last and its state it makes the log probabilities of the next word and
its next state. Hypotheses stand in rows and columns: n sources (articles), k hypotheses of each.

What is written for a source depends on that source alone, on the decoding and on the source's number: neither on the
batch it is in nor on what else there is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import BadInput

Method = Literal["beam", "sample", "greedy"]
State = tuple[Tensor, ...]
"""Tensors [n, k, ...], which are put in order as hypotheses are kept and dropped."""
Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""Last tokens [n, k] and state to log probabilities [n, k, vocabulary] and state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How it is written. Beam sizes of 5 to 10 with a length penalty of 1 are what Britz et al. (2017) advise."""

    method: Method = "beam"
    beams: int = 5  # hypotheses kept; greedy has one
    length_penalty: float = 1.0  # alpha of Wu et al. (2016), Eq. 14; 0 compares log probabilities as they are
    temperature: float = 1.0  # of sampling, as are top_k and top_p
    top_k: int = 0  # words that are drawn among; 0 is all
    top_p: float = (
        1.0  # least probable words are left out as long as the others have this share (Holtzman et al., 2020)
    )
    no_repeat_ngram: int = 0  # no n words in a row stand twice; 0 is no such rule
    least: int = 1  # words
    longest: int = 50
    seed: int = 42
    best: int = 1  # candidates returned

    def __post_init__(self) -> None:
        bounds = {"beams": 1, "length_penalty": 0, "top_k": 0, "no_repeat_ngram": 0, "least": 0, "seed": 0, "best": 1}
        for name, bound in bounds.items():
            if not bound <= getattr(self, name) < float("inf"):
                raise BadInput(f"{name} should be {bound} or more; found {getattr(self, name)!r}")
        if self.method not in get_args(Method):
            raise BadInput(f"method should be one of {', '.join(get_args(Method))}; found {self.method!r}")
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
        """Hypotheses of a source that are followed at a time."""
        return {"beam": self.beams, "greedy": 1, "sample": self.best}[self.method]

    def normalised(self, log_probability: float, words: int) -> float:
        """The score by which beam search compares what is finished: log P / ((5 + words) / 6)^alpha."""
        return float(log_probability / ((5 + words) / 6) ** self.length_penalty)


class Marks(NamedTuple):
    """Tokens that are no words."""

    begin: int
    end: int
    never: tuple[int, ...] = ()  # such as <unk>: the model may think of them, but they are not written


class Candidate(NamedTuple):
    """Something written, without its marks."""

    tokens: list[int]
    log_probability: float  # natural; as the model has it, with its end mark if it has one, whatever it was drawn by


def decode(
    step: Step, state: State, count: int, decoding: Decoding, marks: Marks, device: str = "cpu", first: int = 0
) -> list[list[Candidate]]:
    """Write candidates for each source.

    What has reached the longest length ends there, without an end mark: the probabilities of all that can be written
    add up to 1. Where a rule leaves no word to go on with, it ends as well.

    Args:
        step: the model.
        state: at the beginning, tensors [n, ...].
        count: n.
        decoding: how.
        marks: the tokens that are no words.
        device: of the step function's tensors.
        first: number of the first source, by which chance is drawn: the second half of a corpus is written as it is
            with the first.

    Returns:
        Of each source, by beam search the best first, and fewer than `best` only if fewer were found; samples in the
        order they were drawn.
    """
    width = decoding.width
    state = tuple(value.unsqueeze(1).expand(-1, width, *value.shape[1:]) for value in state)
    last = torch.full((count, width), marks.begin, device=device)
    if not count:
        return []
    if decoding.method == "sample":
        return _samples(step, state, last, decoding, marks, first)
    return _beams(step, state, last, decoding, marks)


def _beams(step: Step, state: State, last: Tensor, decoding: Decoding, marks: Marks) -> list[list[Candidate]]:
    """Each step keeps the k best continuations of a source; of those that end, the k best normalised are candidates."""
    count, width = last.shape
    rows = torch.arange(count, device=last.device).unsqueeze(1)
    written = last.new_zeros((count, width, 0))
    total = torch.full((count, width), -torch.inf, device=last.device)
    total[:, 0] = 0.0  # all hypotheses begin alike: one is enough
    found: list[list[Candidate]] = [[] for _ in range(count)]
    for _ in range(decoding.longest):
        logs, state = step(last, state)
        logs = _allowed(logs.float(), written, decoding, marks)
        size = logs.shape[2]
        total, place = (total.unsqueeze(2) + logs).flatten(1).topk(width, dim=1)
        beam, last = place // size, place % size
        written, state = written[rows, beam], tuple(value[rows, beam] for value in state)
        is_end = last == marks.end
        _finish(found, written, total, is_end, decoding)
        written = torch.cat([written, last.unsqueeze(2)], dim=2)
        total = total.masked_fill(is_end, -torch.inf)
        if all(map(_is_settled, found, total.max(dim=1).values.tolist(), [decoding] * count)):
            break
    else:
        _finish(found, written, total, torch.ones_like(is_end), decoding)
    return [candidates[: decoding.best] for candidates in found]


def _finish(found: list[list[Candidate]], written: Tensor, total: Tensor, is_end: Tensor, decoding: Decoding) -> None:
    """Put what has ended among the candidates of its source, the best first, as many as are asked for."""
    at = (is_end & total.isfinite()).nonzero().tolist()
    for row, column in at:
        found[row].append(Candidate(written[row, column].tolist(), float(total[row, column])))
    for row in {row for row, _ in at}:
        found[row].sort(key=lambda one: (-decoding.normalised(one.log_probability, len(one.tokens)), one.tokens))
        del found[row][decoding.best :]


def _is_settled(candidates: list[Candidate], alive: float, decoding: Decoding) -> bool:
    """Whether no hypothesis can become a candidate: log probabilities only fall, and the longest is divided by most."""
    if alive == -torch.inf:
        return True
    if len(candidates) < decoding.best:
        return False
    worst = candidates[-1]
    bound = decoding.normalised(alive, decoding.longest)
    return decoding.normalised(worst.log_probability, len(worst.tokens)) > bound  # equal ones are settled by words


def _samples(
    step: Step, state: State, last: Tensor, decoding: Decoding, marks: Marks, first: int
) -> list[list[Candidate]]:
    """Words drawn each by its probability, with a source of chance for each source of its own."""
    count, width = last.shape
    shape = (width, decoding.longest)  # so the first sample is the same, however many are drawn
    numbers = [np.random.default_rng([decoding.seed, first + row]).random(shape) for row in range(count)]
    drawn = torch.from_numpy(np.stack(numbers)).to(last.device)
    written = last.new_zeros((count, width, 0))
    total = torch.zeros((count, width), device=last.device)
    length = torch.full((count, width), decoding.longest, device=last.device)
    for at in range(decoding.longest):
        logs, state = step(last, state)
        allowed = _allowed(logs.float(), written, decoding, marks)
        last = _drawn(allowed, drawn[:, :, at], decoding)
        is_alive = length > at
        total += allowed.gather(2, last.unsqueeze(2)).squeeze(2).where(is_alive, 0.0)
        length = length.masked_fill(is_alive & (last == marks.end), at)
        written = torch.cat([written, last.unsqueeze(2)], dim=2)
        if not (length > at).any():
            break
    told, lengths, totals = written.tolist(), length.tolist(), total.tolist()
    return [[Candidate(told[i][j][: lengths[i][j]], totals[i][j]) for j in range(width)] for i in range(count)]


def _drawn(logs: Tensor, drawn: Tensor, decoding: Decoding) -> Tensor:
    """A token for each hypothesis [n, k], by where a number drawn in [0, 1) falls in the cumulated probabilities."""
    logs, order = (logs / decoding.temperature).sort(dim=2, descending=True, stable=True)
    if decoding.top_k:
        logs[:, :, decoding.top_k :] = -torch.inf
    chances = logs.double().softmax(dim=2)
    before = chances.cumsum(dim=2) - chances
    chances = chances.masked_fill(before >= decoding.top_p, 0.0)
    reached = chances.cumsum(dim=2)
    place = (reached <= drawn.unsqueeze(2) * reached[:, :, -1:]).sum(dim=2, keepdim=True)
    last = (chances > 0).sum(dim=2, keepdim=True) - 1  # rounding may not lead beyond what can be drawn
    return order.gather(2, place.minimum(last.clamp(min=0))).squeeze(2)


def _allowed(logs: Tensor, written: Tensor, decoding: Decoding, marks: Marks) -> Tensor:
    """Log probabilities [n, k, v] with -inf for what may not follow; the end may where nothing else does."""
    length, size = written.shape[2], decoding.no_repeat_ngram
    out = logs.clone()
    out[:, :, list({marks.begin, *marks.never} - {marks.end})] = -torch.inf
    if size and length >= size:
        runs = written.unfold(2, size, 1)  # [n, k, length - size + 1, size]
        is_same = (runs[..., :-1] == written[:, :, None, length - size + 1 :]).all(dim=3)
        again = torch.zeros_like(out).scatter_add_(2, runs[..., -1], is_same.to(out.dtype))
        out = out.masked_fill(again > 0, -torch.inf)
    if length < decoding.least:
        out[:, :, marks.end] = -torch.inf
    is_stuck = (out == -torch.inf).all(dim=2)
    out[:, :, marks.end] = torch.where(is_stuck, logs[:, :, marks.end], out[:, :, marks.end])
    return out
