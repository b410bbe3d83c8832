"""The pretrained reader of ReCAM (section 4; REC-31): a transformer chooses the word in a question's placeholder.

    filled    [CLS] question with an option in its place [SEP] passage [SEP], one sequence an option; a head scores the
              states of the option (Wang et al. turn the choice into the classification of filled sentences)
    masked    [CLS] question with [MASK] in its place [SEP] passage [SEP], one sequence for all options; an option's
              score is the mean log probability of its pieces in the place, by a head tied to the word embeddings

A long passage is read in sliding windows; an option's score is then the highest or the mean. A model is its weights,
the transformer's configuration and its tokenizer, so that the encoder it was made of is not needed to load it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pipeline.errors import BadInput
from pipeline.models.encoder import EMBEDDED, locate_embedded
from pipeline.models.pinned import load_pretrained, locate_files, strip_path

Style = Literal["filled", "masked"]
Pool = Literal["option", "first", "mean"]
Over = Literal["max", "mean"]
_BETWEEN_RUNS = {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures"}


class LoadedTransformer(NamedTuple):
    """A pretrained transformer and what it is, for signatures."""

    module: Any  # a transformers model: with its head for masked words, or bare
    tokenizer: Any  # transformers.PreTrainedTokenizerBase
    name: str
    revision: str
    is_headed: bool  # the head was there, and is not of random weights


def load_transformer(name: str | Path = EMBEDDED, *, is_masked: bool = False) -> LoadedTransformer:
    """Load a transformer and its tokenizer; only weights in safetensors, no foreign code.

    The name is `embedded`, or one of `locate_files`, such as a folder of `training.recam.masked_lm.write` or
    `google/electra-large-discriminator@<commit>`. With `is_masked` it has the head for masked words; one that the
    weights lack is drawn from torch's global source.
    """
    from transformers import AutoModel, AutoModelForMaskedLM

    files = locate_files(locate_embedded() if name == EMBEDDED else name)
    tokenizer, module, missing = load_pretrained(files.folder, AutoModelForMaskedLM if is_masked else AutoModel)
    short_name = strip_path(name).partition("@")[0]
    return LoadedTransformer(_remove_pooler(module), tokenizer, short_name, files.revision, is_masked and not missing)


def _remove_pooler(module: Any) -> Any:
    """Remove the layer that pools for next-sentence prediction: nothing here reads it."""
    if hasattr(module, "pooler"):
        module.pooler = None
    return module


def describe_architecture(module: Any) -> dict[str, Any]:
    """Describe a transformer's configuration as JSON, without what differs from run to run."""
    config = json.loads(module.config.to_json_string(use_diff=False))
    return {name: value for name, value in config.items() if name not in _BETWEEN_RUNS}


def build_transformer(architecture: dict[str, Any], *, is_masked: bool) -> Any:
    """Build a transformer of random weights of an architecture."""
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

    config = AutoConfig.for_model(**architecture)
    return _remove_pooler((AutoModelForMaskedLM if is_masked else AutoModel).from_config(config))


def compute_logits(module: Any, states: Tensor) -> Tensor:
    """Apply the head for masked words to states [n, d]: [n, vocabulary]; so it costs only the places that matter."""
    for name, part in module.named_children():
        if name != module.base_model_prefix:
            states = part(states)
    return states


@torch.no_grad()
def has_plain_head(module: Any) -> bool:
    """Return whether `compute_logits` applies the head for masked words, or, as in DistilBERT, the whole model."""
    module.eval()
    ids = torch.tensor([[1, 2, 3]], device=module.device)
    try:
        logits = module(input_ids=ids).logits[0]
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise BadInput(f"{type(module).__name__}: expected a model that reads a sequence of pieces: {error}") from error
    try:
        states = module.base_model(input_ids=ids).last_hidden_state[0]
        return torch.allclose(compute_logits(module, states), logits, atol=1e-4)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False


def freeze(transformer: Any, tuned_layers: int, is_embedding_tuned: bool) -> None:
    """Let only the last layers of a bare transformer learn; if all layers do, so does the rest but word embeddings."""
    layers = [*max((part for part in transformer.modules() if isinstance(part, nn.ModuleList)), key=len, default=())]
    transformer.requires_grad_(tuned_layers >= len(layers))
    for layer in layers[max(len(layers) - tuned_layers, 0) :]:
        layer.requires_grad_(True)
    transformer.get_input_embeddings().requires_grad_(is_embedding_tuned)


