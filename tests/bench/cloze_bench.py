"""Target words of both subtasks from articles with summaries, in shards as tasks find them: run it as it is.

Articles are the 1,000 of XSum in UNDERTONE_DATA, or those of the sample. Of 10,000, each round past the first has every
other line of an article from another one, and names of its own, so that caches of words help no more than with so many
articles of a newspaper. Each count is measured in a process of its own, for its memory. Arguments: counts, 1000 and
10000 by default; `context=300` adds a run with the filter by states in context.
"""

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import polars as pl

from pipeline import sample
from pipeline.examples.recam import building, summaries
from pipeline.examples.recam.building import Filter, Pair, Rule
from pipeline.text import concreteness, senses, tagging, wordnet
from tests.bench.measure import compare, cpu, peak_memory, run_apart
from tests.support.oracles.plain_senses import plain

SHARD = 500  # articles of a mapped task
PLAIN = 20  # articles of the reference


def originals() -> pl.DataFrame:
    """Articles with summaries: text, summary."""
    data = os.environ.get("UNDERTONE_DATA")
    if not data:
        rows = [json.loads(line) for line in sample.SUMMARIES.read_text(encoding="utf-8").splitlines()]
        return pl.DataFrame({"text": [row["text"] for row in rows], "summary": [row["summary"] for row in rows]})
    return summaries.read(Path(data) / "xsum" / "xsum_validation_1000.jsonl").rows.select("text", "summary")


def articles(count: int) -> Iterator[pl.DataFrame]:
    """Shards of articles no two of which are the same: thread_id, text, summary."""
    rows = originals()
    texts, summary_texts = (rows[name].to_list() for name in ("text", "summary"))

    def build_article(number: int) -> tuple[str, str, str]:
        turn, place = divmod(number, len(texts))
        own, other = (texts[at % len(texts)].split("\n") for at in (place, place + 7 * turn))
        lines = [other[i % len(other)] if i % 2 and turn else line for i, line in enumerate(own)]
        return str(number), _renamed("\n".join(lines), turn), _renamed(summary_texts[place], turn)

    built = map(build_article, range(count))
    while part := [*islice(built, SHARD)]:
        yield pl.DataFrame(part, schema=["thread_id", "text", "summary"], orient="row")


