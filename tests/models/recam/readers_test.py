"""The readers against the equations written plainly; padding, gates, glosses, gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pipeline.models.recam.readers import Encoder, Padded, Reader, Shape, Unit, masked_softmax

N, D, HIDDEN = 3, 4, 5
SETTINGS: dict[str, dict[str, Any]] = {
    "gated": {}, "attentive": {"hops": 1}, "gloss": {"hops": 1, "has_gloss": True}, "lstm": {"unit": "lstm", "hops": 2},
}  # fmt: skip
every_setting = pytest.mark.parametrize("name", SETTINGS)


def reader(name: str = "gated", **changes: Any) -> Reader:
    """A small one, its weights drawn under a seed."""
    torch.manual_seed(1)
    return Reader(D, Shape(**{"hidden": HIDDEN, **SETTINGS[name], **changes})).eval()


def padded(lengths: list[int], seed: int, filler: float = 0.0) -> Padded:
    """Random vectors, and what stands after a row's end."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.full((len(lengths), max(lengths), D), filler)
    for row, length in enumerate(lengths):
        vectors[row, :length] = torch.randn(length, D, generator=generator)
    return vectors, torch.tensor(lengths)


def make_inputs(name: str, filler: float = 0.0) -> dict[str, Any]:
    """Three passages and summaries, and four candidates with glosses."""
    return {
        "passage": padded([6, 2, 1], 2, filler), "summary": padded([3, 5, 1], 3, filler),
        "place": torch.tensor([2, 0, 0]), "candidates": torch.randn(4, D, generator=torch.Generator().manual_seed(9)),
        "glosses": padded([2, 4, 1, 3], 4, filler) if name == "gloss" else None,
    }  # fmt: skip


def scores(model: Reader, inputs: dict[str, Any]) -> Tensor:
    v = model.summarise(inputs["passage"], inputs["summary"], inputs["place"])
    return model.score(v, inputs["candidates"], inputs["glosses"])


def sides(encoder: Encoder, vectors: Tensor) -> Tensor:
    """States of one row [1, t, d], read onward and from its end: [1, t, 2 hidden]."""
    return torch.cat([encoder.onward(vectors)[0], encoder.reverse(vectors.flip(1))[0].flip(1)], dim=2)


def plain(model: Reader, inputs: dict[str, Any]) -> Tensor:
    """Equations 1-14 for one item and one candidate at a time, without padding or batches."""
    rows = []
    for item in range(N):
        x, of_s = (inputs[side][0][item : item + 1, : inputs[side][1][item]] for side in ("passage", "summary"))
        for hop, (passage, summary) in enumerate(zip(model.passages, model.summaries, strict=True)):
            d, q = sides(passage, x), sides(summary, of_s)
            if hop < len(model.passages) - 1:  # Dhingra et al.: α_i = softmax(Qᵀ d_i), x_i = d_i ⊙ Q α_i
                x = torch.stack([d[0, i] * (q[0].T @ (q[0] @ d[0, i]).softmax(0)) for i in range(d.shape[1])])[None]
        h_q = q[0, inputs["place"][item]]
        e = torch.stack([h_q @ model.attend.weight.T @ h for h in d[0]])  # Eq. 1, 5
        p = (e.softmax(0)[:, None] * d[0]).sum(0)  # Eq. 2, 6, 7
        v = torch.cat([h_q, p])  # Eq. 3, 8
        row = []
        for t, a_e in enumerate(inputs["candidates"]):
            a = a_e
            if model.shape.has_gloss:
                vectors, lengths = inputs["glosses"]
                h_g = sides(model.glosses, vectors[t : t + 1, : lengths[t]])[0]
                u = torch.tanh(model.ask.weight @ v + model.ask.bias)
                beta = torch.stack([u @ h for h in h_g]).softmax(0)  # Eq. 9, 10
                a = torch.cat([(beta[:, None] * h_g).sum(0), a_e])  # Eq. 11, 12
            row.append(v @ model.predict.weight.T @ a)  # Eq. 3, 13
        rows.append(torch.stack(row))
    return torch.stack(rows)


@every_setting
def test_the_equations(name: str) -> None:
    """In batches, padded with anything, the scores are those of each item and candidate alone (REC-17 to REC-19)."""
    model, inputs = reader(name), make_inputs(name, 99.0)
    assert torch.allclose(scores(model, inputs), plain(model, inputs), atol=1e-6)


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_an_encoder_reads_as_torch_does(unit: Unit) -> None:
    """States of padded rows are those of torch's own network to both sides over packed rows, zeros after the ends."""
    torch.manual_seed(1)
    encoder = Encoder(D, HIDDEN, unit)
    torchs = (torch.nn.GRU if unit == "gru" else torch.nn.LSTM)(D, HIDDEN, batch_first=True, bidirectional=True)
    weights = {
        **encoder.onward.state_dict(),
        **{f"{key}_reverse": w for key, w in encoder.reverse.state_dict().items()},
    }
    torchs.load_state_dict(weights)
    vectors, lengths = padded([3, 6, 1], 2, filler=torch.nan)
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(torchs(packed)[0], batch_first=True)
    assert torch.allclose(encoder(vectors, lengths), states, atol=1e-6)


@given(
    arrays("float32", (2, 3, 6), elements=st.floats(-30, 30, width=32)),
    st.lists(st.integers(1, 6), min_size=6, max_size=6),
)
def test_attention_sums_to_one(values: Any, lengths: list[int]) -> None:
    """Weights are positive where words are, exactly 0 where none are, and sum to 1 (Eq. 2, 6, 10; REC-19)."""
    ends = torch.tensor(lengths).reshape(2, 3)
    shares = masked_softmax(torch.from_numpy(values), ends)
    assert torch.allclose(shares.sum(dim=2), torch.ones(2, 3), atol=1e-5)
    assert not shares[torch.arange(6) >= ends.unsqueeze(2)].any()


@every_setting
def test_gradient_reaches_every_weight(name: str) -> None:
    """Each encoder, each attention and the head learn."""
    model = reader(name)
    torch.nn.functional.cross_entropy(scores(model, make_inputs(name)), torch.tensor([0, 3, 1])).backward()
    for key, weight in model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.abs().max() > 0, key
