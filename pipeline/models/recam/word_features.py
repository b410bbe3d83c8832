"""Static features of words out of context, from an encoder or from word vectors (ReCAM, sections 3.2 and 3.4).

Where GloVe's vectors of the paper are not to be had, an encoder makes them of a word as a sentence and of its pieces.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import embedding_bag

from pipeline.errors import BadInput
from pipeline.io.atomic import replace_file
from pipeline.models.encoder import Encoder, Vectors, encode
from pipeline.models.word_vectors import WordVectors
from pipeline.text import wordnet

Source = Encoder | WordVectors

_ROWS = 8_192  # words encoded at a time; their pieces are held for so many
_CAPACITY = 65_536  # words of an encoder that are kept, 4 d bytes each: 100 MB with the embedded one
_LONGEST = 64  # characters; what is longer is a text without blanks, and should fill no memory


class Features(NamedTuple):
    """Vectors of words, float32 [n, d], zeros for those that are not known; and which are known, bool [n]."""

    vectors: Vectors
    is_known: npt.NDArray[np.bool_]


def make_features(
    words: Sequence[str], source: Source, on_progress: Callable[[int], None] = lambda _: None
) -> Features:
    """Make the features of words, as they are spelt; BadInput if the encoder has no word pieces.

    Of an encoder: the embedding of the word as a sentence, and the mean of its pieces' input embeddings beside it. A
    word of which no piece is in the vocabulary is unknown. Of word vectors: the word's own, or that of its lower case;
    what stands for unknown words elsewhere, its letters' mean, says nothing here.
    """
    if isinstance(source, WordVectors):
        return _look_up(words, source, {word: row for row, word in enumerate(source.words)})
    if source.module is None:
        raise BadInput(f"the encoder {source.name!r} has no word pieces; give a transformer or word vectors")
    sentences, (pieces, is_known) = encode(source, words, on_progress), _average_pieces(words, source)
    vectors = np.concatenate([sentences, pieces], axis=1)
    vectors[~is_known] = 0
    return Features(vectors, is_known)


def list_whole(words: Sequence[str], source: Source) -> list[bool]:
    """Return whether each word is a single piece of the encoder, or in WordNet; all words of word vectors are."""
    if isinstance(source, WordVectors) or source.module is None:
        return [True] * len(words)
    tokenizer = source.module.tokenizer
    ids = tokenizer(list(words), add_special_tokens=False)["input_ids"] if words else []
    is_piece = (len(pieces) == 1 and pieces[0] != tokenizer.unk_token_id for pieces in ids)
    return [is_one or wordnet.has_word(word) for is_one, word in zip(is_piece, words, strict=True)]


def make_static_lookup(source: Source) -> Callable[[Sequence[str]], Vectors]:
    """Make a function from n words to their static vectors [n, d], zeros for unknown words (section 3.4; REC-13).

    Of an encoder: the embedding of the word as a sentence alone; with its pieces beside it no cosine says much.
    """
    if isinstance(source, WordVectors):
        # once: GloVe has millions of words
        rows = {word: row for row, word in enumerate(source.words)}
        return lambda words: _look_up(words, source, rows).vectors
    cache: dict[str, Vectors] = {}

    def vectors(words: Sequence[str]) -> Vectors:
        new_words = [word for word in dict.fromkeys(words) if word not in cache]
        new_rows = make_features(new_words, source).vectors[:, : source.dim].copy()
        new_vectors = dict(zip(new_words, new_rows, strict=True))
        result = np.array([cache[word] if word in cache else new_vectors[word] for word in words], np.float32)
        if len(cache) + len(new_vectors) > _CAPACITY:
            cache.clear()
        cache.update((word, vector) for word, vector in new_vectors.items() if len(word) <= _LONGEST)
        return result.reshape(len(words), source.dim)

    return vectors


def _look_up(words: Sequence[str], source: WordVectors, places: dict[str, int]) -> Features:
    rows = np.array([places.get(word, places.get(word.lower(), -1)) for word in words], np.int64)
    vectors = np.zeros((len(words), source.vectors.shape[1]), np.float32)
    vectors[rows >= 0] = source.vectors[rows[rows >= 0]]
    return Features(vectors, rows >= 0)


@torch.no_grad()
def _average_pieces(words: Sequence[str], encoder: Encoder) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """Mean input embedding of the pieces of each word [n, d], and whether any of them is known [n]."""
    table = encoder.module[0].model.get_input_embeddings().weight
    if not words:
        return np.empty((0, table.shape[1]), np.float32), np.empty(0, np.bool_)
    tokenizer = encoder.module.tokenizer
    limit = encoder.module.max_seq_length
    ids = tokenizer(list(words), add_special_tokens=False, truncation=True, max_length=limit)["input_ids"]
    starts = np.cumsum([0, *map(len, ids[:-1])])
    flat = torch.tensor([i for word_ids in ids for i in word_ids], dtype=torch.int64, device=table.device)
    offsets = torch.tensor(starts, dtype=torch.int64, device=table.device)
    means = embedding_bag(flat, table, offsets, mode="mean").float().cpu().numpy()
    return means, np.array([any(i != tokenizer.unk_token_id for i in word_ids) for word_ids in ids], np.bool_)


def load_or_make_vectors(folder: Path, encoder: Encoder, words: Sequence[str]) -> WordVectors:
    """Load the known distinct words as static vectors of an encoder; on first use make a file of them."""
    distinct = list(dict.fromkeys(words))
    signature = "\n".join([encoder.key, *distinct])
    path = folder / f"words-{hashlib.sha256(signature.encode()).hexdigest()}.npy"
    if not path.is_file():
        parts = [distinct[start : start + _ROWS] for start in range(0, len(distinct), _ROWS)] or [[]]
        vectors = np.concatenate([make_features(part, encoder).vectors for part in parts])
        with replace_file(path) as draft:
            np.save(draft, vectors, allow_pickle=False)
    os.utime(path)  # in use: not to be swept as old
    rows = np.load(path, allow_pickle=False)
    known_rows = np.flatnonzero(rows.any(axis=1))
    return WordVectors([distinct[row] for row in known_rows], rows[known_rows])
