"""`make bench`: our steps beside a named reference in the same run. Ratios count; rows a second differ by box.

Ours and the reference take turns; the median of the rounds is told, in CPU seconds, which a busy machine inflates less
than wall time. Input: real comments from UNDERTONE_DATA, or the sample repeated where there are none.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
HOME = Path(tempfile.mkdtemp(prefix="undertone-bench-"))
os.environ["UNDERTONE_HOME"] = str(HOME)
DAY = "2026-11-19"


def comments() -> list[str]:
    """Real comments if there are any, in a fixed shuffled order."""
    import random

    data = os.environ.get("UNDERTONE_DATA")
    found: list[str] = []
    if data:
        posts = Path(data) / "checked_weibo_news_comments_zh" / "checked_posts_comments20.jsonl"
        found = [c for line in posts.open(encoding="utf-8") for c in json.loads(line)["comments"]]
        for path in sorted((Path(data) / "bilibili_likes_zh").glob("*.jsonl")):
            found += [json.loads(line)["text"] for line in path.open(encoding="utf-8")]
    else:
        from pipeline.sample import COMPLETIONS

        found = [json.loads(line)["input"] for line in COMPLETIONS.open(encoding="utf-8")] * 100
    random.Random(13).shuffle(found)
    return found


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of this process and its ended children."""
    before = time.process_time()
    work()
    return time.process_time() - before


def against(
    name: str, rows: int, ours: Callable[[], Any], reference: Callable[[], Any], called: str, rounds: int
) -> None:
    """Both in turns; prints rows a CPU second and the ratio of CPU times, reference over ours."""
    mine, theirs = [], []
    for _ in range(rounds):
        theirs.append(cpu(reference))
        mine.append(cpu(ours))
    a, b = statistics.median(mine), statistics.median(theirs)
    print(
        f"{name:34} {rows / a:>11,.0f} rows/cpu-s   {called:44} {rows / b:>11,.0f}   ours is {b / a:5.2f}x as fast",
        flush=True,
    )


def bench_import(texts: list[str]) -> None:
    """Import, clean, anonymise, deduplicate and write, beside json.loads and streaming pyarrow Parquet."""
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
    against(
        "import + clean + anonymise + write", len(texts), ours, reference, "json.loads + streaming pyarrow.parquet", 3
    )


def bench_anonymise(texts: list[str]) -> None:
    """Anonymising: precision and recall of each kind on the table of examples, and texts a second."""
    import polars as pl

    from pipeline.collect.privacy.particulars import scrub_column

    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from tests.collect.privacy.personal_data import examples, measure

    rows = examples()
    for kind, counts in measure(rows)[0].items():
        print(f"{f'anonymise {kind}':34} precision {counts.precision:.3f}, recall {counts.recall:.3f} "
              f"({counts.right} right, {counts.wrong} wrong, {counts.missed} missed)", flush=True)  # fmt: skip
    column, dense = pl.Series("text", texts), pl.Series("text", [row.text for row in rows] * 20)
    for name, given in (("anonymise comments", column), ("anonymise the examples", dense)):
        seconds = cpu(lambda given=given: scrub_column(given))
        print(f"{name:34} {len(given) / seconds:>11,.0f} rows/cpu-s", flush=True)


def bench_tokenize(texts: list[str]) -> None:
    """Cutting words, beside bare jieba.lcut, and the Rust twin."""
    import jieba
    import polars as pl

    from pipeline.collect.clean import hash_text
    from pipeline.text.language import detect_language
    from pipeline.text.segment import load_tokenizers, tokenize

    frame = pl.DataFrame({"text": texts}).with_columns(hash_text(pl.Series("text_hash", texts)), lang=detect_language())
    by = load_tokenizers()
    jieba.initialize()
    bare = lambda: [jieba.lcut(t) for t in texts]
    against("tokenize (jieba)", len(texts), lambda: tokenize(frame, by), bare, "bare jieba.lcut", 3)
    fast = load_tokenizers("rjieba")
    against("tokenize (rjieba)", len(texts), lambda: tokenize(frame, fast), bare, "bare jieba.lcut", 3)


def bench_score(texts: list[str]) -> None:
    """Scoring end to end, beside the bare encoder on sorted batches and SentenceTransformer.encode as it comes."""
    import numpy as np
    import torch

    from pipeline.models import encoder as encoders
    from pipeline.models.impscore import ImpScore
    from pipeline.score.implicitness import Head, implicitness

    encoder = encoders.load(threads=1)
    head = Head(encoder, ImpScore(encoder.dim, generator=torch.Generator().manual_seed(1)))
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
    against("score end to end", len(texts), ours, bare, "bare encoder, sorted, already tokenized", 3)
    usual = lambda: encoder.module.encode(texts, show_progress_bar=False)
    against("score end to end", len(texts), ours, usual, "SentenceTransformer.encode, unsorted texts", 3)
    piecemeal = lambda: [
        encoder.module.encode(texts[i : i + 32], show_progress_bar=False) for i in range(0, len(texts), 32)
    ]
    against("score end to end", len(texts), ours, piecemeal, "SentenceTransformer.encode, 32 at a time", 3)
    half = head._replace(encoder=encoders.load(precision="bfloat16", threads=1))
    quick = lambda: implicitness(texts, half)
    against("score end to end, bfloat16", len(texts), quick, usual, "SentenceTransformer.encode, unsorted texts", 3)
    moved = np.abs(implicitness(texts, half) - implicitness(texts, head)).max()
    print(f"{'':34} bfloat16 moves scores by at most {moved:.4f}")


