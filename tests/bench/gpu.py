"""`make bench-gpu`: what one GPU does in under ten minutes, beside the bare forward on the same device.

Encoder, training of ImpScore with its encoder tuned, compression by NDD, and a reader of the size of `strong`; the last
two have random weights, for speed alone. Each line has units a second of wall time, the share of the bare forward where
there is one, the most memory, and the utilisation if pynvml is installed. Goals: the encoder reaches 95 % of its bare
forward at the best batch, and 20,000 short texts a second. `--device cpu --small` tests the script itself.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

import numpy as np
import polars as pl
import torch

from pipeline.examples.impscore import pairs as examples
from pipeline.examples.recam import items as cloze
from pipeline.llm import request
from pipeline.models import encoder as encoders
from pipeline.models.devices import choose_device
from pipeline.models.ndd import masked_lm
from pipeline.sample import COMPLETIONS
from pipeline.score.compress import scorers, search
from pipeline.tables import empty
from pipeline.training.impscore import fit, heads
from pipeline.training.recam import pretrained_reader as readers
from tests.support.rows.tiny import WORDS

PRECISIONS = ("float32", "bfloat16")
SIZES = {"base": (768, 12), "large": (1024, 24)}  # width and layers of BERT; `strong` is meant for a large one
VOCABULARY = WORDS.split()


def measure(device: str, name: str, count: int, work: Callable[[], Any], bare: float | None = None) -> float:
    """Run work twice, the first time to warm up; print and return units a second."""
    work()
    with watch(device) as facts:
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        speed = count / (time.perf_counter() - start)
    share = f"{speed / bare:.0%} of bare" if bare else ""
    print(f"{name:62} {speed:>11,.1f} a second  {share:14} {' '.join(facts)}".rstrip(), flush=True)
    return speed


@contextmanager
def watch(device: str) -> Iterator[list[str]]:
    """Yield a list that has afterwards the most memory of the GPU, and its mean utilisation where pynvml tells it."""
    facts: list[str] = []
    if device == "cpu":
        yield facts
        return
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    is_over, shares = Event(), []

    def sample() -> None:
        with suppress(ModuleNotFoundError):  # pynvml
            while not is_over.wait(0.02):
                shares.append(torch.cuda.utilization())

    thread = Thread(target=sample)
    thread.start()
    yield facts
    is_over.set()
    thread.join()
    facts.append(f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    if shares:
        facts.append(f"{np.mean(shares):.0f} % busy")


def make_texts(count: int, longest: int, vocabulary: list[str] = VOCABULARY) -> list[str]:
    """Distinct texts of 4 to `longest` words, the first of the vocabulary the most frequent; the same every time."""
    rng, chances = np.random.default_rng(7), 1 / (10 + np.arange(len(vocabulary)))
    words = iter(rng.choice(vocabulary, count * longest, p=chances / chances.sum()))
    sizes = rng.integers(3, longest, count)
    return [" ".join([*islice(words, size), str(number)]) for number, size in enumerate(sizes)]


@torch.inference_mode()
def run(forward: Callable[[Any], Any], batches: list[Any]) -> None:
    """Run batches through a forward."""
    for features in batches:
        forward(dict(features))


def bench_encoder(device: str, small: bool, folder: Path) -> None:
    """Texts a second at several batch sizes and precisions, beside the forward alone and SentenceTransformer.encode."""
    pieces = load_embedded_tokenizer().get_vocab()
    vocabulary = sorted(filter(str.isalpha, pieces), key=pieces.__getitem__)  # 21,500 words, the frequent first
    texts, no_types = make_texts(64 if small else 160_000, 24, vocabulary), {"return_token_type_ids": False}
    for precision in PRECISIONS:
        encoder = encoders.load(precision=precision, device=device, threads=1)
        tokenizer, module = encoder.module.tokenizer, encoder.module
        lengths = np.array([len(ids) for ids in tokenizer(texts)["input_ids"]])
        for budget in (512,) if small else (32_768, 131_072):
            batches = [
                tokenizer([texts[row] for row in rows], padding=True, return_tensors="pt", **no_types).to(device)
                for rows in encoders.make_batches(lengths, budget)
            ]
            name = f"{precision}, {budget} tokens a batch"
            bare = measure(device, f"bare forward, {name}", len(texts), partial(run, module, batches))
            forward = partial(run, partial(encoders.embed_batch, encoder), batches)
            measure(device, f"our forward, {name}", len(texts), forward, bare)
            encode = lambda encoder=encoder, budget=budget: encoders.encode(encoder, texts, tokens=budget)
            measure(device, f"encode, tokenizing included, {name}", len(texts), encode, bare)
            usual = partial(module.encode, texts[:20_000], batch_size=budget // 16, show_progress_bar=False)
            measure(device, f"SentenceTransformer.encode, {name}", len(texts[:20_000]), usual, bare)


def bench_training(device: str, small: bool, folder: Path) -> None:
    """Triples a second through the encoder, one epoch."""
    rows, _ = examples.build(empty("sentences"), request.read_cassette(COMPLETIONS))
    rows = rows.filter(pl.col("lang") == "en").head(8 if small else 400)
    encoder = encoders.load(device=device, threads=1)
    for tune in ("adapter",) if small else ("adapter", "full"):
        recipe = fit.make_recipe("paper", tune=tune, epochs=1)
        work = partial(heads.fit, rows, None, recipe, encoder, folder)
        measure(device, f"train ImpScore, tune={tune}, triples", rows.height, work)


def load_embedded_tokenizer() -> Any:
    """Load the word pieces of the embedded encoder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(encoders.locate_embedded(), local_files_only=True)


