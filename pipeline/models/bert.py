"""The embedded encoder's network (BERT, Devlin et al. 2019), without transformers, whose import takes 4 CPU seconds."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

LONGEST = 256  # pieces of a text that the embedded encoder reads
SHORT = 32  # pieces of a text whose attention is faster written out


class Bert:
    """Word pieces and weights of a BERT, whose matrix products may be in bfloat16; all else is float32."""

    def __init__(self, folder: Path, device: str, dtype: torch.dtype = torch.float32) -> None:
        """Read `config.json`, `tokenizer.json` and `model.safetensors` of a folder."""
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.width, self.layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
        self._heads, self._epsilon = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
        self._weights = load_file(folder / "model.safetensors", device=device)
        for name in self._weights:
            if name.startswith("encoder.") and "LayerNorm" not in name:
                self._weights[name] = self._weights[name].to(dtype)
        self._pieces = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._pieces.no_padding()
        self._pieces.enable_truncation(LONGEST)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text's word pieces with [CLS] and [SEP], at most 256."""
        return [encoding.ids for encoding in self._pieces.encode_batch_fast(list(texts))]

    def pad(self, rows: Sequence[Sequence[int]], width: int) -> dict[str, Tensor]:
        """Return ids as tensors [n, width]: `input_ids`, and `attention_mask` with 1 where a text has a piece."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        is_piece = np.arange(width) < lengths[:, None]
        ids = np.zeros(is_piece.shape, np.int64)  # 0 is [PAD]
        ids[is_piece] = np.fromiter(chain.from_iterable(rows), np.int64, lengths.sum())
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(is_piece.astype(np.int64))}

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
