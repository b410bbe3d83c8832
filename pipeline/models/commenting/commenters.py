"""The generating commenters Seq2seq, Att and Att-TC (commenting, section 5 and appendix C.1; AAC-21, AAC-23).

    h   = biRNN(x)                              the article: its title, </s>, and for Att-TC its content
    s_0 = tanh(W_b [h→_last; h←_first])         of Bahdanau et al. h←_first alone; an LSTM's cell has no tanh
    c_i = Σ_j softmax_j(vᵀ tanh(W s_i + U h_j)) h_j        Bahdanau et al. (2014), A.1.2; no c without attention
    s_i = RNN(s_i-1, [y_i-1; c_i-1])            where c_i-1, asked for by s_i-1, is what Bahdanau et al. call c_i
    p_i = softmax(W_o tanh(W_r [s_i; c_i]))

One vocabulary numbers the words of articles and of comments, which have vectors of their own. The hidden size is that
of a direction, so states h are twice as wide.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from pipeline.errors import BadInput
from pipeline.models.decoding import Decoding, Marks, State, decode
from pipeline.models.recam import readers
from pipeline.models.recam.readers import Encoder

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
PAD, UNKNOWN, BEGIN, END = range(len(SPECIAL))
MARKS = Marks(BEGIN, END, (PAD, UNKNOWN))


class Shape(NamedTuple):
    """The sizes of a commenter."""

    words: int  # of the vocabulary, special ones with them
    embedding: int = 256
    hidden: int = 256
    unit: readers.Unit = "lstm"
    has_attention: bool = True
    dropout: float = 0.2  # on the vectors of words and before the last layer


class Network(nn.Module):
    """Encoder and decoder. Weights are drawn from torch's global source."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, hidden = shape, shape.hidden
        kind = nn.GRU if shape.unit == "gru" else nn.LSTM
        self.heard, self.said = (nn.Embedding(shape.words, shape.embedding, PAD) for _ in range(2))
        reader = readers.Shape(shape.embedding, hidden, unit=shape.unit)
        self.encoder = Encoder(reader, shape.embedding)
        self.bridge = nn.Linear(2 * hidden, hidden * (2 if shape.unit == "lstm" else 1))
        context_width = 2 * hidden if shape.has_attention else 0
        self.decoder = kind(shape.embedding + context_width, hidden, batch_first=True)
        if shape.has_attention:
            self.ask, self.keys = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden, bias=False)
            self.weigh = nn.Linear(hidden, 1, bias=False)
        self.readout = nn.Linear(hidden + context_width, shape.embedding)
        self.out = nn.Linear(shape.embedding, shape.words)

    def read(self, source: Tensor) -> "tuple[Memory, State]":
        """What an article leaves: states to attend to, and the decoder's first state, tensors [n, ...].

        Args:
            source: token ids [n, t], filled up with <pad>; each row holds one at least.
        """
        lengths = (source != PAD).sum(dim=1)
        states = self.encoder(self._drop_out(self.heard(source)), lengths)
        rows, hidden = torch.arange(len(source), device=source.device), self.shape.hidden
        final = torch.cat([states[rows, lengths - 1, :hidden], states[:, 0, hidden:]], dim=1)
        first = self.bridge(final)
        start = (first[:, :hidden].tanh(), *((first[:, hidden:],) if self.shape.unit == "lstm" else ()))
        if not self.shape.has_attention:
            return Memory(states, states, lengths), start
        memory = Memory(states, self.keys(states), lengths)
        return memory, (*start, self._compute_context(start[0].unsqueeze(1), memory).squeeze(1))

    def forward(self, source: Tensor, words: Tensor) -> Tensor:
        """What the last layer reads before each next word [n, u, embedding]; `out` of it are logits.

        Args:
            source: as of `read`.
            words: token ids [n, u], <s> first; what follows a row's end does not matter to it.
        """
        memory, state = self.read(source)
        vectors = self._drop_out(self.said(words))
        if not self.shape.has_attention:
            return self._read_out(self.decoder(vectors, _stack_layers(state))[0])
        steps = []
        state = tuple(value.unsqueeze(1) for value in state)
        for i in range(words.shape[1]):
            output, state = self._attend(vectors[:, i : i + 1], state, memory)
            steps.append(output)
        return self._read_out(torch.cat(steps, dim=1))

    def step(self, memory: "Memory", last: Tensor, state: State) -> tuple[Tensor, State]:
        """Log probabilities of the next word [n, k, words] after the last [n, k], and the next state [n, k, ...]."""
        vectors = self.said(last)
        if self.shape.has_attention:
            output, state = self._attend(vectors, state, memory)
        else:
            output, state = self._advance(vectors, state)
        return self.out(self._read_out(output)).float().log_softmax(dim=2), state

    def _advance(self, vectors: Tensor, state: State) -> tuple[Tensor, State]:
        """The decoder's state after one more input [n, k, d]."""
        shape = vectors.shape[:2]
        flat_state = _stack_layers(tuple(value.reshape(-1, value.shape[2]) for value in state))
        out, after = self.decoder(vectors.reshape(-1, 1, vectors.shape[2]), flat_state)
        after = after if isinstance(after, tuple) else (after,)
        return out.reshape(*shape, -1), tuple(value.reshape(*shape, -1) for value in after)

    def _attend(self, vectors: Tensor, state: State, memory: "Memory") -> tuple[Tensor, State]:
        """The decoder's state with what it attends to [n, k, 3 hidden], after one more word [n, k, d]."""
        *inner, before = state
        output, after = self._advance(torch.cat([vectors, before], dim=2), tuple(inner))
        context = self._compute_context(output, memory)
        return torch.cat([output, context], dim=2), (*after, context)

    def _compute_context(self, states: Tensor, memory: "Memory") -> Tensor:
        """What states [n, k, hidden] attend to: [n, k, 2 hidden]."""
        scores = self.weigh(torch.tanh(self.ask(states).unsqueeze(2) + memory.keys.unsqueeze(1))).squeeze(3)
        return readers.masked_softmax(scores, memory.lengths.unsqueeze(1)) @ memory.states

    def _read_out(self, states: Tensor) -> Tensor:
        return self._drop_out(torch.tanh(self.readout(states)))

    def _drop_out(self, values: Tensor) -> Tensor:
        return dropout(values, self.shape.dropout, self.training)