class Pieces(NamedTuple):
    """How texts become ids: a tokenizer, and what its model expects around one text or two."""

    tokenizer: Tokenizer
    before: list[int]  # as [CLS]
    between: list[int]  # as [SEP]
    after: list[int]
    types: list[int]  # of the first and of the second text
    mask: int
    pad: int
    longest: int  # pieces of a sequence

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        """Cut each text into pieces, without those around it; what looks like a special piece is a word."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]


def describe_tokenizer(transformer: LoadedTransformer) -> dict[str, Any]:
    """Describe a tokenizer for `make_pieces`, as JSON; BadInput if it has no mask, or is not a fast one."""
    tokenizer = transformer.tokenizer
    if tokenizer.mask_token_id is None or tokenizer.pad_token_id is None or not tokenizer.is_fast:
        raise BadInput(f"encoder {transformer.name}: expected a fast tokenizer with a mask and a padding piece")
    pair = tokenizer("a", "a", return_special_tokens_mask=True)
    ids, special = pair["input_ids"], pair["special_tokens_mask"]
    first, second = special.index(0), len(special) - 1 - special[::-1].index(0)
    start = next(i for i in range(first, len(ids)) if special[i])
    end = next(i for i in range(start, len(ids)) if not special[i])
    types = pair.get("token_type_ids", [0] * len(ids))
    positions = getattr(transformer.module.config, "max_position_embeddings", None) or tokenizer.model_max_length
    around = {"before": ids[:first], "between": ids[start:end], "after": ids[second + 1 :]}
    numbers = {"types": [types[first], types[second]], "mask": tokenizer.mask_token_id, "pad": tokenizer.pad_token_id}
    longest = int(min(positions, tokenizer.model_max_length))
    return {"tokenizer": tokenizer.backend_tokenizer.to_str(), **around, **numbers, "longest": longest}


def make_pieces(config: dict[str, Any]) -> Pieces:
    """Make pieces of what `describe_tokenizer` describes."""
    tokenizer = Tokenizer.from_str(config["tokenizer"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # a comment that says [MASK] shall not be one
    return Pieces(**{**config, "tokenizer": tokenizer})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a reader is but for its transformer."""

    style: Style = "filled"
    pool: Pool = "option"  # of a filled sequence, the states that are scored: the option's, the first, all
    windows_by: Over = "max"  # how the scores of an option's windows are combined
    has_gloss: bool = False  # of a masked reader: what it knows of an option
    wrong: float = 0.0  # weight of a second head, of what makes an option wrong; 0: there is none
    dropout: float = 0.1


class Batch(NamedTuple):
    """Sequences of n items: s of them, t long."""

    ids: Tensor  # [s, t]
    is_piece: Tensor  # [s, t]: no padding
    types: Tensor  # [s, t]
    start: Tensor  # [s]: where the option or the masks begin
    width: Tensor  # [s]: and how many pieces they are
    item: Tensor  # [s]: row of the item
    serves: Tensor  # [s, 5]: the options that the sequence is for; each option of each item has one or more
    options: Tensor  # [n, 5, k]: pieces, padded with -1; of masked readers, else empty
    glosses: Tensor  # [n, 5, g]: pieces, padded with -1; of masked readers with glosses, else empty


