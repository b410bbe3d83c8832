"""The search for spans to drop by NDD (section 4.1), beside the released way of working: run it as it is.

Every span of at most five words is dropped, and all words that stay are compared before and after, by the
Kullback-Leibler divergence and weights μ^distance. The released way, as its code works: for each span the words are
joined with [MASK] in the place of each that stays and cut anew, before and after the deletion, and the model says the
probabilities of the whole vocabulary at every place of these, those of one span and side at a time; and the same a
masked sentence at a time. Ours has the same model; the spans that are selected have to be the same.

The model is the embedded encoder with a head of random weights: no quality, but the time that one of quality takes.
Argument: the batch, 64 by default.
"""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch

from pipeline.models.ndd import masked_lm
from pipeline.models.recam import pretrained_reader
from pipeline.score.compress import scorers, spans
from tests.bench.run import cpu

LONGEST = 5  # words of a span, where no syntax is asked (NDD-17)
MU = 0.9
SENTENCES = [
    "the ferry was late again because of the fog over the harbour",
    "after the long winter my neighbours painted their old garden fence bright green",
    "the small bakery at the corner sells warm bread until noon and then closes",
]


def ours(score: scorers.Scorer, words: list[str], found: list[Any]) -> None:
    """NDD of each span of a sentence."""
    found += score([words], [spans.list_spans(len(words), LONGEST)])


@torch.inference_mode()
def released(module: Any, tokenizer: Any, at_once: int, words: list[str], found: list[Any]) -> None:
    """The same, in the released way of working, so many masked sentences at once."""

    def said(words: list[str], places: list[int]) -> torch.Tensor:
        shown = [" ".join([*words[:place], tokenizer.mask_token, *words[place + 1 :]]) for place in places]
        parts = []
        for first in range(0, len(shown), at_once):
            told = tokenizer(shown[first : first + at_once], return_tensors="pt", padding=True)
            rows, at = (told["input_ids"] == tokenizer.mask_token_id).nonzero(as_tuple=True)
            parts.append(module(**told).logits.softmax(dim=-1)[rows, at])
        return torch.cat(parts)

    values = []
    for start, end in spans.list_spans(len(words), LONGEST).tolist():
        stays = [place for place in range(len(words)) if not start <= place < end]
        after = [words[place] for place in stays]
        q, other = said(words, stays), said(after, [*range(len(after))])
        apart = [start - 1 - place if place < start else place - end for place in stays]
        values.append(float(((other * (other / q).log()).sum(dim=1) * MU ** torch.tensor(apart)).sum()))
    found.append(np.array(values))


def selected(words: list[str], values: Any) -> list[list[int]]:
    """Of the spans below the median those that go."""
    every = spans.list_spans(len(words), LONGEST)
    cheap = values <= np.median(values)
    return every[cheap][spans.select_disjoint(every[cheap], values[cheap])].tolist()


def headed(folder: Path) -> Path:
    """The embedded encoder with a head of random weights, as a folder."""
    torch.manual_seed(13)
    found = pretrained_reader.load_transformer(is_masked=True)
    found.module.save_pretrained(folder)
    found.tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    """Ours, then the released ways once."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    torch.set_num_threads(1)
    batch = int(sys.argv[1]) if sys.argv[1:] else 64
    sentences = [sentence.split() for sentence in SENTENCES]
    with tempfile.TemporaryDirectory() as place:
        folder = headed(Path(place))
        score = scorers.ndd(masked_lm.load(folder, batch=batch), weighting="exponential", mu=MU)
        module = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ways = {"the released way of working": 1000, "the same, a masked sentence at a time": 1}
    mine: list[Any] = []
    theirs: dict[str, list[Any]] = {name: [] for name in ways}
    fast, slow = 0.0, dict.fromkeys(ways, 0.0)
    for words in sentences:  # in turns, so that what else the machine does slows all
        fast += cpu(partial(ours, score, words, mine))
        for name, at_once in ways.items():
            slow[name] += cpu(partial(released, module, tokenizer, at_once, words, theirs[name]))
    chosen, count = [*map(selected, sentences, mine)], sum(map(len, mine))
    for name, found in theirs.items():
        assert max(float(np.abs(a / b - 1).max()) for a, b in zip(mine, found, strict=True)) < 1e-3
        assert chosen == [*map(selected, sentences, found)]
        print(f"{'NDD of spans':34} {count / fast:>11,.1f} rows/cpu-s   {name:44} "
              f"{count / slow[name]:>11,.1f}   ours is {slow[name] / fast:5.2f}x as fast", flush=True)  # fmt: skip
    print(f"{count} spans of {len(sentences)} sentences: the same {sum(map(len, chosen))} are selected", flush=True)


if __name__ == "__main__":
    main()
