"""Words of a text: jieba for Chinese (0.42.1 with HMM, as in the papers), nltk or stanza for English.

The Rust port of jieba is an option, recorded with its tokens: it differs on 0.25% of sentences (see
`count_disagreements`). Emoji codes ([doge]) and typed tokens ([URL]) stay whole, since they carry tone. Blanks are no
tokens.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import Missing, check_name
from pipeline.explanations import name_extra
from pipeline.io.hashes import hash_file

CODE = re.compile(r"(\[[\u4e00-\u9fffA-Za-z0-9_]{1,12}\])")
_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNIT = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+(?:['’][^\W{_HAN}]+)*|[^\w\s]")
"""A Chinese character, a word of other writing, or a mark."""
_BATCH = 10_000  # texts whose tokens are Python's strings at a time; polars needs a tenth of their memory
Cut = Callable[[str], list[str]]
_Loader = Callable[[], tuple[str, Cut]]  # of what an installation's tokens depend on besides the version, and the cut


class Tokenizer(NamedTuple):
    """What cuts text, and what must be the same for its tokens to be the same."""

    name: str
    version: str
    dictionary_hash: str
    cut: Cut


@cache
def load_tokenizer(name: str, resources: Path | None = None) -> Tokenizer:
    """A tokenizer by name. `resources` is where stanza's models lie."""
    stanza = partial(_load_stanza, resources)
    loaders: dict[str, _Loader] = {"jieba": _load_jieba, "rjieba": _load_rjieba, "nltk": _load_nltk, "stanza": stanza}
    check_name("tokenizer", name, loaders)
    dictionary_hash, cut = loaders[name]()
    return Tokenizer(name, version(name), dictionary_hash, cut)


def load_tokenizers(
    chinese: str = "jieba", english: str = "nltk", resources: Path | None = None
) -> dict[str, Tokenizer]:
    """The tokenizer for each language; what is neither English nor known goes to the Chinese one."""
    han, latin = load_tokenizer(chinese), load_tokenizer(english, resources)
    return {"zh": han, "ja": han, "ko": latin, "en": latin, "und": han}


def split_words(text: str, cut: Cut) -> list[str]:
    """Tokens of a text, codes whole."""
    tokens: list[str] = []
    for part in CODE.split(text):
        tokens += [part] if CODE.fullmatch(part) else [word for word in cut(part) if not word.isspace()] if part else []
    return tokens


def tokenize(texts: pl.DataFrame, tokenizers: dict[str, Tokenizer]) -> pl.DataFrame:
    """Tokens of (text_hash, text, lang) rows, with the tokenizer that made them."""
    names = ("text_hash", "tokens", "tokenizer", "tokenizer_version", "dictionary_hash")
    types = {name: pl.List(pl.String) if name == "tokens" else pl.String for name in names}
    parts = [pl.DataFrame(schema=types)]
    for part in texts.select("text_hash", "text", "lang").iter_slices(_BATCH):
        rows = [
            (text_hash, split_words(text, tokenizers[lang].cut), *tokenizers[lang][:3])
            for text_hash, text, lang in part.iter_rows()
        ]
        parts.append(pl.DataFrame(rows, schema=types, orient="row"))
    return pl.concat(parts)


def count_disagreements(texts: list[str]) -> tuple[int, list[tuple[str, list[str], list[str]]]]:
    """How many texts jieba and its Rust twin cut otherwise, and the first ten: (text, jieba, rjieba)."""
    jieba, rjieba = load_tokenizer("jieba"), load_tokenizer("rjieba")
    rows = ((text, split_words(text, jieba.cut), split_words(text, rjieba.cut)) for text in texts)
    different = [row for row in rows if row[1] != row[2]]
    return len(different), different[:10]


def _load_jieba() -> tuple[str, Cut]:
    import jieba

    jieba.setLogLevel("WARNING")  # its chatter about the cache goes to standard error
    return f"{hash_file(Path(jieba.__file__).parent / 'dict.txt')[:12]}/hmm", jieba.lcut


def _load_rjieba() -> tuple[str, Cut]:
    with name_extra():
        import rjieba
    return "built-in/hmm", rjieba.cut


def _load_nltk() -> tuple[str, Cut]:
    from nltk.tokenize import TweetTokenizer

    return "tweet", TweetTokenizer(match_phone_numbers=False).tokenize


def _load_stanza(resources: Path | None) -> tuple[str, Cut]:
    pipeline = load_pipeline((resources or Path()) / "stanza", "en", "tokenize", alternative=", or use nltk")
    return "en/default", lambda text: [token.text for part in pipeline(text).sentences for token in part.tokens]


def load_pipeline(folder: Path, lang: str, processors: str, *, alternative: str = "", **options: Any) -> Any:
    """Stanza's pipeline of a language with these processors, from the folder of stanza's resources.json.

    Missing if models are not there, with how to get them and the alternative.
    """
    remedy = f"stanza.download({lang!r}, model_dir='{folder}'){alternative}"
    if not (folder / "resources.json").is_file():
        raise Missing(f"stanza has no models in {folder}: {remedy}")
    import stanza
    from stanza.pipeline.core import PipelineRequirementsException

    common = {"download_method": None, "use_gpu": False, "verbose": False}
    try:
        pipeline = stanza.Pipeline(lang, dir=str(folder), processors=processors, **common, **options)
    except (OSError, ValueError, KeyError, PipelineRequirementsException) as why:
        raise Missing(f"stanza's models of {lang} in {folder} are not complete ({why}): {remedy}") from why
    # one that its list does not name is left out with a warning
    if lacking := [name for name in processors.split(",") if name not in pipeline.processors]:
        raise Missing(f"stanza's models of {lang} in {folder} are without {', '.join(lacking)}: {remedy}")
    return pipeline
