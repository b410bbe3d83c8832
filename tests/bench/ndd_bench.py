"""The search for spans to drop by NDD (section 4.1), beside the released way of working: run it as it is.

Every span of at most five words may be dropped; the words that stay are compared before and after, by the
Kullback-Leibler divergence and weights μ^distance, and the cheapest spans that do not overlap go. The released way, as
its code works: for each span the words are joined with [MASK] in the place of each that stays and cut anew, before and
after the deletion, and the model says the probabilities of the whole vocabulary at every place of these, those of one
span and side at a time. Ours has the same model, all sentences at once, and leaves a span when it cannot be selected
any more; the spans that are selected, and their costs, have to be the same. In bfloat16, where the CPU is fast at it,
the spans are the same, and the costs to a twentieth.

The model is the embedded encoder with a head of random weights: no quality, but the time that one of quality takes.
Argument: the batch, 64 by default.
"""

import os
import statistics
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

from pipeline.models.encoder import is_bfloat16_fast
from pipeline.models.ndd import masked_lm
from pipeline.models.recam import pretrained_reader
from pipeline.score.compress import scorers, search
from tests.bench.measure import cpu, report

LONGEST = 5  # words of a span, where no syntax is asked (NDD-17)
MU = 0.9
SENTENCES = [
    "the ferry was late again because of the fog over the harbour",
    "after the long winter my neighbours painted their old garden fence bright green",
    "the small bakery at the corner sells warm bread until noon and then closes",
]


@torch.inference_mode()
def released(module: Any, tokenizer: Any, words: list[str]) -> Any:
    """Costs of all spans in the released way of working."""

    def predict(words: list[str], places: list[int]) -> torch.Tensor:
        masked = [" ".join([*words[:place], tokenizer.mask_token, *words[place + 1 :]]) for place in places]
        features = tokenizer(masked, return_tensors="pt", padding=True)
        rows, columns = (features["input_ids"] == tokenizer.mask_token_id).nonzero(as_tuple=True)
        return module(**features).logits.softmax(dim=-1)[rows, columns]  # type: ignore[no-any-return]

    values = []
    for start, end in scorers.list_spans(len(words), LONGEST).tolist():
        remaining = [place for place in range(len(words)) if not start <= place < end]
        shortened = [words[place] for place in remaining]
        q, p = predict(words, remaining), predict(shortened, [*range(len(shortened))])
        distances = [start - 1 - place if place < start else place - end for place in remaining]
        values.append(float(((p * (p / q).log()).sum(dim=1) * MU ** torch.tensor(distances)).sum()))
    return np.array(values)


def select(words: list[str], costs: Any) -> list[tuple[list[int], float]]:
    """Select spans by all costs: places and cost of each."""
    every = scorers.list_spans(len(words), LONGEST)
    is_selected = costs <= search.THRESHOLD
    is_selected[is_selected] = scorers.select_disjoint(every[is_selected], costs[is_selected])
    is_selected = scorers.select_affordable(every, costs, is_selected, len(words) - 1)
    return [([*range(*span)], cost) for span, cost in zip(every[is_selected].tolist(), costs[is_selected], strict=True)]


def save_model(folder: Path) -> Path:
    """Save the embedded encoder with a head of random weights in a folder."""
    torch.manual_seed(13)
    model = pretrained_reader.load_transformer(is_masked=True)
    model.module.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    """The released way, then ours."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    torch.set_num_threads(1)
    batch = int(sys.argv[1]) if sys.argv[1:] else 64
    sentences = [sentence.split() for sentence in SENTENCES]
    with tempfile.TemporaryDirectory() as place:
        folder = save_model(Path(place))
        precisions = {"float32": 1e-3, "bfloat16": 0.05} if is_bfloat16_fast() else {"float32": 1e-3}
        models = [masked_lm.load(folder, batch=batch, precision=name) for name in precisions]
        scores = [scorers.ndd(model, weighting="exponential", mu=MU) for model in models]
        module = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    limits = search.Search(longest=LONGEST, rounds=1)
    released(module, tokenizer, sentences[0][:4])  # the first call of a model takes longer
    costs: list[Any] = []
    seconds = cpu(lambda: costs.extend(released(module, tokenizer, words) for words in sentences))
    count = sum(map(len, costs))
    for (precision, tolerance), score in zip(precisions.items(), scores, strict=True):
        run = partial(search.compress, sentences, score, limits)
        compressions = run()
        our_seconds = statistics.median(cpu(run) for _ in range(5))
        for compression, expected in zip(compressions, map(select, sentences, costs), strict=True):
            assert [span.places for span in compression.dropped] == [places for places, _ in expected]
            assert all(abs(a.cost / b - 1) < tolerance for a, (_, b) in zip(compression.dropped, expected, strict=True))
        name = "NDD of spans" if precision == "float32" else f"NDD of spans, {precision}"
        report(name, count, our_seconds, "the released way of working", seconds)
        print(f"{count} spans: the same {sum(len(c.dropped) for c in compressions)} are selected", flush=True)


if __name__ == "__main__":
    main()
