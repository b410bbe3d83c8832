"""States of tokens in context, of any layer of an encoder, as the paper names none (ReCAM, section 3.4; REC-14)."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch

from pipeline.errors import BadInput, check_name
from pipeline.models.encoder import CPU_TOKENS, GPU_TOKENS, Encoder, IndexArray, Vectors, make_batches

Pooling = Literal["mean", "first"]
"""A token's state: the mean of its pieces' states, or the state of its first piece."""


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
    check_name("pooling", pooling, get_args(Pooling))
    distinct = dict.fromkeys(map(tuple, sentences))
    offsets = np.cumsum([0, *map(len, distinct)])
    window_ids, window_rows = _make_windows(encoder, list(distinct), offsets, pooling)
    width = encoder.module[0].model.config.hidden_size
    sums, counts = torch.zeros(int(offsets[-1]), width), torch.zeros(int(offsets[-1]), 1)
    budget = GPU_TOKENS if encoder.device == "cuda" else CPU_TOKENS
    batches = make_batches(np.array([*map(len, window_ids)], np.int64), budget)

    def embed(batch: IndexArray) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows [n] and states [n, d] of the pieces that count."""
        features = encoder.module.tokenizer.pad({"input_ids": [window_ids[i] for i in batch]}, return_tensors="pt")
        features = {key: value.to(encoder.device) for key, value in features.items()}
        with torch.inference_mode():  # holds for one thread only
            layer_states = encoder.module[0].model(**features, output_hidden_states=True).hidden_states[layer]
        rows = torch.tensor([row for i in batch for row in window_rows[i]])
        is_counted = rows >= 0
        return rows[is_counted], layer_states[features["attention_mask"].bool()].float().cpu()[is_counted]

    with ThreadPoolExecutor(encoder.threads) as pool:
        for rows, window_states in pool.map(embed, batches):
            sums.index_add_(0, rows, window_states)
            counts.index_add_(0, rows, torch.ones(len(rows), 1))
    states = (sums / counts.clamp(min=1)).numpy()
    parts = dict(zip(distinct, (states[start:end] for start, end in pairwise(offsets.tolist())), strict=True))
    return [parts[tuple(sentence)] for sentence in sentences]


def _make_windows(
    encoder: Encoder, sentences: list[tuple[str, ...]], offsets: IndexArray, pooling: str
) -> tuple[list[list[int]], list[list[int]]]:
    """Of all windows (sentences, or parts of one that is too long) the ids of pieces, and the row of each one's token.

    The row is -1 of special pieces, and of those left out; `offsets` are the rows of the sentences' first tokens.
    """
    # not is_split_into_words: by it RoBERTa's kin would read each token as if no blank stood before it
    texts = [" ".join(sentence) for sentence in sentences]
    window_ids, window_rows = list[list[int]](), list[list[int]]()
    if not texts:
        return window_ids, window_rows
    options = {"return_offsets_mapping": True, "return_special_tokens_mask": True}
    encoded = encoder.module.tokenizer(texts, verbose=False, **options)
    columns = (encoded[name] for name in ("input_ids", "offset_mapping", "special_tokens_mask"))
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
        for a, b in pairwise(_list_cuts(token, longest)):
            window_ids.append(head + pieces[a:b] + tail)
            window_rows.append([-1] * len(head) + rows[a:b].tolist() + [-1] * len(tail))
    return window_ids, window_rows


def _list_cuts(token: IndexArray, longest: int) -> list[int]:
    """Where pieces are cut so that none of the parts is longer: between tokens, or inside one that is longer itself."""
    cuts = [0]
    while len(token) - cuts[-1] > longest:
        end = cuts[-1] + longest
        token_start = int(np.searchsorted(token, token[end]))  # the first piece of the token that the cut would fall in
        cuts.append(token_start if token_start > cuts[-1] else end)
    return [*cuts, len(token)]
