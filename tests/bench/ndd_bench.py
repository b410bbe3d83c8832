"""The search for spans to delete by NDD (section 4.1), beside the released way of working: run it as it is.

Every span of at most five words is deleted, and all words that stay are compared before and after, by the
Kullback-Leibler divergence and weights μ^distance. The released way: for each span and each word that stays, the words
are joined with [MASK] in its place and cut anew, before and after the deletion, and a model says all of its logits of
one sentence at a time. Ours has the same model; the spans that are selected have to be the same.

The model is the embedded encoder with a head of random weights: no quality, but the time that one of quality takes.
Argument: the batch, 64 by default.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch

from pipeline.metrics.ndd.distance import divergences
from pipeline.metrics.ndd.model import MaskedModel
from pipeline.models import masked_lm, pretrained_reader
from tests.bench.run import cpu

LONGEST = 5  # words of a span, where no syntax is asked (NDD-17)
MU = 0.9
SENTENCES = [
    "the ferry was late again because of the fog over the harbour",
    "after the long winter my neighbours painted their old garden fence bright green",
    "the small bakery at the corner sells warm bread until noon and then closes",
]
Span = tuple[int, int]


def spans(words: list[str]) -> Iterator[Span]:
    """Start and end of each span."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + LONGEST, len(words)) + 1):
            yield start, end


def stays(words: list[str], span: Span) -> list[int]:
    """Places of the words that stay."""
    return [place for place in range(len(words)) if not span[0] <= place < span[1]]


def weight(place: int, span: Span) -> float:
    """μ to the number of words between a word and the span."""
    return float(MU ** (span[0] - 1 - place if place < span[0] else place - span[1]))


def ours(model: MaskedModel, words: list[str], found: list[dict[Span, float]]) -> None:
    """NDD of each span of a sentence: all asks at once."""
    every, kept = [*spans(words)], [stays(words, span) for span in spans(words)]
    sentences = [words, *([words[place] for place in some] for some in kept)]
    first = [(0, place) for some in kept for place in some]
    second = [(row, at) for row, some in enumerate(kept, 1) for at in range(len(some))]
    weights = [weight(place, span) for span, some in zip(every, kept, strict=True) for place in some]
    shares = divergences(model, sentences, np.array(first), np.array(second), "kl") * weights
    values = np.bincount(np.array(second)[:, 0] - 1, shares)
    found.append(dict(zip(every, values.tolist(), strict=True)))


@torch.inference_mode()
def released(module: Any, tokenizer: Any, words: list[str], found: list[dict[Span, float]]) -> None:
    """The same, in the released way of working."""

    def said(words: list[str], place: int) -> torch.Tensor:
        shown = [*words[:place], tokenizer.mask_token, *words[place + 1 :]]
        told = tokenizer(" ".join(shown), return_tensors="pt")
        at = told["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        probabilities: torch.Tensor = module(**told).logits.softmax(dim=-1)[0, at]
        return probabilities

    def distance(span: Span) -> float:
        kept, total = stays(words, span), 0.0
        after = [words[place] for place in kept]
        for at, place in enumerate(kept):
            q, other = said(words, place), said(after, at)
            total += weight(place, span) * (other * (other / q).log()).sum().item()
        return total

    found.append({span: distance(span) for span in spans(words)})


def selected(values: dict[Span, float]) -> list[Span]:
    """Of the spans below the median those that go: the least first, where none that overlaps has gone (E16)."""
    gone: list[Span] = []
    most = float(np.median([*values.values()]))
    for span in sorted((span for span in values if values[span] <= most), key=values.__getitem__):
        if all(span[1] <= start or end <= span[0] for start, end in gone):
            gone.append(span)
    return gone


def headed(folder: Path) -> Path:
    """The embedded encoder with a head of random weights, as a folder."""
    torch.manual_seed(13)
    found = pretrained_reader.opened(is_masked=True)
    found.module.save_pretrained(folder)
    found.tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    """Ours, then the released way once."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    torch.set_num_threads(1)
    batch = int(sys.argv[1]) if sys.argv[1:] else 64
    sentences = [sentence.split() for sentence in SENTENCES]
    with tempfile.TemporaryDirectory() as place:
        folder = headed(Path(place))
        model = masked_lm.load(folder, batch=batch)
        module = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    mine: list[dict[Span, float]] = []
    theirs: list[dict[Span, float]] = []
    fast = slow = 0.0
    for words in sentences:  # in turns, so that what else the machine does slows both
        fast += cpu(partial(ours, model, words, mine))
        slow += cpu(partial(released, module, tokenizer, words, theirs))
    apart = max(abs(a[span] / b[span] - 1) for a, b in zip(mine, theirs, strict=True) for span in b)
    assert apart < 1e-3, apart
    chosen = [*map(selected, mine)]
    assert chosen == [*map(selected, theirs)]
    count, lengths = sum(map(len, mine)), ", ".join(str(len(words)) for words in sentences)
    print(f"{'NDD of spans':34} {count / fast:>11,.1f} rows/cpu-s   {'the released way of working':44} "
          f"{count / slow:>11,.1f}   ours is {slow / fast:5.2f}x as fast", flush=True)  # fmt: skip
    print(f"{count} spans in sentences of {lengths} words: the same {sum(map(len, chosen))} are selected, values are "
          f"apart by {apart:.0e} at most", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
