"""The embedded encoder's network (BERT, Devlin et al. 2019), without transformers, whose import takes 4 CPU seconds."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

LONGEST = 256  # pieces of a text that the embedded encoder reads
KEPT = 1 << 25  # bytes of split words that are kept
SHORT = 32  # pieces of a text whose attention is faster written out

_WORD = r"[一-鿿!-/:-@\\^-`{-~]|[^ \t\r\n一-鿿!-/:-@\\^-`{-~]+"
"""What a BERT splits apart in any case: Chinese characters, marks, and what is between them and blanks.

Not brackets, which are in the names of special pieces.
"""

_NO_WORDS = (
    pl.DataFrame(schema={"word": pl.String, "start": pl.Int64, "count": pl.Int64}),
    torch.empty(0, dtype=torch.int64),
)
"""Words and where their pieces are among the ids that follow."""


class Bert:
    """Word pieces and weights of a BERT; matrix products may be in bfloat16, and on a GPU all else too."""

    def __init__(self, folder: Path, device: str, dtype: torch.dtype = torch.float32) -> None:
        """Read `config.json`, `tokenizer.json` and `model.safetensors` of a folder."""
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.width, self.layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
        self._heads, self._epsilon = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
        self._weights = load_file(folder / "model.safetensors", device=device)
        for name in self._weights:
            if device == "cuda" or (name.startswith("encoder.") and "LayerNorm" not in name):
                self._weights[name] = self._weights[name].to(dtype)
        self._pieces = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._pieces.no_padding()
        self._pieces.enable_truncation(LONGEST)
        vocabulary = self._pieces.get_vocab()
        self._first, self._last = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._split_words = _NO_WORDS

    def tokenize(self, texts: pl.Series) -> tuple[Tensor, Tensor]:
        """Return the ids of all texts' word pieces, one text after another, and the count of each text, at most 256.

        Each text has [CLS] and [SEP]. Words are split once and kept, which takes a third of the time.
        """
        lists = texts.str.extract_all(_WORD)
        words = lists.explode(empty_as_null=False).alias("word").to_frame()
        table, pieces = self._split_words
        rows = words.join(table, "word", "left", maintain_order="left")
        if rows["count"].null_count():
            table, pieces = self._add_words(rows.filter(pl.col("count").is_null())["word"].unique(), table, pieces)
            rows = words.join(table, "word", "left", maintain_order="left")
        size = rows["count"].to_torch()
        pieces = _take(pieces, rows["start"].to_torch(), size)
        word_ends = functional.pad(lists.list.len().cast(pl.Int64).to_torch().cumsum(0), (1, 0))
        bounds = functional.pad(size.cumsum(0), (1, 0))[word_ends]
        counts = bounds.diff().clamp(max=LONGEST - 2)
        stops = (counts + 2).cumsum(0)
        ids = torch.empty(int(counts.sum()) + 2 * len(counts), dtype=torch.int64)
        is_piece = torch.ones(len(ids), dtype=torch.bool)
        for places, special in ((stops - counts - 2, self._first), (stops - 1, self._last)):
            ids[places], is_piece[places] = special, False
        ids[is_piece] = _take(pieces, bounds[:-1], counts)
        return ids, counts + 2

    def _add_words(self, words: pl.Series, table: pl.DataFrame, pieces: Tensor) -> tuple[pl.DataFrame, Tensor]:
        encodings = self._pieces.encode_batch_fast(words.to_list(), add_special_tokens=False)
        ids = [encoding.ids for encoding in encodings]
        count = pl.Series([*map(len, ids)], dtype=pl.Int64)
        new_rows = {"word": words, "start": len(pieces) + count.cum_sum() - count, "count": count}
        table = pl.concat([table, pl.DataFrame(new_rows)])
        pieces = torch.cat([pieces, torch.tensor([*chain.from_iterable(ids)], dtype=torch.int64)])
        is_small = table.estimated_size() < KEPT
        self._split_words = (table, pieces) if is_small else _NO_WORDS  # at once: other threads read it
        return table, pieces

    @staticmethod
    def pad(ids: Tensor, starts: Tensor, counts: Tensor, rows: Tensor, width: int) -> dict[str, Tensor]:
        """Return the pieces of some rows of the texts, which start at places of `ids`, as tensors [n, width].

        They are `input_ids`, and `attention_mask` with 1 where a text has a piece.
        """
        columns = torch.arange(width, device=ids.device)
        is_piece = columns < counts[rows].unsqueeze(1)
        places = (starts[rows].unsqueeze(1) + columns).clamp(max=len(ids) - 1)
        return {"input_ids": ids[places] * is_piece, "attention_mask": is_piece.long()}  # 0 is [PAD]

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> list[Tensor]:
        """Return the hidden states [n, t, width] of the embeddings and of each layer."""
        weights = self._weights
        words = functional.embedding(input_ids, weights["embeddings.word_embeddings.weight"])
        words = words + weights["embeddings.token_type_embeddings.weight"][0]
        positions = weights["embeddings.position_embeddings.weight"][: input_ids.shape[1]]
        state = self._norm(words + positions, "embeddings.LayerNorm")
        is_full = not attention_mask.is_cuda and bool(attention_mask.all())  # on a GPU the answer would be waited for
        mask = None if is_full else attention_mask.bool()[:, None, None, :]
        states = [state]
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}"
            attention = self._attend(state, mask, f"{name}.attention.self")
            attention = self._linear(attention, f"{name}.attention.output.dense")
            state = self._norm(attention + state, f"{name}.attention.output.LayerNorm")
            inner = functional.gelu(self._linear(state, f"{name}.intermediate.dense"))
            state = self._norm(self._linear(inner, f"{name}.output.dense") + state, f"{name}.output.LayerNorm")
            states.append(state)
        return states

    def _attend(self, state: Tensor, mask: Tensor | None, name: str) -> Tensor:
        """Compute attention (Vaswani et al. 2017, section 3.2), with the heads concatenated: [n, t, width]."""
        state = state.to(self._weights[f"{name}.query.weight"].dtype)
        query, key, value = (
            self._linear(state, f"{name}.{part}").view(*state.shape[:2], self._heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        if not state.is_cuda and state.dtype == torch.bfloat16 and state.shape[1] <= SHORT:  # in half the time
            query, key, value = (part.float() for part in (query, key, value))
            weights = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
            weights = weights if mask is None else weights.masked_fill(~mask, -torch.inf)
            mixed: Tensor = weights.softmax(-1) @ value
        else:
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2)

    def _linear(self, value: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.linear(value.to(weight.dtype), weight, bias)

    def _norm(self, value: Tensor, name: str) -> Tensor:
        scale, shift = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(value, (self.width,), scale, shift, self._epsilon)


def _take(values: Tensor, starts: Tensor, counts: Tensor) -> Tensor:
    """Return `counts[i]` values from each `starts[i]` on, one run after another."""
    offsets = starts - (counts.cumsum(0) - counts)
    places = torch.repeat_interleave(offsets, counts)
    return values[places.add_(torch.arange(len(places)))]
