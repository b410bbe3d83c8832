"""Overlap metrics of made-up comments with 27 references each, beside pure Python, and their memory: run it as it is.

Words are drawn by Zipf's law from 30,000, texts have 5 to 29 of them, 17 on average. First each family beside its
reference on 1,000 candidates, with all that it reads for itself; then all four in one reading, with intervals, on more
of them, once for the time and once in larger batches for the memory, in processes of their own. Arguments: counts, 2415
and 9660 (the paper's test set) by default. CIDEr is held against pycocoevalcap where that is there, else against
dictionaries.
"""

import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from pipeline.metrics.overlap import build_metrics
from pipeline.metrics.overlap.scoring import measure, score_segments
from pipeline.metrics.overlap.segments import SIZE
from tests.bench.measure import cpu, peak_memory, report, run_apart
from tests.support.oracles.overlap_cases import Case
from tests.support.oracles.plain_cider import plainly

REFERENCES = 27
LARGE = 1_000  # segments of a batch where memory is measured
PLAIN = 1_000  # candidates of the comparison
FAMILIES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "meteor", "rouge_l", "cider")
WORDS = np.array([f"w{number}" for number in range(30_000)], dtype=object)
CHANCES = np.cumsum(1 / np.arange(1, len(WORDS) + 1)) / (1 / np.arange(1, len(WORDS) + 1)).sum()


def segments(count: int) -> Iterator[tuple[list[str], list[list[str]], list[float]]]:
    """Candidate, references and weights of each segment, the same in every call."""
    for number in range(count):
        rng = np.random.default_rng(number)
        ends = np.cumsum(rng.integers(5, 30, REFERENCES + 1)).tolist()
        words = WORDS[np.searchsorted(CHANCES, rng.random(ends[-1]))].tolist()
        candidate, *references = (words[start:end] for start, end in pairwise([0, *ends]))
        yield candidate, references, (rng.integers(1, 6, REFERENCES) / 5).tolist()


def references() -> float:
    """Each family beside its reference on the same segments with all weights one, whose scores have to be the same.

    Returns:
        CPU seconds of all references a candidate.
    """
    from nltk.translate.bleu_score import sentence_bleu
    from nltk.translate.meteor_score import meteor_score
    from rouge_score.rouge_scorer import RougeScorer

    rows = [*islice(segments(PLAIN), PLAIN)]
    candidates, owned, _ = ([*column] for column in zip(*rows, strict=True))
    case = Case(candidates, owned, [[1.0] * REFERENCES] * PLAIN)
    orders = [(1 / n,) * n for n in (1, 2, 3, 4)]
    plain = type("Plain", (), {"stem": staticmethod(lambda word: word), "synsets": staticmethod(lambda _: [])})
    rouge = RougeScorer(["rougeL"], tokenizer=type("Split", (), {"tokenize": staticmethod(str.split)}))
    joined = [(" ".join(c), [" ".join(r) for r in own]) for c, own in zip(candidates, owned, strict=True)]

    def ours(names: list[str], **options: dict[str, object]) -> np.ndarray:
        return score_segments(build_metrics(names, owned, options=options), candidates, owned).to_numpy()

    pairs = lambda: zip(owned, candidates, strict=True)
    families = [
        ("BLEU-1 to 4", [*FAMILIES[:4]], {},
         lambda: [sentence_bleu(own, candidate, orders) for own, candidate in pairs()], "nltk sentence_bleu"),
        ("METEOR", ["meteor"], {},
         lambda: [meteor_score(own, candidate, stemmer=plain, wordnet=plain) for own, candidate in pairs()],
         "nltk meteor_score, no stems, no WordNet"),
        ("ROUGE-L", ["rouge_l"], {"rouge_l": {"reading": "best", "beta": 1.0}},
         lambda: [rouge.score_multi(own, candidate)["rougeL"].fmeasure for candidate, own in joined], "rouge-score"),
        ("CIDEr-D", ["cider_d"], {}, *coco(joined)) if find_spec("pycocoevalcap") else
        ("CIDEr", ["cider"], {}, lambda: plainly(case, 4, is_d=False), "dictionaries"),
    ]  # fmt: skip
    warnings.simplefilter("ignore")  # nltk tells of every candidate without a match
    total = 0.0
    for name, names, options, compute, reference_name in families:
        score = partial(ours, names, **options)
        scores: list[Any] = []
        reference_seconds = cpu(lambda compute=compute, scores=scores: scores.extend(compute()))
        assert abs(score() - np.array(scores).reshape(PLAIN, -1)).max() < 1e-9, name
        report(name, PLAIN, statistics.median(cpu(score) for _ in range(5)), reference_name, reference_seconds)
        total += reference_seconds / PLAIN
    return total


def coco(joined: list[tuple[str, list[str]]]) -> tuple[Any, str]:
    """CIDEr-D of pycocoevalcap, and how it is called."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    def scores() -> Any:
        scorer = CiderScorer()
        for pair in joined:
            scorer += pair
        return scorer.compute_score()[1]

    return scores, "pycocoevalcap CiderScorer"


def run(count: int, size: int, is_held: bool) -> dict[str, Any]:
    """All families on so many segments: CPU seconds, memory in MB, scores.

    Segments are held, so that making them is not in the seconds, or made anew whenever they are read, so that they are
    not in the memory.
    """
    held = [*segments(count)] if is_held else None
    part: Callable[[int], Any] = lambda place: (segment[place] for segment in held or segments(count))
    started = time.process_time()
    metrics = build_metrics(FAMILIES, lambda: part(1))
    rows = measure(metrics, *map(part, range(3)), size=size)
    seconds = time.process_time() - started
    return {"seconds": seconds, "peak": peak_memory(), "scores": dict(rows.select("metric", "score").iter_rows())}


def main() -> None:
    """The references, then each count."""
    counts = [int(word) for word in sys.argv[1:]] or [2_415, 9_660]
    plain = references()
    for count in counts:
        held, made = (
            run_apart(f"overlap_bench.run({count}, {size}, {is_held})")
            for size, is_held in ((SIZE, True), (LARGE, False))
        )
        apart_by = max(abs(value - made["scores"][name]) for name, value in held["scores"].items())
        print(f"{count:,} candidates: {', '.join(FAMILIES)} with 1,000 resamples in {held['seconds']:.1f} cpu-s, "
              f"{count * plain / held['seconds']:.1f}x as fast as the references; peak {made['peak']:,.0f} MB, "
              f"in batches of {LARGE:,} scores differ by {apart_by:.0e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