def _renamed(text: str, turn: int) -> str:
    """The text with an ending to each name."""
    ending = "".join("aeiou"[int(digit) % 5] + "lmnrs"[int(digit) // 5] for digit in str(turn)) if turn else ""
    return re.sub(r"(?<=[a-z,] )[A-Z][a-z]+", lambda name: name[0] + ending, text)


def trained(vectors: Any) -> Any:
    """A scorer of abstractness on the list that is shipped."""
    from pipeline.training.recam import abstractness

    training = abstractness.fit(concreteness.load_embedded(), vectors, abstractness.PROFILES["undertone"])
    return abstractness.load(training.tensors, training.config, vectors)


def rules(rows: pl.DataFrame, analyse: tagging.Analyzer, scorer: Any, store: senses.Store) -> dict[str, Rule]:
    """The rules of both subtasks for a shard, whose words are scored here."""
    words = sorted({token.text.lower() for text in rows["summary"] for sentence in analyse(text) for token in sentence})
    scores = {word: value for word, value in zip(words, scorer(words).tolist(), strict=True) if not math.isnan(value)}
    subtask_rules = (
        building.build_imperceptibility_rule(scores),
        building.build_nonspecificity_rule(partial(senses.disambiguate, store)),
    )
    return dict(zip(building.SUBTASKS, subtask_rules, strict=True))


def build(count: int, in_context: bool, place: str) -> dict[str, float]:
    """Find the targets of so many articles, a Parquet file for each shard; counts, CPU seconds, memory in MB."""
    from pipeline.models import encoder
    from pipeline.models.recam import contextual, word_features

    by, folder = encoder.load(threads=1), Path(place)
    near: list[Filter] = [building.build_passage_filter(word_features.make_static_lookup(by))]
    near += [building.build_context_filter(partial(contextual.embed_tokens, by))] if in_context else []
    analyse, store, scorer = tagging.load_counts().analyse, senses.load(folder / "senses"), trained(by)
    started = time.process_time()
    token_count = target_count = 0
    for number, rows in enumerate(articles(count)):
        subtask_rules = rules(rows, analyse, scorer, store)
        part = pl.concat(building.find_targets(rows, analyse, subtask_rules, (*building.FILTERS, *near)))
        part.write_parquet(folder / f"{count}-{number}.parquet")
        token_count, target_count = token_count + part.height // 2, target_count + part["reason"].null_count()
    seconds = time.process_time() - started
    assert target_count, "there is nothing to do: no target in the articles"
    return {
        "articles": count, "tokens": token_count, "targets": target_count, "seconds": seconds, "peak": peak_memory(),
    }  # fmt: skip


def plainly(pair: Pair, scores: dict[str, float]) -> list[str]:
    """Targets of both subtasks of a tagged pair as one writes it with nltk: everything is asked for each word anew."""
    from nltk.corpus import wordnet as net
    from nltk.stem import WordNetLemmatizer

    letter, lemmatise = wordnet.POS, WordNetLemmatizer().lemmatize
    passage = [*chain(*pair.passage)]
    words_there = {lemmatise(t.text.lower(), letter.get(t.upos, "n")) for t in passage} | {
        t.text.lower() for t in passage
    }
    context = [t.text for t in chain(*pair.summary, *pair.passage)]
    targets = []
    for token in chain(*pair.summary):
        if token.upos not in letter:
            continue
        lemma = lemmatise(token.text.lower(), letter[token.upos])
        is_abstract = scores.get(token.text.lower(), 1) < concreteness.THRESHOLD
        if token.upos in {"NOUN", "VERB"} and (sense := plain([(lemma, letter[token.upos])], context)[0]):
            is_abstract |= net.synset(sense[0]).max_depth() < wordnet.NONSPECIFIC
        if not is_abstract or lemma in words_there or token.text.lower() in words_there:
            continue
        synonyms = [synonym for synset in net.synsets(lemma) for synonym in synset.lemmas()]
        relatives = chain(synonyms, *(synonym.antonyms() for synonym in synonyms))
        if not {relative.name().lower() for relative in relatives} & words_there:
            targets.append(token.text)
    return targets


def reference(folder: Path) -> None:
    """Rules and filters without vectors beside the same written plainly, on articles that are tagged already."""
    tagger, store = tagging.load_counts(), senses.load(folder / "senses")
    rows = next(articles(PLAIN))
    triples = rows.select("thread_id", "summary", "text").iter_rows()
    pairs = [Pair(name, tagger.analyse(summary), tagger.analyse(text)) for name, summary, text in triples]
    scores = {t.text.lower(): 0.3 for pair in pairs for t in chain(*pair.summary)}
    subtask_rules = (
        building.build_imperceptibility_rule(scores),
        building.build_nonspecificity_rule(partial(senses.disambiguate, store)),
    )
    ours = lambda: [building.judge_tokens(pair, rule) for rule in subtask_rules for pair in pairs]
    reference_work = lambda: [plainly(pair, scores) for pair in pairs]
    compare("targets of tagged articles", len(pairs), ours, reference_work, "nltk, nothing cached")


def main() -> None:
    """The reference, then each count."""
    counts = [word for word in sys.argv[1:] if "=" not in word] or ["1000", "10000"]
    context_counts = [int(word.removeprefix("context=")) for word in sys.argv[1:] if word.startswith("context=")]
    folder = Path(tempfile.mkdtemp(prefix="undertone-bench-"))
    print(
        f"senses of WordNet {wordnet.read_version()} built in {cpu(lambda: senses.build(folder / 'senses')):.1f} cpu-s"
    )
    reference(folder)
    call = lambda count, in_context: run_apart(f"cloze_bench.build({count}, {in_context}, {str(folder)!r})")
    results = [(call(count, False), "") for count in counts]
    results += [(call(count, True), ", states in context among the filters") for count in context_counts]
    for result, note in results:
        print(f"{result['articles']:>8,} articles, {result['tokens']:,} tokens of summaries, "
              f"{result['targets']:,} targets: "
              f"{result['seconds']:,.0f} cpu-s ({result['articles'] / result['seconds']:,.1f} articles/cpu-s), "
              f"peak {result['peak']:,.0f} MB{note}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
