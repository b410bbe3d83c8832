"""The recurrent readers of ReCAM (section 3.5, appendices B and C; REC-17 to REC-19), one network in three settings.

    D_k = biGRU(X_k-1), Q_k = biGRU(S)             passage and summary, hop k; X_0 are the passage's word vectors
    X_k = D_k ⊙ softmax(D_k Q_kᵀ) Q_k              the gate between two hops (Dhingra et al., 2017)
    p   = softmax(h_qᵀ W_att H_p) H_p              Eq. 1-2, 5-7; h_q: state of @placeholder in the last hop
    v   = [h_q; p],  r_t = vᵀ W_pred a_t           Eq. 3, 8, 13; printed h_p^s in B is h_q^s
    a_t = a_t^e, or with glosses [a_t^g; a_t^e]    Eq. 12; a_t^g = softmax(tanh(W_g v + b)ᵀ H_g) H_g, Eq. 9-11

Gated-Attention has three hops; the attentive model has one, without a gate; AMWG is that with glosses. Hops are
counted as the layers of Dhingra et al. Candidates are vectors: of five options or of a whole vocabulary.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

Unit = Literal["gru", "lstm"]
Padded = tuple[Tensor, Tensor]  # vectors [n, t, d], and the length of each row, [n], from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a reader."""

    unit: Unit = "gru"
    hidden: int = 150  # of an encoder, to either side: states are twice as wide
    hops: int = 3
    has_gloss: bool = False
    dropout: float = 0.3  # on what encoders read, and on v


class Encoder(nn.Module):
    """A bidirectional recurrent network.

    Rows are reversed within their lengths, not packed: with packed rows the gradient on a CPU refills the batch at each
    word, which takes twice as long at 200 words and five times at 400.
    """

    def __init__(self, dim: int, hidden: int, unit: Unit) -> None:
        super().__init__()
        kind = nn.GRU if unit == "gru" else nn.LSTM
        self.onward, self.reverse = (kind(dim, hidden, batch_first=True) for _ in range(2))

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Compute the states [n, t, 2 hidden] of both directions; zeros after a row's end."""
        place = torch.arange(vectors.shape[1], device=vectors.device)
        is_token = place < lengths.unsqueeze(1)
        reversed_places = torch.where(is_token, lengths.unsqueeze(1) - 1 - place, place).unsqueeze(2)
        onward = self.onward(vectors)[0]
        reverse = self.reverse(vectors.take_along_dim(reversed_places, 1))[0].take_along_dim(reversed_places, 1)
        return torch.cat([onward, reverse], dim=2).masked_fill(~is_token.unsqueeze(2), 0.0)


class Reader(nn.Module):
    """The network without its word vectors. Weights are drawn from torch's global generator."""

    def __init__(self, dim: int, shape: Shape) -> None:
        """Make a reader of words with vectors [dim]."""
        super().__init__()
        self.shape, width, sizes = shape, 2 * shape.hidden, (shape.hidden, shape.unit)
        self.passages = nn.ModuleList(Encoder(width if hop else dim, *sizes) for hop in range(shape.hops))
        self.summaries = nn.ModuleList(Encoder(dim, *sizes) for _ in range(shape.hops))
        self.attend = nn.Linear(width, width, bias=False)
        self.predict = nn.Linear(2 * width, dim + (width if shape.has_gloss else 0), bias=False)
        if shape.has_gloss:
            self.glosses = Encoder(dim, *sizes)
            self.ask = nn.Linear(2 * width, width)

    def summarise(self, passage: Padded, summary: Padded, place: Tensor) -> Tensor:
        """Compute the vector v of passages and summaries with @placeholder at these places [n]: [n, 4 hidden]."""
        inputs, lengths = passage
        for hop, (of_passage, of_summary) in enumerate(zip(self.passages, self.summaries, strict=True)):
            query_states = self._states(of_summary, *summary)
            states = self._states(of_passage, inputs, lengths)
            if hop < self.shape.hops - 1:
                shares = masked_softmax(states @ query_states.transpose(1, 2), summary[1].unsqueeze(1))
                inputs = states * (shares @ query_states)
        query = query_states[torch.arange(len(place), device=place.device), place]
        shares = masked_softmax(torch.einsum("nh,nth->nt", self.attend(query), states), lengths)
        summary_vectors = torch.cat([query, torch.einsum("nt,nth->nh", shares, states)], dim=1)
        return dropout(summary_vectors, self.shape.dropout, self.training)

    def score(self, v: Tensor, candidates: Tensor, glosses: Padded | None = None) -> Tensor:
        """Compute the scores r of candidates a^e [m, d], maybe with glosses, for each v of `summarise` [n, m]."""
        query = self.predict(v)
        if not self.shape.has_gloss:
            return query @ candidates.T  # type: ignore[no-any-return]
        assert glosses is not None
        states = self._states(self.glosses, *glosses)
        gloss_query, word_query = query[:, : states.shape[2]], query[:, states.shape[2] :]
        shares = masked_softmax(torch.einsum("nh,mth->nmt", torch.tanh(self.ask(v)), states), glosses[1])
        # the product with a^g, without an a^g for each pair in memory
        gloss_scores = (shares * torch.einsum("nh,mth->nmt", gloss_query, states)).sum(dim=2)
        return gloss_scores + word_query @ candidates.T  # type: ignore[no-any-return]

    def _states(self, encoder: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
        return encoder(dropout(vectors, self.shape.dropout, self.training), lengths)  # type: ignore[no-any-return]


def masked_softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Compute the softmax over the last axis of scores [..., t] within the `lengths` [...]; 0 outside."""
    outside = torch.arange(scores.shape[-1], device=scores.device) >= lengths.unsqueeze(-1)
    return scores.masked_fill(outside, -torch.inf).softmax(dim=-1)
