"""Subtext recognition: does a sentence mean more in its context than it says (CSD, appendix A.2, algorithm 1).

    f_c, f_s = FeaExt(e_c), FeaExt(e_s)          an LSTM over the vectors of the tokens (CSD-28, CSD-29)
    m_s  = Mean(f_s),  m_cs = Mean([f_c ; f_s])  linear, each of its own width (CSD-30)
    p    = softmax(cls [m_s : m_cs])

Algorithm 1 as printed applies Mean to e and so never uses f; here it is f, and the LSTM learns (errata E10).

As Mean and cls are linear, a logit is g(s) + h(c): a context shifts all sentences alike, and no context can make the
one of two sentences ironic and another the other. The comparison `product` joins m_s ⊙ m_cs, which can.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Pooling = Literal["last", "mean", "max", "attention"]
Comparison = Literal["linear", "product"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a recogniser."""

    hidden: int = 128  # of the LSTM, to either side
    meaning: int = 64  # of m_s and of m_cs
    pooling: Pooling = "last"
    is_bidirectional: bool = False
    dropout: float = 0.0
    comparison: Comparison = "linear"


class Subtext(nn.Module):
    """FeaExt, Mean and cls of algorithm 1. Weights are drawn from torch's global source."""

    def __init__(self, dim: int, classes: int, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        features = shape.hidden * (2 if shape.is_bidirectional else 1)
        self.extract = nn.LSTM(dim, shape.hidden, batch_first=True, bidirectional=shape.is_bidirectional)
        if shape.pooling == "attention":
            self.attend = nn.Linear(features, 1)
        self.alone = nn.Linear(features, shape.meaning)
        self.together = nn.Linear(2 * features, shape.meaning)
        self.compare = nn.Linear((2 if shape.comparison == "linear" else 3) * shape.meaning, classes)

    def features(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """FeaExt: [n, f] of padded token vectors [n, t, d], of which the first `lengths` [n], 1 or more, count."""
        packed = pack_padded_sequence(self._drop_out(vectors), lengths, batch_first=True, enforce_sorted=False)
        states, (last, _) = self.extract(packed)
        if self.shape.pooling == "last":
            return self._drop_out(last.transpose(0, 1).flatten(1))
        states, _ = pad_packed_sequence(states, batch_first=True)
        outside = (torch.arange(states.shape[1]) >= lengths.unsqueeze(1)).unsqueeze(2)
        if self.shape.pooling == "max":
            pooled = states.masked_fill(outside, -torch.inf).amax(dim=1)
        elif self.shape.pooling == "mean":
            pooled = states.masked_fill(outside, 0).sum(dim=1) / lengths.unsqueeze(1)
        else:
            pooled = (self.attend(states).masked_fill(outside, -torch.inf).softmax(dim=1) * states).sum(dim=1)
        return self._drop_out(pooled)

    def forward(self, sentence: tuple[Tensor, Tensor], context: tuple[Tensor, Tensor]) -> Tensor:
        """Compute logits [n, classes] of sentences in contexts: vectors [n, t, d], zeros if empty, and lengths [n]."""
        f_s, f_c = self.features(*sentence), self.features(*context)
        m_s, m_cs = self.alone(f_s), self.together(torch.cat([f_c, f_s], dim=1))
        product = [m_s * m_cs] if self.shape.comparison == "product" else []
        logits: Tensor = self.compare(torch.cat([m_s, m_cs, *product], dim=1))
        return logits

    def _drop_out(self, values: Tensor) -> Tensor:
        return dropout(values, self.shape.dropout, self.training)