class PretrainedReader(nn.Module):
    """A transformer and the heads that score options. New weights are drawn from torch's global source."""

    def __init__(self, transformer: Any, shape: Shape) -> None:
        """Take a bare transformer for filled questions, one with its head for masked ones."""
        super().__init__()
        self.shape, self.transformer = shape, transformer
        self.drop = nn.Dropout(shape.dropout)
        width = transformer.config.hidden_size
        if shape.style == "filled":
            self.dense, self.predict = nn.Linear(width, width), nn.Linear(width, 2 if shape.wrong else 1)
        else:
            embedded = transformer.get_input_embeddings().weight.shape[1]
            if shape.has_gloss:
                self.ask = _make_zero_layer(width, embedded)
            if shape.wrong:
                self.wrong = _make_zero_layer(width, embedded)
                self.bias = nn.Parameter(torch.zeros(()))

    @property
    def encoder(self) -> Any:
        """The transformer without its head."""
        return self.transformer if self.shape.style == "filled" else self.transformer.base_model

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Score each option to be right, and, where there is a head for that, to be wrong: [n, 5]."""
        type_ids = {"token_type_ids": batch.types} if getattr(self.encoder.config, "type_vocab_size", 0) > 1 else {}
        states = self.encoder(input_ids=batch.ids, attention_mask=batch.is_piece.long(), **type_ids).last_hidden_state
        score = self._score_filled if self.shape.style == "filled" else self._score_masks
        right, wrong = score(states, batch)
        combined = combine_windows(right.float(), batch, self.shape.windows_by)
        return combined, None if wrong is None else combine_windows(wrong.float(), batch, self.shape.windows_by)

    def _score_filled(self, states: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """[s, 5], the same for all options, since a sequence serves one."""
        if self.shape.pool == "first":
            pooled = states[:, 0]
        else:
            place, start = torch.arange(states.shape[1], device=states.device), batch.start.unsqueeze(1)
            is_option = (place >= start) & (place < start + batch.width.unsqueeze(1))
            is_pooled = batch.is_piece if self.shape.pool == "mean" else is_option
            shares = is_pooled.to(states.dtype) / is_pooled.sum(dim=1, keepdim=True)
            pooled = torch.einsum("st,std->sd", shares, states)
        scores = self.predict(self.drop(torch.tanh(self.dense(self.drop(pooled)))))
        size = batch.serves.shape
        return scores[:, :1].expand(size), scores[:, 1:].expand(size) if self.shape.wrong else None

    def _score_masks(self, states: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """[s, 5]: mean log probability of an option's pieces, each at its mask, or all at the only one."""
        most, rows = int(batch.width.max()), torch.arange(len(states), device=states.device).unsqueeze(1)
        offsets = torch.minimum(torch.arange(most, device=states.device), batch.width.unsqueeze(1) - 1)
        masked_states = states[rows, batch.start.unsqueeze(1) + offsets]  # [s, masks, d]
        logits = compute_logits(self.transformer, masked_states.flatten(0, 1))
        log_probabilities = logits.float().log_softmax(dim=1).view(len(states), most, -1)
        options = batch.options[batch.item]  # [s, 5, k]
        is_piece = options >= 0
        mask = torch.arange(options.shape[2], device=states.device).clamp(max=most - 1)
        piece_scores = log_probabilities[rows.unsqueeze(2), mask, options.clamp(min=0)]
        right = (piece_scores * is_piece).sum(dim=2) / is_piece.sum(dim=2)
        state = self.drop(masked_states.mean(dim=1))
        if self.shape.has_gloss:
            right = right + self._score_embeddings(self.ask(state), batch.glosses[batch.item])
        wrong = self._score_embeddings(self.wrong(state), options) + self.bias if self.shape.wrong else None
        return right, wrong

    def _score_embeddings(self, queries: Tensor, ids: Tensor) -> Tensor:
        """Of [s, d] with the mean embedding of the pieces of each option [s, 5, k]: [s, 5]."""
        is_piece = (ids >= 0).unsqueeze(3)
        embedded = self.encoder.get_input_embeddings()(ids.clamp(min=0)) * is_piece
        return torch.einsum("sd,sod->so", queries, embedded.sum(dim=2) / is_piece.sum(dim=2).clamp(min=1))


def _make_zero_layer(width: int, out: int) -> nn.Linear:
    # its output is 0 until it learns, so that training begins with the transformer's own answers
    layer = nn.Linear(width, out, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def combine_windows(scores: Tensor, batch: Batch, over: Over) -> Tensor:
    """Combine the scores [s, 5] of all sequences that serve an option, by their maximum or mean: [n, 5]."""
    rows, options = batch.serves.nonzero(as_tuple=True)
    width = batch.serves.shape[1]
    out = scores.new_zeros((int(batch.item.max()) + 1) * width)
    kind = "amax" if over == "max" else "mean"
    place = batch.item[rows] * width + options
    return out.scatter_reduce(0, place, scores[rows, options], kind, include_self=False).view(-1, width)


def combine_heads(right: Tensor, wrong: Tensor | None, share: float) -> Tensor:
    """Compute log probabilities of the options, [n, 5], from the scores of two heads.

        p_o ∝ softmax(right)_o · (1 − σ(wrong_o))^share

    The wrong-answer ensemble (WAE; Kim and Fung, 2020) of section 4.1: the correct and the wrong answers are learnt
    separately and ensembled, so that a likely option that is known to be wrong is excluded. The papers at hand print no
    formula: this is ours; 1 − σ(wrong) is the probability that an option is not wrong.
    """
    log_probabilities = right.log_softmax(dim=1)
    return log_probabilities if wrong is None else (log_probabilities + share * logsigmoid(-wrong)).log_softmax(dim=1)
