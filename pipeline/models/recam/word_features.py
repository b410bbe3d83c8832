"""Features of words, out of context and in it, from an encoder or word vectors, and their abstractness (ReCAM, 3).

Where GloVe's vectors of the paper are not to be had, an encoder makes them of a word as a sentence and of its pieces.
States in context are of any layer of an encoder, as the paper names none (section 3.4; REC-14). The abstractness scorer
(REC-05) is σ(W₃ relu(W₂ relu(W₁ v))), 0 highly abstract, 1 highly concrete; the vectors are fixed. The paper states no
sizes; those of the profile `paper` are ours.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from pipeline.errors import BadInput
from pipeline.io.atomic import replace_file
from pipeline.models.encoder import CPU_TOKENS, GPU_TOKENS, Encoder, IndexArray, Vectors, encode, make_batches
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


_SCORED_ROWS = 8192  # words scored at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a scorer."""

    hidden: tuple[int, int] = (300, 100)
    members: int = 1  # networks trained side by side, whose scores are averaged
    dropout: float = 0.0  # of the hidden layers' values
    input_dropout: float = 0.0  # of the words' features


class Abstractness(nn.Module):
    """Networks over standardised word vectors. Weights are drawn from torch's global source."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, dim: int, shape: Shape) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))
        self.members = nn.ModuleList()
        for _ in range(shape.members):
            layers: list[nn.Module] = [nn.Dropout(shape.input_dropout)]
            for width, next_width in pairwise((dim, *shape.hidden)):
                layers += [nn.Linear(width, next_width), nn.ReLU(), nn.Dropout(shape.dropout)]
            self.members.append(nn.Sequential(*layers, nn.Linear(shape.hidden[-1], 1), nn.Sigmoid()))

    def standardise(self, vectors: Tensor) -> None:
        """Set mean and deviation of the features from vectors [n, d]."""
        self.mean = vectors.mean(dim=0)
        spread = vectors.std(dim=0, correction=0)
        # without the bound, a feature that hardly varies here would be huge where it does
        self.deviation = spread.clamp(min=float(spread.square().mean().sqrt()) * 1e-2).clamp(min=1e-12)

    def forward(self, vectors: Tensor) -> Tensor:
        """Compute each member's score of vectors [n, d]: [n, members], in [0, 1]."""
        features = (vectors - self.mean) / self.deviation
        return torch.cat([member(features) for member in self.members], dim=1)