class Memory(NamedTuple):
    """An article as it was read."""

    states: Tensor  # [n, t, 2 hidden]
    keys: Tensor  # [n, t, hidden], U h
    lengths: Tensor  # [n]


def _stack_layers(state: State) -> Any:
    """States [n, hidden] as torch's recurrent networks take them."""
    layered = tuple(value.unsqueeze(0).contiguous() for value in state)
    return layered if len(layered) == 2 else layered[0]


Source = Literal["title", "title_and_content"]


@dataclass(frozen=True, slots=True)
class Commenter:
    """A loaded commenter, and what it reads."""

    network: Network
    words: list[str]  # by token id
    source: Source
    title_words: int  # read at most
    content_words: int
    comment_words: int  # of the comments it learnt from, at most
    place: dict[str, int]  # token ids of words that are no special ones
    device: str


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str | None = None) -> Commenter:
    """A commenter of what `training.commenting.commenters.fit` gave or `training.registry.read` read.

    Args:
        tensors: the network's.
        config: kind, words, source, title_words, content_words, comment_words, embedding, hidden, unit, has_attention.
        device: cuda or cpu; by default a GPU if there is one.

    Raises:
        BadInput: it is no commenter.
    """
    if config.get("kind") != "commenter":
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not 'commenter'")
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    sizes = {name: config[name] for name in Shape._fields if name not in {"words", "dropout"}}
    network = Network(Shape(len(config["words"]), **sizes))
    network.load_state_dict(tensors)
    return make_commenter(network.to(device).eval(), config, device)


def make_commenter(network: Network, config: dict[str, Any], device: str) -> Commenter:
    """A network with what its configuration says of words and articles."""
    sizes = (config["title_words"], config["content_words"], config["comment_words"])
    return Commenter(network, config["words"], config["source"], *sizes, number_words(config["words"]), device)


def build_vocabulary(counts: Counter[str], size: int) -> list[str]:
    """The special words, then the `size` most frequent ones (AAC-22); of equally frequent ones the first by code."""
    words = [word for word in counts if word not in SPECIAL]
    return [*SPECIAL, *sorted(words, key=lambda word: (-counts[word], word))[:size]]


def number_words(words: Sequence[str]) -> dict[str, int]:
    """Token ids of words; a comment that holds "</s>" as a word ends nothing: that is unknown."""
    return {word: number for number, word in enumerate(words) if number >= len(SPECIAL)}


def pad_rows(rows: Sequence[Sequence[int] | npt.NDArray[np.int32]]) -> Tensor:
    """Token ids [n, t] of rows of different lengths, filled up with <pad>."""
    ids = [torch.as_tensor(row, dtype=torch.int64) for row in rows]
    return nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)


def encode_article(model: Commenter, title: Sequence[str], content: Sequence[str] | None = None) -> list[int]:
    """What is read of an article: its title, </s>, and where the commenter reads it the beginning of its content."""
    if isinstance(title, str) or isinstance(content, str):  # its letters would be taken for words
        raise BadInput("title and content should be lists of words; found a text")
    ids = [model.place.get(word, UNKNOWN) for word in title[: model.title_words]] + [END]
    if model.source == "title_and_content":
        ids += [model.place.get(word, UNKNOWN) for word in (content or ())[: model.content_words]]
    return ids


def encode_comment(model: Commenter, comment: Sequence[str]) -> list[int]:
    """What is learnt of a comment: its words and </s>; of one that is too long the beginning, without an end."""
    ids = [model.place.get(word, UNKNOWN) for word in comment[: model.comment_words]]
    return ids if len(comment) > model.comment_words else [*ids, END]


class Comment(NamedTuple):
    """A comment that was written."""

    words: list[str]
    log_probability: float  # natural, as the model has it, whatever it was drawn by


def generate_candidates(
    model: Commenter, titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str] | None] | None,
    decoding: Decoding, batch: int = 32, first: int = 0,
) -> list[list[Comment]]:  # fmt: skip
    """Comments on each article, as many as `decoding.best` says; by beam search the best first.

    Args:
        model: of `load`.
        titles: words of each article's title.
        contents: words of each article's content; a commenter that reads titles alone needs none.
        decoding: how it is written.
        batch: articles at a time; it changes nothing but time and memory.
        first: number of the first article, by which chance is drawn, see `decoding.decode`.

    Raises:
        BadInput: there are not as many contents as titles, or none where they are read.
    """
    if contents is None and model.source == "title_and_content":
        raise BadInput("contents: this commenter reads title and content; found none")
    if contents is not None and len(contents) != len(titles):
        raise BadInput(f"contents: expected {len(titles)}, one a title; found {len(contents)}")
    sources = [encode_article(model, title, contents[i] if contents else None) for i, title in enumerate(titles)]
    return [comments for i in range(0, len(sources), batch)
            for comments in _write(model, sources[i : i + batch], decoding, first + i)]  # fmt: skip


@torch.inference_mode()
def _write(model: Commenter, sources: list[list[int]], decoding: Decoding, first: int) -> list[list[Comment]]:
    memory, state = model.network.read(pad_rows(sources).to(model.device))

    def step(last: Tensor, state: State) -> tuple[Tensor, State]:
        return model.network.step(memory, last, state)

    decoded = decode(step, state, len(sources), decoding, MARKS, model.device, first)
    return [
        [Comment([model.words[token] for token in ids], value) for ids, value in candidates] for candidates in decoded
    ]


def generate(
    model: Commenter, titles: Sequence[Sequence[str]], contents: Sequence[Sequence[str] | None] | None,
    decoding: Decoding, batch: int = 32, first: int = 0,
) -> list[Comment]:  # fmt: skip
    """The best comment on each article, or the first that was drawn; see `generate_candidates` for more of each."""
    return [
        comments[0]
        for comments in generate_candidates(model, titles, contents, replace(decoding, best=1), batch, first)
    ]
