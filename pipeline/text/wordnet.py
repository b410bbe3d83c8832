"""WordNet as ReCAM uses it (sections 3.3, 3.4 and appendix D): lemmas, hypernym levels, synonyms, antonyms and glosses.

nltk's own loader reads it, so `nltk.download` and Debian's packages both work. Parts of speech are WordNet's letters:
n, v, a (with satellites) and r. Synsets are named like bank.n.01. Lemmas are lower case, with spaces between words.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import create_folder

POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}  # in the order in which WordNet lists them
NONSPECIFIC = 6  # levels below it (section 3.3)


@cache
def load_reader() -> Any:
    """Load nltk's WordNet reader, in about two seconds; Missing if a part of WordNet is not in nltk's data path."""
    import nltk.data
    from nltk.corpus.reader import CorpusReader, WordNetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    class English(WordNetCorpusReader):  # type: ignore[misc]
        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the mapping to wordnets of other languages, which takes longer than the rest."""

    wordnet = LazyCorpusLoader("wordnet", English, LazyCorpusLoader("omw-1.4", CorpusReader, "-"))
    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError) as why:
        raise Missing(
            f"WordNet is not in nltk's data path, or not all of it ({', '.join(map(str, nltk.data.path))}). Run "
            f"nltk.download('wordnet'), or `apt-get download wordnet-base wordnet-sense-index` (no root needed) and "
            f"pipeline.text.wordnet.unpack([both files], a folder of that path)."
        ) from why
    return wordnet


def read_version() -> str:
    """Return WordNet's version, such as 3.0. Signatures include it, since levels depend on it (REC-08)."""
    return str(load_reader().get_version())


@lru_cache(1 << 16)
def lemmatize(word: str, upos: str) -> str:
    """Return the base form of a word by WordNet's morphy; a word that WordNet lacks is returned unchanged.

    Of morphy's candidates: the irregular form if its exception list has one (saw, see), else for verbs the first
    (hoping, hope, not hop), for others the shortest (years, year, though WordNet also lists years).

    The word may be in any case, with spaces or underscores between its parts. AUX is looked up as a verb, PROPN and
    others not at all.
    """
    key, pos = _to_key(word), POS.get("VERB" if upos == "AUX" else upos)
    forms = _list_forms(key, pos) if pos else []
    regular = set(_list_forms(key, pos, exceptions=False)) if pos and len(forms) > 1 else set(forms)
    irregular = [form for form in forms if form not in regular]
    best = irregular[:1] or (forms[:1] if pos == "v" else sorted(forms, key=len)[:1]) or [key]
    return best[0].replace("_", " ")


def _to_key(word: str) -> str:
    return word.lower().replace(" ", "_")


def _list_forms(form: str, pos: str, exceptions: bool = True) -> list[str]:
    """List all base forms; the public morphy returns only the first, which leaves `years` unchanged."""
    forms: list[str] = load_reader()._morphy(form, pos, exceptions)  # noqa: SLF001
    return forms


def list_synsets(lemma: str, pos: str) -> list[Any]:
    """List the synsets of exactly this lemma, the most frequent first; an inflected form has none."""
    return list(dict.fromkeys(lemma_object.synset() for lemma_object in load_reader().lemmas(_to_key(lemma), pos)))


def has_word(word: str) -> bool:
    """Whether WordNet has a base form of the word in any part of speech; False where it is not installed."""
    try:
        return bool(load_reader().synsets(_to_key(word)))
    except Missing:
        return False


class Pools(NamedTuple):
    """Synonyms and antonyms of a lemma."""

    synonyms: frozenset[str]
    antonyms: frozenset[str]


@lru_cache(1 << 16)
def find_pools(lemma: str) -> Pools:
    """Collect synonyms and antonyms of a lemma over all senses of all parts of speech (section 3.4; REC-12).

    Antonyms of a sense are those of any of its lemmas, the stricter reading. The lemma is not its own synonym.
    """
    lemmas = [item for pos in POS.values() for synset in list_synsets(lemma, pos) for item in synset.lemmas()]
    opposites = (antonym for item in lemmas for antonym in item.antonyms())
    synonyms, antonyms = ({item.name().lower().replace("_", " ") for item in group} for group in (lemmas, opposites))
    return Pools(frozenset(synonyms - {_to_key(lemma).replace("_", " ")}), frozenset(antonyms))


@lru_cache(1 << 16)
def join_glosses(word: str) -> str:
    """Join the definitions of a word's first sense in each part of speech, each after its tag (appendix D; REC-20).

    As in nltk, the word is lemmatized as a noun, since an option has no context, and looked up as every part of speech
    (went has no noun, its verb is go). Tags are universal (NOUN …), since WordNet's letter for adjectives is also an
    English word. A word that WordNet lacks gives an empty text.
    """
    query = _to_key(lemmatize(word, "NOUN"))
    firsts = [(tag, load_reader().synsets(query, pos)[:1]) for tag, pos in POS.items()]
    return " ".join(f"{tag} {synset.definition()}" for tag, synsets in firsts for synset in synsets)


