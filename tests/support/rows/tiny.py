"""Sentence encoders of random weights, small enough to be trained in a test: 2 layers of width 32."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

WIDTH, LAYERS, LENGTH = 32, 2, 64
PIECES = "abcdefghijklmnopqrstuvwxyz0123456789"
HANS = "的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家"
WORDS = (
    "a i you he she it we they is are was the to of and in that this nice hat day cold door close please open window "
    "what late early home go come want not like very good bad salty soup salt dish wash again always never late time "
    "work house some people get up at five morning evening there here now later think say said know see look"
)


class Kind(NamedTuple):
    """How a published encoder is built: its transformer, pooling, what follows, longest text, and prompts."""

    model: str = "Bert"
    pooling: str = "mean"
    dense: int = 0  # width of a layer after the pooling
    has_length_one: bool = True
    longest: int = LENGTH
    prompt: str | None = None  # the name of the default one


KINDS = {
    "all-MiniLM": Kind(), "all-mpnet": Kind("MPNet", longest=24),
    "bert-cls": Kind(pooling="cls", has_length_one=False), "bert-max": Kind(pooling="max", has_length_one=False),
    "xlm-r": Kind("XLMRoberta", has_length_one=False), "e5": Kind("XLMRoberta", prompt="query"),
    "bge": Kind(pooling="cls"), "LaBSE": Kind(pooling="cls", dense=16),
    "gte": Kind("ModernBert", pooling="cls", has_length_one=False),
}  # fmt: skip


def build(folder: Path, seed: int = 5, kind: str = "all-MiniLM") -> Path:
    """Build a sentence-transformers folder of random weights."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    shape = KINDS[kind]
    inner, outer = folder / "bert", folder / "encoder"
    inner.mkdir(parents=True)
    words = dict.fromkeys([
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,!?，。！？[]'", *PIECES, *(f"##{p}" for p in PIECES), *HANS,
        *WORDS.split(),
    ])  # fmt: skip
    (inner / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    config = getattr(transformers, f"{shape.model}Config")(
        vocab_size=len(words), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2,
        intermediate_size=WIDTH, max_position_embeddings=LENGTH + 8 * (shape.model != "Bert"), initializer_range=0.5,
        pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        getattr(transformers, f"{shape.model}Model")(config).save_pretrained(inner)
        dense = [Dense(WIDTH, shape.dense)] if shape.dense else []
    vocab = str(inner / "vocab.txt")
    transformers.BertTokenizerFast(vocab=vocab, model_max_length=LENGTH).save_pretrained(inner)
    parts = [Transformer(str(inner), max_seq_length=shape.longest), Pooling(WIDTH, shape.pooling), *dense]
    parts += [Normalize()] * shape.has_length_one
    prompts = {"query": "query: ", "passage": "passage: "} if shape.prompt else None
    options = {"prompts": prompts, "default_prompt_name": shape.prompt}
    SentenceTransformer(modules=parts, device="cpu", **options).save(str(outer))
    return outer


def build_roberta(folder: Path, texts: Sequence[str], kind: str = "RobertaModel", **tokenizer_options: Any) -> Path:
    """Build a folder of a RoBERTa of random weights, whose pieces are of bytes and hold the blank before a word."""
    import torch
    import transformers
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    ))  # fmt: skip
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"unk_token": "<unk>", "mask_token": special[-1]}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **names, **tokenizer_options)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2,
        intermediate_size=WIDTH, max_position_embeddings=50, type_vocab_size=1, initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(8)
        getattr(transformers, kind)(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
