"""A sentence encoder of random weights, small enough to be trained in a test: 2 layers of width 32."""

from pathlib import Path

WIDTH, LAYERS, LENGTH = 32, 2, 64
PIECES = "abcdefghijklmnopqrstuvwxyz0123456789"
HANS = "的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家"
WORDS = (
    "a i you he she it we they is are was the to of and in that this nice hat day cold door close please open window "
    "what late early home go come want not like very good bad salty soup salt dish wash again always never late time "
    "work house some people get up at five morning evening there here now later think say said know see look"
)


def build(folder: Path, seed: int = 5) -> Path:
    """A sentence-transformers folder with a BertModel that pools the mean over the words and normalises it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    inner, outer = folder / "bert", folder / "encoder"
    inner.mkdir()
    words = dict.fromkeys([
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,!?，。！？[]'", *PIECES, *(f"##{p}" for p in PIECES), *HANS,
        *WORDS.split(),
    ])  # fmt: skip
    (inner / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    config = BertConfig(
        vocab_size=len(words), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2,
        intermediate_size=WIDTH, max_position_embeddings=LENGTH, initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(inner)
    BertTokenizerFast(vocab=str(inner / "vocab.txt"), model_max_length=LENGTH).save_pretrained(inner)
    parts = [Transformer(str(inner), max_seq_length=LENGTH), Pooling(WIDTH), Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(outer))
    return outer