def save_bert(folder: Path, size: str) -> Path:
    """Save a BERT of random weights, with its head for masked words and the embedded encoder's tokenizer."""
    from transformers import BertConfig, BertForMaskedLM

    width, layers = SIZES.get(size, (32, 2))
    path = folder / size
    tokenizer = load_embedded_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64), intermediate_size=4 * width,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def bench_compression(device: str, small: bool, folder: Path) -> None:
    """Sentences a second, one round of NDD's search for spans by a BERT of base size."""
    path = save_bert(folder, "tiny" if small else "base")
    sentences = [text.split() for text in make_texts(2 if small else 512, 24)]
    for precision in PRECISIONS:
        for batch in (64,) if small else (1024,):
            scorer = scorers.ndd(masked_lm.load(path, batch=batch, precision=precision, device=device))
            work = partial(search.compress, sentences, scorer, search.Search(rounds=1))
            measure(device, f"NDD compression, {precision}, {batch} rows a batch, sentences", len(sentences), work)


def bench_readers(device: str, small: bool, folder: Path) -> None:
    """Cloze items a second of a reader of the size of `strong`: in an epoch of training, and answered."""
    path = save_bert(folder, "tiny" if small else "large")
    rng, count = np.random.default_rng(5), 8 if small else 128
    passages, options = [" ".join(rng.choice(VOCABULARY, 300)) for _ in range(count)], VOCABULARY[5:10]
    rows = [(str(row), text, "It was a @placeholder day.", options, row % 5) for row, text in enumerate(passages)]
    items = pl.DataFrame(rows, schema=cloze.SCHEMA, orient="row")
    changes = {"window": 32, "stride": 16} if small else {}
    recipe, results = readers.make_recipe("strong", epochs=1, averaged=0, hypernyms=0.0, has_gloss=False, **changes), []
    work = lambda: results.append(readers.fit(items, recipe, path, device=device))
    measure(device, "train a reader of `strong`, items", count, work)
    reader = readers.load(results[-1].tensors, results[-1].config, device)
    measure(device, "answer by a reader of `strong`, items", count, lambda: readers.answer(reader, items))


BENCHES = {
    bench.__name__.removeprefix("bench_"): bench
    for bench in (bench_encoder, bench_compression, bench_training, bench_readers)
}


def main(arguments: list[str]) -> None:
    """Run all benches, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], default=[])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="few texts and a tiny model: a test of the script")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no GPU; --device cpu --small tests the script")
    choose_device(options.device)
    print(torch.cuda.get_device_name() if options.device == "cuda" else "CPU", torch.__version__, flush=True)
    with tempfile.TemporaryDirectory(prefix="undertone-gpu-") as place:
        for name in options.names or BENCHES:
            BENCHES[name](options.device, options.small, Path(place))


if __name__ == "__main__":
    main(sys.argv[1:])