def bench_train(triples: int) -> None:
    """Training on embeddings made once, beside the released code's way: all four texts at every step (IMP-44)."""
    import numpy as np
    import polars as pl
    import torch

    from pipeline.examples.impscore import pairs as examples
    from pipeline.llm import cassette
    from pipeline.models import encoder as encoders
    from pipeline.models.impscore import ImpScore, loss
    from pipeline.sample import COMPLETIONS
    from pipeline.tables import empty
    from pipeline.training.impscore import fit, heads

    rows, _ = examples.build(empty("sentences"), cassette.read(COMPLETIONS))
    rows = rows.filter(pl.col("lang") == "en").head(triples)
    train = rows.filter(pl.col("split") == "train")
    encoder = encoders.load(threads=1)
    accuracies = []

    def released() -> None:
        model = ImpScore(encoder.dim, generator=torch.Generator().manual_seed(42))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        said = lambda side: model(torch.tensor(encoder.module.encode(train[side].to_list(), show_progress_bar=False)))
        for _ in range(30):
            optimiser.zero_grad()
            s1, s2, again, s3 = said("implicit"), said("explicit"), said("implicit"), said("negative")
            assert torch.allclose(s1.implicitness, again.implicitness, atol=1e-5)
            loss(s1, s2, s3).backward()
            optimiser.step()
        s1, s2, s3 = (said(side).implicitness.detach() for side in ("implicit", "explicit", "negative"))
        accuracies.append(float(torch.cat([s1 > s2, s1 > s3]).float().mean()))

    def ours() -> None:
        folder = Path(tempfile.mkdtemp(dir=HOME))  # no embeddings from an earlier round
        head = heads.fit(train, None, fit.make_recipe("paper"), encoder, folder)
        i1, i2, i3 = (head.triples[name].to_numpy() for name in ("i1", "i2", "i3"))
        accuracies.append(float(np.mean(np.r_[i1 > i2, i1 > i3])))

    against("train ImpScore, 30 epochs", train.height, ours, released, "re-encoding at every step (released code)", 1)
    print(f"{'':34} accuracy on its training part: {accuracies[1]:.3f}, the reference {accuracies[0]:.3f}")


def bench_grid(triples: int) -> None:
    """One training of the sensitivity grid on cached embeddings, told as the whole grid of 360."""
    import polars as pl
    import torch

    from pipeline.training.impscore import fit
    from pipeline.training.impscore.corpus import Corpus
    from pipeline.training.impscore.embedding import Frozen

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
    where = warehouse.make_slice(source="bench", day=DAY)

    def copy() -> None:
        source = pq.ParquetFile(staged)
        with pq.ParquetWriter(plain, source.schema_arrow, compression="zstd") as writer:
            for batch in source.iter_batches(batch_size=50_000):
                writer.write_batch(batch)

    ours = lambda: warehouse.overwrite("scores", where, pl.scan_parquet(staged))
    ours()
    against("warehouse write (validated slice)", rows, ours, copy, "streaming pyarrow.parquet copy", 5)
    read = lambda: warehouse.scan("scores", pl.col("source") == "bench").collect()
    against("warehouse read (slice)", rows, read, lambda: pq.read_table(plain), "pyarrow.parquet read_table", 5)


def apart(call: str, **settings: str) -> Any:
    """What a call of `module.function(...)` below tests.bench returns, as JSON, in a process of its own."""
    module = call.partition(".")[0]
    code = f"import json; from tests.bench import {module}; print(json.dumps({call}))"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **settings}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Most memory this process has held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def import_generated(rows: int) -> float:
    """Import `rows` generated comments; return the peak memory of this process, MB."""
    from pipeline import warehouse
    from pipeline.tasks.daily import collect

    warehouse.create()
    collect.import_files([generated(rows)], "bench", DAY, key=b"k")
    return peak_memory()


def peak(rows: int) -> float:
    """Peak memory in MB of a process that imports `rows` generated comments."""
    return float(apart(f"run.import_generated({rows})"))


def generated(rows: int) -> Path:
    """A jsonl file of generated comments, 40 to a thread."""
    path = HOME / f"generated-{rows}.jsonl"
    words = [*"这我孙子能看到更新速度早起面包门口", "大结局", "[doge]", "地铁", "下雨", "加班", "月亮"]
    with path.open("w", encoding="utf-8") as file:
        for i in range(rows):
            text = "".join(words[(i * k + i // (k + 1)) % len(words)] for k in range(1, 9)) + str(i)
            file.write(
                json.dumps({"text": text, "thread_id": str(i // 40), "user": str(i % 9999)}, ensure_ascii=False) + "\n"
            )
    return path


def bench_memory() -> None:
    """Peak memory of importing 20 times as many comments."""
    small, large = peak(100_000), peak(2_000_000)
    print(f"{'memory of an import':34} {small:,.0f} MB at 100,000 comments, {large:,.0f} MB at 2,000,000: "
          f"{large / small:.2f}x")  # fmt: skip


def main() -> None:
    """Everything, or the benches named on the command line."""
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']}", flush=True)  # fmt: skip
    texts = comments()
    benches: dict[str, Callable[[], None]] = {
        "import": lambda: bench_import(texts),
        "anonymise": lambda: bench_anonymise(texts),
        "tokenize": lambda: bench_tokenize(texts[:20_000]),
        "score": lambda: bench_score(texts[:1_000]),
        "train": lambda: bench_train(100),
        "grid": lambda: bench_grid(13_000),
        "warehouse": lambda: bench_warehouse(2_000_000),
    }
    for name in ("agreement", "senses", "cloze", "overlap", "ndd"):  # on their own, as they tell of their processes
        script = str(Path(__file__).with_name(f"{name}_bench.py"))
        benches[name] = partial(subprocess.run, [sys.executable, script], check=True)  # type: ignore[assignment]
    benches["memory"] = bench_memory
    for name in sys.argv[1:] or benches:
        benches[name]()


if __name__ == "__main__":
    main()
