"""Adapted Lesk on mapped signatures beside the plain one, which makes them anew for each word: run it as it is.

Articles and summaries are those of XSum in UNDERTONE_DATA, or those of the sample. Targets are all summary
words as noun and as verb, where WordNet has them. The reference is that of the tests, with and without our lemma cache.
All measures are compared on our tagged sentences, with the first sense and with a choice at random.
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pipeline import sample
from pipeline.metrics import resample
from pipeline.text import glosses, senses, wordnet
from tests.bench.measure import compare, cpu, peak_memory
from tests.support.oracles.plain_senses import bare, plain, read_tagged


def resident() -> float:
    """Memory this process holds now, MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def pairs() -> list[tuple[str, str]]:
    """Summaries and passages."""
    data = os.environ.get("UNDERTONE_DATA")
    if not data:
        rows = [json.loads(line) for line in sample.SUMMARIES.read_text(encoding="utf-8").splitlines()]
        return [(row["summary"], row["text"]) for row in rows]
    lines = (Path(data) / "xsum" / "xsum_validation_1000.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["summary"], row["document"]) for row in map(json.loads, lines)]


def targets(store: senses.Store, summary: str) -> list[tuple[str, str]]:
    """Words of a summary as nouns and as verbs, those that WordNet has."""
    words = [word for word in summary.replace(".", " ").replace(",", " ").split() if word.islower()]
    kept = [word for word in words if word not in glosses.STOP_WORDS]
    lemmas = [(wordnet.lemmatize(word, upos), wordnet.POS[upos]) for word in kept for upos in ("NOUN", "VERB")]
    return [(lemma, pos) for lemma, pos in lemmas if store.candidates[lemma, pos]]


def compare_measures(store: senses.Store) -> None:
    """Print the share of right senses of our tagged nouns, with a bootstrap interval, and CPU time a word."""
    rows = read_tagged()
    names = {noun: store.candidates[noun, "n"].synsets for _, noun, _ in rows}
    levels = wordnet.load_levels("n")
    choices = {"first sense": [names[noun][0] for _, noun, _ in rows]}
    for measure in senses.MEASURES:
        run = lambda name=measure: [senses.disambiguate(store, [(n, "n")], text, name)[0].synset for _, n, text in rows]
        seconds = cpu(lambda: choices.__setitem__(measure, run()))  # noqa: B023
        print(f"{measure}: {seconds / len(rows) * 1000:.2f} cpu-ms a noun")
    random = sum(1 / len(names[noun]) for _, noun, _ in rows) / len(rows)
    print(f"{len(rows)} tagged nouns, {len(names)} different; at random {random:.3f}")
    right = {name: np.array([a == row[0] for a, row in zip(chosen, rows, strict=True)], float)
             for name, chosen in choices.items()}  # fmt: skip
    draw = lambda values: resample.bounds(
        resample.sum_samples(values, resample.draw_counts(len(rows), 10_000, 1)) / len(rows)
    )
    for name, values in right.items():
        low, high = draw(values)
        under = np.mean([(levels[a] < 6) == (levels[row[0]] < 6) for a, row in zip(choices[name], rows, strict=True)])
        least, most = draw(values - right[senses.MEASURES[0]])
        difference = (values - right[senses.MEASURES[0]]).mean()
        print(f"{name}: {values.mean():.3f} [{low:.3f}, {high:.3f}]; less signatures {difference:+.3f} "
              f"[{least:+.3f}, {most:+.3f}]; right about level 6: {under:.3f}")  # fmt: skip


def main() -> None:
    """Build, load and compare, in one process and one thread."""
    wordnet.load_reader()
    print(f"WordNet {wordnet.read_version()} as nltk holds it: {resident():,.0f} MB")
    folder = Path(tempfile.mkdtemp(prefix="undertone-bench-")) / "senses"
    seconds = cpu(lambda: senses.build(folder))
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    peak = peak_memory()
    print(f"store built in {seconds:.1f} cpu-s, {size:.0f} MB on disk, peak of the process {peak:,.0f} MB")
    before = resident()
    kept = []
    seconds = cpu(lambda: kept.append(senses.load(folder)))
    store = kept[0]
    print(f"store loaded in {seconds:.2f} cpu-s, {resident() - before:,.0f} MB more (the arrays are mapped)")
    for pos in ("n", "v"):
        levels = wordnet.load_levels(pos).values()
        share = sum(level < wordnet.NONSPECIFIC for level in levels) / len(levels)
        print(f"level of {pos}: at most {max(levels)}, {share:.1%} of {len(levels):,} synsets under 6")

    compare_measures(store)
    articles = [(targets(store, summary), f"{summary} {passage}".split()) for summary, passage in pairs()]
    answers = [(pos, sense) for asked, context in articles
             for (_, pos), sense in zip(asked, senses.disambiguate(store, asked, context), strict=True)]  # fmt: skip
    for pos in ("n", "v"):
        under = [(sense.level or 0) < wordnet.NONSPECIFIC for other, sense in answers if sense and other == pos]
        print(f"{len(under):,} words of {len(articles):,} summaries as {pos}: {sum(under) / len(under):.1%} under 6")
    few = articles[:150]
    count = sum(len(asked) for asked, _ in few)
    ours = lambda: [senses.disambiguate(store, asked, context) for asked, context in few]
    reference = lambda: [plain(asked, context) for asked, context in few]
    assert [bare(senses_of_summary) for senses_of_summary in ours()] == reference()
    compare("adapted Lesk, a summary a call", count, ours, reference, "plain, our lemmas cached")

    def uncached() -> None:
        lemma, base = wordnet.lemmatize.__wrapped__, glosses._lemmatize.__wrapped__
        with patch.object(wordnet, "lemmatize", lemma), patch.object(glosses, "_lemmatize", base):
            reference()

    compare("adapted Lesk, a summary a call", count, ours, uncached, "plain, nothing cached")


if __name__ == "__main__":
    main()
