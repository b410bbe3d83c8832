"""`make bench`: our steps beside a named reference in the same run. Ratios count; rows a second differ by machine.

Ours and the reference take turns on the same distinct texts; a ratio is of the medians of five rounds, in CPU seconds.
The ratios are written to build/bench.json and compared with those kept in `ratios.json`; one that fell by more than a
tenth ends the run with 1. `--keep` stores them. Names of benches on the command line run these alone.
"""

import atexit
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench import ratios
from tests.bench.measure import RESULTS, ROOT, compare, cpu, peak_memory, report, run_apart
from tests.bench.texts import generate_comments, load_comments

HOME = Path(tempfile.mkdtemp(prefix="undertone-bench-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["UNDERTONE_HOME"] = str(HOME)
DAY = "2026-11-19"
COMMENTS = 50_000  # generated ones, where there are no real ones


def bench_import(texts: list[str]) -> None:
    """Import, which cleans, anonymises, deduplicates and writes, beside reading and writing alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipeline import warehouse
    from pipeline.tasks.daily import collect

    warehouse.create()
    path = HOME / "bench.jsonl"
    lines = (
        json.dumps({"text": t, "thread_id": str(i % 500), "user": str(i)}, ensure_ascii=False)
        for i, t in enumerate(texts)
    )
    path.write_text("\n".join(lines), encoding="utf-8")

    def reference() -> None:
        schema = pa.schema([("text", pa.string()), ("thread_id", pa.string()), ("user", pa.string())])
        with (
            pq.ParquetWriter(HOME / "reference.parquet", schema, compression="zstd") as writer,
            path.open(encoding="utf-8") as file,
        ):
            batch: list[Any] = []
            for line in file:
                batch.append(json.loads(line))
                if len(batch) == 20_000:
                    writer.write_table(pa.Table.from_pylist(batch, schema))
                    batch = []
            writer.write_table(pa.Table.from_pylist(batch, schema))

    ours = lambda: collect.import_files([path], "bench", DAY, key=b"bench")
    ours()
    compare("import, clean, anonymise, write", len(texts), ours, reference, "only json.loads and pyarrow.parquet")


def bench_deduplicate(texts: list[str]) -> None:
    """The search for copies and near copies, which is a part of import, beside signatures alone by rensa."""
    import polars as pl
    from rensa import RMinHash

    from pipeline import warehouse
    from pipeline.collect.threads import deduplicate

    comments = warehouse.scan("comments", pl.col("source") == "bench").collect()
    rows = comments.with_row_index("row_key").with_columns(pl.col("row_key").cast(pl.String)).drop("duplicate_count")

    def reference() -> None:
        for text in texts:
            signature = RMinHash(num_perm=128, seed=1)
            signature.update([text[start : start + 3] for start in range(len(text) - 2)])
            signature.digest()

    assert deduplicate(rows)
    compare("deduplicate", rows.height, lambda: deduplicate(rows), reference, "rensa, signatures alone")


def bench_anonymise(texts: list[str]) -> None:
    """Anonymising: precision and recall of each kind on the table of examples, and texts a second."""
    import polars as pl

    from pipeline.collect.privacy.particulars import scrub_column
    from tests.collect.privacy.personal_data import examples, measure

    rows = examples()
    for kind, counts in measure(rows)[0].items():
        print(f"{f'anonymise {kind}':34} precision {counts.precision:.3f}, recall {counts.recall:.3f} "
              f"({counts.right} right, {counts.wrong} wrong, {counts.missed} missed)", flush=True)  # fmt: skip
    column, dense = pl.Series("text", texts), pl.Series("text", [row.text for row in rows] * 20)
    for name, values in (("anonymise comments", column), ("anonymise the examples", dense)):
        seconds = cpu(lambda values=values: scrub_column(values))
        print(f"{name:34} {len(values) / seconds:>11,.0f} rows/cpu-s", flush=True)


def bench_tokenize(texts: list[str]) -> None:
    """Cutting words, beside bare jieba.lcut, and the Rust twin."""
    import jieba
    import polars as pl

    from pipeline.collect.clean import hash_text
    from pipeline.text.language import detect_language
    from pipeline.text.segment import load_tokenizers, tokenize

    frame = pl.DataFrame({"text": texts}).with_columns(hash_text(pl.Series("text_hash", texts)), lang=detect_language())
    jieba.initialize()
    bare = lambda: [jieba.lcut(text) for text in texts]
    for name in ("jieba", "rjieba"):
        ours = partial(tokenize, frame, load_tokenizers(name))
        compare(f"tokenize ({name})", len(texts), ours, bare, "bare jieba.lcut")


def bench_score(texts: list[str]) -> None:
    """Scoring end to end, beside the bare encoder on sorted batches and SentenceTransformer.encode as it comes."""
    import numpy as np
    import torch
    from scipy import stats

    from pipeline.models import encoder as encoders
    from pipeline.score.implicitness import implicitness
    from pipeline.tasks.impscore import scoring

    head, half = (scoring.load_heads(str(scoring.SHIPPED), precision).heads["en"] for precision in encoders.PRECISIONS)
    encoder = head.encoder
    tokenizer = encoder.module.tokenizer
    ids = tokenizer(texts, truncation=True, max_length=encoder.module.max_seq_length)["input_ids"]
    order = np.argsort([-len(i) for i in ids], kind="stable")
    batches = []
    start = 0
    while start < len(order):
        size = max(1, encoders.CPU_TOKENS // len(ids[order[start]]))
        batches.append(tokenizer.pad({"input_ids": [ids[i] for i in order[start : start + size]]}, return_tensors="pt"))
        start += size

    def bare() -> None:
        with torch.inference_mode():
            for features in batches:
                encoder.module(dict(features))

    ours = lambda: implicitness(texts, head)
    compare("score end to end", len(texts), ours, bare, "bare encoder, sorted, already tokenized")
    usual = lambda: encoder.module.encode(texts, show_progress_bar=False)
    compare("score end to end", len(texts), ours, usual, "SentenceTransformer.encode, unsorted texts")
    if not encoders.is_bfloat16_fast():
        return
    quick = lambda: implicitness(texts, half)
    compare("score end to end, bfloat16", len(texts), quick, usual, "SentenceTransformer.encode, unsorted texts")
    exact, rounded = implicitness(texts, head), implicitness(texts, half)
    tau = float(stats.kendalltau(exact, rounded)[0])
    print(f"{'':34} bfloat16 moves scores by at most {np.abs(rounded - exact).max():.4f}; Kendall tau {tau:.4f}")


def bench_train(triples: int) -> None:
    """Training on embeddings made once, beside the released code's way: all four texts at every step (IMP-44)."""
    import numpy as np
    import polars as pl
    import torch

    from pipeline.examples.impscore import pairs as examples
    from pipeline.llm import request
    from pipeline.models import encoder as encoders
    from pipeline.models.impscore import ImpScore, loss
    from pipeline.sample import COMPLETIONS
    from pipeline.tables import empty
    from pipeline.training.impscore import fit, heads

    rows, _ = examples.build(empty("sentences"), request.read_cassette(COMPLETIONS))
    rows = rows.filter(pl.col("lang") == "en").head(triples)
    train = rows.filter(pl.col("split") == "train")
    encoder = encoders.load(threads=1)
    accuracies = []

    def released() -> None:
        model = ImpScore(encoder.dim, generator=torch.Generator().manual_seed(42))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        embed = lambda side: model(torch.tensor(encoder.module.encode(train[side].to_list(), show_progress_bar=False)))
        for _ in range(30):
            optimiser.zero_grad()
            s1, s2, repeated, s3 = (embed(side) for side in ("implicit", "explicit", "implicit", "negative"))
            assert torch.allclose(s1.implicitness, repeated.implicitness, atol=1e-5)
            loss(s1, s2, s3).backward()
            optimiser.step()
        s1, s2, s3 = (embed(side).implicitness.detach() for side in ("implicit", "explicit", "negative"))
        accuracies.append(float(torch.cat([s1 > s2, s1 > s3]).float().mean()))

    def ours() -> None:
        folder = Path(tempfile.mkdtemp(dir=HOME))  # no embeddings from an earlier round
        head = heads.fit(train, None, fit.make_recipe("paper"), encoder, folder)
        i1, i2, i3 = (head.triples[name].to_numpy() for name in ("i1", "i2", "i3"))
        accuracies.append(float(np.mean(np.r_[i1 > i2, i1 > i3])))

    compare("train ImpScore, 30 epochs", train.height, ours, released, "re-encoding at every step (released code)", 1)
    print(f"{'':34} accuracy on its training part: {accuracies[1]:.3f}, the reference {accuracies[0]:.3f}")


def bench_grid(triples: int) -> None:
    """One training of the sensitivity grid on cached embeddings, scaled to the whole grid of 360."""
    import polars as pl
    import torch

    from pipeline.training.impscore import fit
    from pipeline.training.impscore.fit import Corpus, Frozen

    texts = 2 * triples
    vectors = torch.nn.functional.normalize(torch.randn(texts, 384), dim=1).numpy()
    rows = torch.stack([torch.arange(triples), triples + torch.arange(triples), triples + torch.randperm(triples)], 1)
    split = pl.Series(["train"] * (8 * triples // 10) + ["validation"] * (triples - 8 * triples // 10))
    none = pl.DataFrame(schema={"group": pl.String, "level": pl.Int64, "text": pl.String, "split": pl.String})
    corpus = Corpus([""] * texts, pl.DataFrame({"split": split}), rows, none, torch.empty(0, dtype=torch.int64))
    seconds = cpu(lambda: fit.fit(corpus, Frozen(vectors), fit.make_recipe("paper")))
    print(f"{'one training of the grid':34} {triples:,} triples: {seconds:.1f} cpu-s; 360 of them on 2 cores: "
          f"{360 * seconds / 2 / 60:.0f} minutes", flush=True)  # fmt: skip


def bench_warehouse(rows: int) -> None:
    """Writing and reading a slice, beside streaming pyarrow.parquet."""
    import polars as pl
    import pyarrow.parquet as pq

    from pipeline import warehouse

    warehouse.create()
    numbers = pl.int_range(rows, eager=True)
    text = numbers.cast(pl.String)
    frame = pl.DataFrame({
        "source": "bench", "thread_id": (numbers % 5000).cast(pl.String), "comment_id": text,
        "text_hash": "0" * 32, "metric": "implicitness",
        "model_id": "0" * 64, "value": (numbers % 1000) / 500, "signature": "implicitness|model:bench|encoder:none|en",
    }).with_columns(day=pl.lit(DAY).str.to_date())  # fmt: skip
    staged, plain = HOME / "staged.parquet", HOME / "plain.parquet"
    frame.write_parquet(staged, row_group_size=50_000)
    partition = warehouse.make_slice(source="bench", day=DAY)

    def copy() -> None:
        source = pq.ParquetFile(staged)
        with pq.ParquetWriter(plain, source.schema_arrow, compression="zstd") as writer:
            for batch in source.iter_batches(batch_size=50_000):
                writer.write_batch(batch)

    ours = lambda: warehouse.overwrite("scores", partition, pl.scan_parquet(staged))
    ours()
    compare("warehouse write (validated slice)", rows, ours, copy, "streaming pyarrow.parquet copy")
    read = lambda: warehouse.scan("scores", pl.col("source") == "bench").collect()
    compare("warehouse read (slice)", rows, read, lambda: pq.read_table(plain), "pyarrow.parquet read_table")


def import_generated(rows: int) -> float:
    """Import `rows` generated comments; return the peak memory of this process, MB."""
    from pipeline import warehouse
    from pipeline.tasks.daily import collect

    warehouse.create()
    collect.import_files([generate_file(rows)], "bench", DAY, key=b"k")
    return peak_memory()


def generate_file(rows: int) -> Path:
    """A jsonl file of generated comments, 40 to a thread."""
    path = HOME / f"generated-{rows}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(generate_comments(rows)):
            row = {"text": text, "thread_id": str(number // 40), "user": str(number % 9999)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def bench_start() -> None:
    """A fresh process of a command, beside one that imports polars alone."""
    from pipeline import warehouse

    warehouse.create()
    texts = HOME / "two.csv"
    texts.write_text("id,text\n1,It is late.\n2,Some of us have an alarm set for five.\n", encoding="utf-8")
    command = [sys.executable, "-m", "pipeline.cli"]
    calls = {"--version": [], "--help": [], "tables": [], "score implicitness": [str(texts)]}

    def measure(words: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, capture_output=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    polars = statistics.median(measure([sys.executable, "-c", "import polars"]) for _ in range(5))
    for name, arguments in calls.items():
        words = [*command, *name.split(), *arguments]
        report(f"undertone {name}", 1, statistics.median(measure(words) for _ in range(5)), "import polars", polars)


def bench_memory() -> None:
    """Peak memory of importing 20 times as many comments."""
    small, large = (float(run_apart(f"run.import_generated({rows})")) for rows in (100_000, 2_000_000))
    print(f"{'memory of an import':34} {small:,.0f} MB at 100,000 comments, {large:,.0f} MB at 2,000,000: "
          f"{large / small:.2f}x")  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run all benches, or those that are named; return 1 if a ratio fell."""
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']}", flush=True)  # fmt: skip
    names = [name for name in arguments if name != "--keep"]
    texts = [*dict.fromkeys(load_comments(COMMENTS))]
    benches: dict[str, Callable[[], Any]] = {
        "start": bench_start,
        "import": lambda: [bench_import(texts), bench_deduplicate(texts)],
        "anonymise": lambda: bench_anonymise(texts),
        "tokenize": lambda: bench_tokenize(texts[:20_000]),
        "score": lambda: bench_score(texts[:3_000]),
        "train": lambda: bench_train(100),
        "grid": lambda: bench_grid(13_000),
        "warehouse": lambda: bench_warehouse(2_000_000),
    }
    for name in ("senses", "cloze", "overlap", "ndd", "browse"):  # in processes of their own, for their memory
        words = [sys.executable, Path(__file__).with_name(f"{name}_bench.py")]
        benches[name] = partial(subprocess.run, words, check=True)
    benches["memory"] = bench_memory
    results = ROOT / "build" / "bench.jsonl"
    results.parent.mkdir(exist_ok=True)
    results.write_text("")
    os.environ[RESULTS] = str(results)
    for name in names or benches:
        benches[name]()
    measured = ratios.read_results(results)
    stored = json.loads(ratios.KEPT.read_text(encoding="utf-8")) if ratios.KEPT.is_file() else {}
    (results.parent / "bench.json").write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if "--keep" in arguments:
        ratios.KEPT.write_text(json.dumps({**stored, **measured}, indent=1) + "\n", encoding="utf-8")
        return 0
    for line in (fallen := ratios.find_regressions(measured, stored)):
        print(f"slower: {line}", flush=True)
    return int(bool(fallen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
