"""Embeddings of texts in a file, which is made once and memory-mapped by every task that needs them."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipeline.io.atomic import replace_file
from pipeline.models.encoder import Encoder, Vectors, encode, limit_rows

CHUNK = 8192  # texts encoded between two writes


def load_or_encode(
    folder: Path, encoder: Encoder, texts: Sequence[str], on_progress: Callable[[int], None] = lambda _: None
) -> Vectors:
    """Load or make the embeddings of texts: float32 [len(texts), dim], mapped read-only from a file below `folder`.

    The file name is a hash of the encoder and the texts in order. The sweep of old files removes the draft of an
    interrupted attempt.
    """
    if not texts:
        return np.empty((0, encoder.dim), np.float32)  # an empty file cannot be mapped
    key = hashlib.sha256(f"{encoder.key} {len(texts)}".encode())
    for text in texts:
        key.update(b"\n" + hashlib.sha256(text.encode()).digest())
    path = folder / f"{key.hexdigest()}.npy"
    try:
        os.utime(path)  # in use: not to be swept as old
    except FileNotFoundError:
        # long and short texts apart, so that each chunk can be cut into batches of equal lengths
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
        with replace_file(path) as draft:
            rows = np.lib.format.open_memmap(draft, mode="w+", dtype=np.float32, shape=(len(texts), encoder.dim))
            step = min(CHUNK, limit_rows(encoder.dim))
            for start in range(0, len(order), step):
                chunk = order[start : start + step]
                rows[chunk] = encode(encoder, [texts[i] for i in chunk], on_progress)
            rows.flush()
            del rows
    else:
        on_progress(len(texts))
    mapped: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped
