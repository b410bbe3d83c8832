"""The generating commenters Seq2seq, Att and Att-TC (commenting, section 5 and appendix C.1; AAC-21, AAC-23).

    h   = biRNN(x)                              the article: its title, </s>, and for Att-TC its content
    s_0 = tanh(W_b [h→_last; h←_first])         of Bahdanau et al. h←_first alone; an LSTM's cell has no tanh
    c_i = Σ_j softmax_j(vᵀ tanh(W s_i + U h_j)) h_j        Bahdanau et al. (2014), A.1.2; no c without attention
    s_i = RNN(s_i-1, [y_i-1; c_i-1])            where c_i-1, asked for by s_i-1, is what Bahdanau et al. call c_i
    p_i = softmax(W_o tanh(W_r [s_i; c_i]))

One vocabulary numbers the words of articles and of comments, which have vectors of their own. The hidden size is that
of a direction, so states h are twice as wide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from pipeline.errors import BadInput
from pipeline.models.decoding import Decoding, Marks, State, decode
from pipeline.models.encoder import check_kind
from pipeline.models.recam import readers

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
PAD, UNKNOWN, BEGIN, END = range(len(SPECIAL))
MARKS = Marks(BEGIN, END, (PAD, UNKNOWN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a commenter."""

    has_attention: bool = True
    unit: readers.Unit = "lstm"  # Sutskever et al. (2014)
    hidden: int = 256
    embedding: int = 256
    dropout: float = 0.2  # on the vectors of words and before the last layer


class Network(nn.Module):
    """Encoder and decoder. Weights are drawn from torch's global source."""

    def __init__(self, words: int, shape: Shape) -> None:
        """Make the network of a vocabulary of so many words, special ones with them."""
        super().__init__()
        self.shape, hidden = shape, shape.hidden
        kind = nn.GRU if shape.unit == "gru" else nn.LSTM
        self.heard, self.said = (nn.Embedding(words, shape.embedding, PAD) for _ in range(2))
        self.encoder = readers.Encoder(shape.embedding, hidden, shape.unit)
        self.bridge = nn.Linear(2 * hidden, hidden * (2 if shape.unit == "lstm" else 1))
        context_width = 2 * hidden if shape.has_attention else 0
        self.decoder = kind(shape.embedding + context_width, hidden, batch_first=True)
        if shape.has_attention:
            self.ask, self.keys = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden, bias=False)
            self.weigh = nn.Linear(hidden, 1, bias=False)
        self.readout = nn.Linear(hidden + context_width, shape.embedding)
        self.out = nn.Linear(shape.embedding, words)

    def read(self, source: Tensor) -> "tuple[Memory, State]":
        """Read articles, token ids [n, t] filled with <pad>; return states to attend to and the decoder's first one."""
        lengths = (source != PAD).sum(dim=1)
        states = self.encoder(self._drop_out(self.heard(source)), lengths)
        rows, hidden = torch.arange(len(source), device=source.device), self.shape.hidden
        final = torch.cat([states[rows, lengths - 1, :hidden], states[:, 0, hidden:]], dim=1)
        output, *cell = self.bridge(final).split(hidden, dim=1)
        start = (output.tanh(), *cell)
        if not self.shape.has_attention:
            return Memory(states, states, lengths), start
        memory = Memory(states, self.keys(states), lengths)
        return memory, (*start, self._compute_context(start[0].unsqueeze(1), memory).squeeze(1))

    def forward(self, source: Tensor, words: Tensor) -> Tensor:
        """Compute the input of the last layer before each next word [n, u, embedding] of ids [n, u], <s> first."""
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
        """Compute log probabilities of the next word [n, k, words] after the last [n, k], and the next state."""
        vectors = self.said(last)
        has_attention = self.shape.has_attention
        output, state = self._attend(vectors, state, memory) if has_attention else self._advance(vectors, state)
        return self.out(self._read_out(output)).float().log_softmax(dim=2), state

    def _advance(self, vectors: Tensor, state: State) -> tuple[Tensor, State]:
        """Compute the decoder's state after one more input [n, k, d]."""
        shape = vectors.shape[:2]
        flat_state = _stack_layers(tuple(value.reshape(-1, value.shape[2]) for value in state))
        out, after = self.decoder(vectors.reshape(-1, 1, vectors.shape[2]), flat_state)
        after = after if isinstance(after, tuple) else (after,)
        return out.reshape(*shape, -1), tuple(value.reshape(*shape, -1) for value in after)

    def _attend(self, vectors: Tensor, state: State, memory: "Memory") -> tuple[Tensor, State]:
        """Compute the decoder's state with its context [n, k, 3 hidden], after one more word [n, k, d]."""
        *inner, last_context = state
        output, after = self._advance(torch.cat([vectors, last_context], dim=2), tuple(inner))
        context = self._compute_context(output, memory)
        return torch.cat([output, context], dim=2), (*after, context)

    def _compute_context(self, states: Tensor, memory: "Memory") -> Tensor:
        """Compute the context of states [n, k, hidden]: [n, k, 2 hidden]."""
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
    """Stack states [n, hidden] as torch's recurrent networks take them."""
    layered = tuple(value.unsqueeze(0).contiguous() for value in state)
    return layered if len(layered) == 2 else layered[0]