@cache
def load_levels(pos: str) -> dict[str, int]:
    """Compute the levels of all synsets of a part of speech: the longest hypernym path to a root (REC-08).

    A root has level 0. Instances count as hyponyms (a river's name is below river). Synsets on a hypernym cycle share
    the level of the longest path out of it. Only nouns and verbs have hypernyms; for others the result is empty. The
    paper states 0 to 17; in WordNet 3.0 nouns reach 19 and verbs 12.
    """
    if pos not in {"n", "v"}:
        return {}
    synsets = list(load_reader().all_synsets(pos))
    names = [synset.name() for synset in synsets]
    row = {name: i for i, name in enumerate(names)}
    edges = [
        (row[synset.name()], row[hypernym.name()])
        for synset in synsets
        for hypernym in synset.hypernyms() + synset.instance_hypernyms()
    ]
    below, over = np.array(edges, np.int64).reshape(-1, 2).T
    return dict(zip(names, _measure_paths(below, over, len(names)).tolist(), strict=True))


def _measure_paths(below: np.ndarray, over: np.ndarray, count: int) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(below), np.int8), (below, over)), shape=(count, count))
    parts, part = connected_components(graph, connection="strong")
    ways = np.unique(np.stack([part[below], part[over]])[:, part[below] != part[over]], axis=1)
    level, before = np.zeros(parts, np.int64), None
    while before is None or (level != before).any():  # one round per edge of the longest path
        before = level.copy()
        np.maximum.at(level, ways[0], before[ways[1]] + 1)
    return np.asarray(level[part])


_NAMES = {
    "noun": "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
    "object person phenomenon plant possession process quantity relation shape state substance time",
    "verb": "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather",
}
_LEXNAMES = [
    ("adj.all", 3), ("adj.pert", 3), ("adv.all", 4),
    *((f"noun.{name}", 1) for name in _NAMES["noun"].split()),
    *((f"verb.{name}", 2) for name in _NAMES["verb"].split()),
    ("adj.ppl", 3),
]  # fmt: skip
_PART_FILES = ("index.{}", "data.{}", "{}.exc")
FILES = (*(name.format(part) for name in _PART_FILES for part in ("noun", "verb", "adj", "adv")),
         "cntlist.rev", "index.sense")  # fmt: skip


def unpack(sources: Sequence[Path], target: Path) -> Path:
    """Copy Debian's wordnet-base and wordnet-sense-index into nltk's layout, completely or not at all.

    Debian has no `lexnames`; it is written from the table in WordNet's manual (lexnames(5WN)). The 36 MB are copied,
    since nltk refuses links and folders outside of its data path. nltk 3.10 needs `index.sense`, hence the second
    package. Sources are .deb files, or folders they were unpacked to (usr/share/wordnet, or the one above usr); the
    target is a folder of nltk's data path. Returns its corpora/wordnet; a complete one is left unchanged.
    """
    corpus = target / "corpora" / "wordnet"
    if corpus.exists():
        if missing := [name for name in (*FILES, "lexnames") if not (corpus / name).is_file()]:
            raise BadInput(f"{corpus}: exists but lacks {', '.join(missing)}; remove it or choose another folder")
        return corpus
    with create_folder(corpus, may_exist=True) as draft, tempfile.TemporaryDirectory() as temporary:
        folders = [_open_source(source, Path(temporary) / str(i)) for i, source in enumerate(sources)]
        for name in FILES:
            copies = [folder / name for folder in folders if (folder / name).is_file()]
            if not copies:
                problem = f"no {name} in {', '.join(map(str, folders)) or 'no sources'}"
                raise BadInput(f"{problem}; expected the files of the packages wordnet-base and wordnet-sense-index")
            shutil.copyfile(copies[0], draft / name)
        rows = (f"{i:02d}\t{name}\t{category}\n" for i, (name, category) in enumerate(_LEXNAMES))
        (draft / "lexnames").write_text("".join(rows), encoding="ascii")
    return corpus


def _open_source(source: Path, folder: Path) -> Path:
    if source.is_file():
        if not shutil.which("dpkg-deb"):
            raise Missing(f"{source}: dpkg-deb is not installed; unpack it (ar x, tar xf data.tar.*), pass the folder")
        process = subprocess.run(["dpkg-deb", "-x", source, folder], capture_output=True, text=True, check=False)
        if process.returncode:
            raise BadInput(f"{source}: expected a Debian package; dpkg-deb reports: {process.stderr.strip()}")
        source = folder
    if not source.is_dir():
        raise BadInput(f"{source}: no such package or folder")
    below = source / "usr" / "share" / "wordnet"
    return below if below.is_dir() else source
