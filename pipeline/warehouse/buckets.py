"""Buckets: rows too many for memory are divided by a key into scratch files, and joined one bucket at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal

import polars as pl

from pipeline.warehouse import catalog
from pipeline.warehouse.files import list_folder, open_store
from pipeline.warehouse.write import create_attempt

ROWS = 200_000  # of a bucket in memory; smaller ones are more, and each takes a megabyte or two while it is written
_WRITTEN = 250_000  # rows of all buckets together that wait to be written
SCRATCH: Literal["lz4"] = "lz4"  # compression of what is read once or twice: it writes in half the time of zstd


def count_buckets(*frames: pl.LazyFrame, rows: int = 0) -> int:
    """Count the buckets of some rows each (default `ROWS`) that frames need together: at least 1."""
    counts = (int(frame.select(pl.len()).collect(engine="streaming").item()) for frame in frames)
    return max(1, -(-sum(counts) // (rows or ROWS)))


@contextmanager
def divide(frame: pl.LazyFrame, key: pl.Expr, count: int) -> Iterator[list[pl.LazyFrame]]:
    """Divide rows into buckets by a whole number modulo `count`; yield a scan of each bucket, then remove them.

    One pass writes all buckets: to filter the whole for each would cost the square.
    """
    if count == 1:
        yield [frame]
        return
    folder = create_attempt("buckets")
    frame.with_columns(bucket=key % count).sink_parquet(
        pl.PartitionBy(folder, key="bucket", include_key=False),
        compression=SCRATCH,
        row_group_size=max(2_000, _WRITTEN // count),  # one of each bucket is in memory, and what describes each of all
        mkdir="://" not in folder,
        storage_options=catalog.STORE,
    )
    system, root = open_store(folder)
    numbers = {info.path.rpartition("/")[0].rpartition("bucket=")[2] for info in list_folder(system, root)}
    absent = pl.LazyFrame(schema=frame.collect_schema())
    yield [
        pl.scan_parquet(f"{folder}/bucket={number}/*.parquet", storage_options=catalog.STORE)
        if str(number) in numbers
        else absent
        for number in range(count)
    ]
    with suppress(OSError):  # those of a failure, too, are swept by age
        system.delete_dir(root)


def join_buckets(
    frames: Sequence[pl.LazyFrame], key: pl.Expr, count: int, join: Callable[..., pl.LazyFrame]
) -> pl.LazyFrame:
    """Divide frames by the same key, and scan the rows that `join` returns of the frames of each bucket."""
    folder = create_attempt("joined")
    with ExitStack() as stack:
        buckets = [stack.enter_context(divide(frame, key, count)) for frame in frames]
        for number, parts in enumerate(zip(*buckets, strict=True)):
            path = f"{folder}/{number:05}.parquet"
            join(*parts).collect().write_parquet(path, compression=SCRATCH, storage_options=catalog.STORE)
    return pl.scan_parquet(f"{folder}/*.parquet", storage_options=catalog.STORE)