@dataclass(frozen=True, slots=True)
class Commenter:
    """A loaded commenter. Its configuration is that of the training: the words by token id, and what it reads."""

    network: Network
    config: dict[str, Any]
    place: dict[str, int]  # token ids of words that are not special
    device: str


def load(tensors: dict[str, Tensor], config: dict[str, Any], device: str = "cpu") -> Commenter:
    """Load the commenter that `training.commenting.commenters.fit` returned; BadInput if it is none."""
    check_kind(config, "commenter")
    sizes = {name: config[name] for name in ("has_attention", "unit", "hidden", "embedding")}
    network = Network(len(config["words"]), Shape(**sizes))
    network.load_state_dict(tensors)
    return make_commenter(network.to(device).eval(), config, device)


def make_commenter(network: Network, config: dict[str, Any], device: str) -> Commenter:
    """Make a commenter of a network and its configuration."""
    # a comment that holds "</s>" as a word ends nothing: that is unknown
    place = {word: number for number, word in enumerate(config["words"]) if number >= len(SPECIAL)}
    return Commenter(network, config, place, device)


def pad_rows(rows: Sequence[Sequence[int]]) -> Tensor:
    """Stack token ids of rows of different lengths, filled up with <pad>: [n, t]."""
    ids = [torch.as_tensor(row, dtype=torch.int64) for row in rows]
    return nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)


def encode_article(model: Commenter, title: Sequence[str], content: Sequence[str] | None = None) -> list[int]:
    """Encode the title, </s>, and for a commenter that reads it the beginning of the content."""
    if isinstance(title, str) or isinstance(content, str):  # its letters would be taken for words
        raise BadInput("title and content should be lists of words; found a text")
    ids = [model.place.get(word, UNKNOWN) for word in title[: model.config["title_words"]]] + [END]
    if model.config["source"] == "title_and_content":
        ids += [model.place.get(word, UNKNOWN) for word in (content or ())[: model.config["content_words"]]]
    return ids


def encode_comment(model: Commenter, comment: Sequence[str]) -> list[int]:
    """Encode the words and </s>; of a comment that is too long the beginning, without an end."""
    longest = model.config["comment_words"]
    ids = [model.place.get(word, UNKNOWN) for word in comment[:longest]]
    return ids if len(comment) > longest else [*ids, END]


class Comment(NamedTuple):
    """A generated comment."""

    words: list[str]
    log_probability: float  # natural, of the model itself, whatever the decoding


@torch.inference_mode()
def generate_candidates(
    model: Commenter,
    titles: Sequence[Sequence[str]],
    contents: Sequence[Sequence[str] | None],
    decoding: Decoding,
    batch: int = 32,
    first: int = 0,
) -> list[list[Comment]]:
    """Generate `decoding.best` comments on each article, from the words of its title and content; the best first.

    Only a commenter with source `title_and_content` reads contents. `batch` changes nothing but time and memory.
    `first` is the number of the first article, which seeds its samples, see `decoding.decode`.
    """
    sources = [encode_article(model, *article) for article in zip(titles, contents, strict=True)]
    words, comments = model.config["words"], list[list[Comment]]()
    for start in range(0, len(sources), batch):
        part = sources[start : start + batch]
        memory, state = model.network.read(pad_rows(part).to(model.device))
        step = partial(model.network.step, memory)
        for candidates in decode(step, state, len(part), decoding, MARKS, model.device, first + start):
            comments.append([Comment([words[token] for token in ids], value) for ids, value in candidates])
    return comments
