"""The recurrent readers of ReCAM (section 3.5, appendices B and C; REC-17 to REC-19), one network in three settings.

    D_k = biGRU(X_k-1), Q_k = biGRU(S)             passage and summary, hop k; X_0 are the passage's word vectors
    X_k = D_k ⊙ softmax(D_k Q_kᵀ) Q_k              the gate between two hops (Dhingra et al., 2017)
    p   = softmax(h_qᵀ W_att H_p) H_p              Eq. 1-2, 5-7; h_q: state of @placeholder in the last hop
    v   = [h_q; p],  r_t = vᵀ W_pred a_t           Eq. 3, 8, 13; printed h_p^s in B is h_q^s
    a_t = a_t^e, or with glosses [a_t^g; a_t^e]    Eq. 12; a_t^g = softmax(tanh(W_g v + b)ᵀ H_g) H_g, Eq. 9-11

Gated-Attention has three hops; the attentive model is what is left with one, since the last hop has no gate; AMWG is
that with glosses. Hops are counted as Dhingra et al. count layers.

Candidates are given as vectors: the five options or a whole vocabulary, the network is the same.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

Unit = Literal["gru", "lstm"]
Padded = tuple[Tensor, Tensor]
"""Vectors [n, t, d], and how many of each row count, [n], 1 or more."""


class Shape(NamedTuple):
    """The sizes of a reader."""

    dim: int  # d of a word's vector
    hidden: int = 150  # of an encoder, to either side: states are twice as wide
    hops: int = 3
    dropout: float = 0.3  # on what encoders read, and on v
    unit: Unit = "gru"
    has_gloss: bool = False


class Encoder(nn.Module):
    """A recurrent network to either side.

    Rows are turned round within their lengths, not packed: of packed rows the gradient on a CPU fills the whole batch
    anew at each word, which at 200 words takes twice as long and at 400 five times.
    """

    def __init__(self, shape: Shape, dim: int) -> None:
        super().__init__()
        kind = nn.GRU if shape.unit == "gru" else nn.LSTM
        self.onward, self.reverse = (kind(dim, shape.hidden, batch_first=True) for _ in range(2))

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States to both sides [n, t, 2 hidden]; zeros where a row has ended."""
        place = torch.arange(vectors.shape[1], device=vectors.device)
        is_there = place < lengths.unsqueeze(1)
        turned = torch.where(is_there, lengths.unsqueeze(1) - 1 - place, place).unsqueeze(2)
        onward = self.onward(vectors)[0]
        reverse = self.reverse(vectors.take_along_dim(turned, 1))[0].take_along_dim(turned, 1)
        return torch.cat([onward, reverse], dim=2).masked_fill(~is_there.unsqueeze(2), 0.0)


class Reader(nn.Module):
    """The network but for its word vectors. Weights are drawn from torch's global source."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        wide = 2 * shape.hidden
        self.passages = nn.ModuleList(Encoder(shape, wide if hop else shape.dim) for hop in range(shape.hops))
        self.summaries = nn.ModuleList(Encoder(shape, shape.dim) for _ in range(shape.hops))
        self.attend = nn.Linear(wide, wide, bias=False)
        self.predict = nn.Linear(2 * wide, shape.dim + (wide if shape.has_gloss else 0), bias=False)
        if shape.has_gloss:
            self.glosses = Encoder(shape, shape.dim)
            self.ask = nn.Linear(2 * wide, wide)

    def summarised(self, passage: Padded, summary: Padded, place: Tensor) -> Tensor:
        """The vector v of a passage and its summary: [n, 4 hidden].

        Args:
            passage: word vectors of the passages.
            summary: word vectors of the summaries, that of @placeholder among them.
            place: where @placeholder stands in each summary, [n].
        """
        read, lengths = passage
        for hop, (of_passage, of_summary) in enumerate(zip(self.passages, self.summaries, strict=True)):
            asked = self._states(of_summary, *summary)
            states = self._states(of_passage, read, lengths)
            if hop < self.shape.hops - 1:
                share = weights(states @ asked.transpose(1, 2), summary[1].unsqueeze(1))
                read = states * (share @ asked)
        query = asked[torch.arange(len(place), device=place.device), place]
        share = weights(torch.einsum("nh,nth->nt", self.attend(query), states), lengths)
        both = torch.cat([query, torch.einsum("nt,nth->nh", share, states)], dim=1)
        return dropout(both, self.shape.dropout, self.training)

    def scores(self, v: Tensor, candidates: Tensor, glosses: Padded | None = None) -> Tensor:
        """The scores r of each candidate for each item, whose softmax are probabilities: [n, m].

        Args:
            v: of `summarised`, [n, 4 hidden].
            candidates: a^e, [m, d].
            glosses: word vectors of the candidates' glosses, where the reader reads them.
        """
        looked_for = self.predict(v)
        if not self.shape.has_gloss:
            return looked_for @ candidates.T  # type: ignore[no-any-return]
        assert glosses is not None
        states = self._states(self.glosses, *glosses)
        of_gloss, of_word = looked_for[:, : states.shape[2]], looked_for[:, states.shape[2] :]
        share = weights(torch.einsum("nh,mth->nmt", torch.tanh(self.ask(v)), states), glosses[1])
        # the product with a^g, without laying out an a^g for each pair
        told = (share * torch.einsum("nh,mth->nmt", of_gloss, states)).sum(dim=2)
        return told + of_word @ candidates.T  # type: ignore[no-any-return]

    def _states(self, encoder: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
        return encoder(dropout(vectors, self.shape.dropout, self.training), lengths)  # type: ignore[no-any-return]


def weights(scores: Tensor, lengths: Tensor) -> Tensor:
    """Softmax over the last axis of scores [..., t], of which the first `lengths` [...] count; the others get 0."""
    outside = torch.arange(scores.shape[-1], device=scores.device) >= lengths.unsqueeze(-1)
    return scores.masked_fill(outside, -torch.inf).softmax(dim=-1)