@torch.no_grad()
def score_vectors(model: Abstractness, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Compute the concreteness of words from their vectors [n, d], of the scorer's width: the members' mean, [n]."""
    if vectors.ndim != 2 or vectors.shape[1] != len(model.mean):
        raise ValueError(f"expected vectors [n, {len(model.mean)}], got {list(vectors.shape)}")
    model.eval()
    out = np.empty(len(vectors), np.float64)
    for start in range(0, len(vectors), _SCORED_ROWS):
        part = slice(start, start + _SCORED_ROWS)
        out[part] = model(torch.from_numpy(np.ascontiguousarray(vectors[part]))).double().mean(dim=1).numpy()
    return out


Pooling = Literal["mean", "first"]  # a token's state: the mean of its pieces' states, or the state of its first piece


class _Window(NamedTuple):  # a sentence as the model reads it, or a part of one that is too long
    ids: list[int]  # of the pieces, special ones among them
    rows: list[int]  # of each piece the row of its token in the result; -1 of special pieces, and of those left out


def embed_tokens(
    encoder: Encoder, sentences: Sequence[Sequence[str]], layer: int = -1, pooling: Pooling = "mean"
) -> list[Vectors]:
    """Embed the tokens of each sentence: float32 [tokens, d], d being the width of the model.

    Tokens stand in the model's input with a blank between them. A token without a piece has zeros. A sentence longer
    than the model reads is cut between tokens into windows. A distinct sentence is embedded once; states differ by up
    to 1e-6 with the batch. Layer 0 has the input embeddings, negative numbers count from the last layer. BadInput if
    the encoder has no word pieces, cannot tell which character a piece is from, or has no such layer, or if there is no
    such pooling.
    """
    if encoder.module is None:
        raise BadInput(f"the encoder {encoder.name!r} has no word pieces; give a transformer")
    if not encoder.module.tokenizer.is_fast:
        raise BadInput(f"the tokenizer of the encoder {encoder.name!r} does not return the characters of a piece")
    count = encoder.module[0].model.config.num_hidden_layers + 1
    if not -count <= layer < count:
        raise BadInput(f"no layer {layer} in the encoder {encoder.name!r}; expected one from {-count} to {count - 1}")
    if pooling not in get_args(Pooling):
        raise BadInput(f"no pooling {pooling!r}; there are {', '.join(get_args(Pooling))}")
    distinct = dict.fromkeys(map(tuple, sentences))
    offsets = np.cumsum([0, *map(len, distinct)])
    windows = _make_windows(encoder, list(distinct), offsets, pooling)
    width = encoder.module[0].model.config.hidden_size
    sums, counts = torch.zeros(int(offsets[-1]), width), torch.zeros(int(offsets[-1]), 1)
    budget = GPU_TOKENS if encoder.device == "cuda" else CPU_TOKENS
    batches = make_batches(np.array([len(window.ids) for window in windows], np.int64), budget)

    def embed(batch: IndexArray) -> tuple[torch.Tensor, torch.Tensor]:
        return _embed_windows(encoder, [windows[i] for i in batch], layer)

    with ThreadPoolExecutor(encoder.threads) as pool:
        for rows, window_states in pool.map(embed, batches):
            sums.index_add_(0, rows, window_states)
            counts.index_add_(0, rows, torch.ones(len(rows), 1))
    states = (sums / counts.clamp(min=1)).numpy()
    parts = dict(zip(distinct, (states[start:end] for start, end in pairwise(offsets.tolist())), strict=True))
    return [parts[tuple(sentence)] for sentence in sentences]


def _make_windows(
    encoder: Encoder, sentences: list[tuple[str, ...]], offsets: IndexArray, pooling: str
) -> list[_Window]:
    """The windows of all sentences with a piece; `offsets` are the rows of their first tokens."""
    # not is_split_into_words: by it RoBERTa's kin would read each token as if no blank stood before it
    texts = [" ".join(sentence) for sentence in sentences]
    if not texts:
        return []
    options = {"return_offsets_mapping": True, "return_special_tokens_mask": True}
    encoded = encoder.module.tokenizer(texts, verbose=False, **options)
    columns = (encoded[name] for name in ("input_ids", "offset_mapping", "special_tokens_mask"))
    windows = []
    for sentence, start, ids, places, special in zip(sentences, offsets[:-1], *columns, strict=True):
        body = np.flatnonzero(np.array(special) == 0)
        if not len(body):
            continue
        ends = np.cumsum([len(token) + 1 for token in sentence]) - 1
        # by a piece's last character: the first may be the blank before a token
        token = np.searchsorted(ends, np.array(places)[body, 1] - 1, side="right")
        rows = int(start) + token
        if pooling == "first":
            rows[1:][token[1:] == token[:-1]] = -1
        head, tail = ids[: body[0]], ids[body[-1] + 1 :]
        longest = encoder.module.max_seq_length - len(head) - len(tail)
        pieces = np.array(ids)[body].tolist()
        windows += [
            _Window(head + pieces[a:b] + tail, [-1] * len(head) + rows[a:b].tolist() + [-1] * len(tail))
            for a, b in pairwise(_list_cuts(token, longest))
        ]
    return windows


def _list_cuts(token: IndexArray, longest: int) -> list[int]:
    """Where pieces are cut so that none of the parts is longer: between tokens, or inside one that is longer itself."""
    cuts = [0]
    while len(token) - cuts[-1] > longest:
        end = cuts[-1] + longest
        token_start = int(np.searchsorted(token, token[end]))  # the first piece of the token that the cut would fall in
        cuts.append(token_start if token_start > cuts[-1] else end)
    return [*cuts, len(token)]


def _embed_windows(encoder: Encoder, windows: list[_Window], layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [n] and states [n, d] of the pieces that count."""
    features = encoder.module.tokenizer.pad({"input_ids": [window.ids for window in windows]}, return_tensors="pt")
    features = {key: value.to(encoder.device) for key, value in features.items()}
    with torch.inference_mode():  # holds for one thread only
        layer_states = encoder.module[0].model(**features, output_hidden_states=True).hidden_states[layer]
    rows = torch.tensor(list(chain.from_iterable(window.rows for window in windows)))
    is_counted = rows >= 0
    return rows[is_counted], layer_states[features["attention_mask"].bool()].float().cpu()[is_counted]
