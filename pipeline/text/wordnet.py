"""WordNet as ReCAM uses it (sections 3.3, 3.4 and appendix D): lemmas, hypernym levels, pools of words and glosses.

Opened by nltk's own loader, so that `nltk.download` and Debian's packages serve alike. Parts of speech are WordNet's
letters: n, v, a (satellites among them) and r. Synsets go by their names, as bank.n.01. Lemmas are lower case, with
blanks where a lemma has several words.
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
    """The WordNet reader of nltk, loaded; about two seconds the first time.

    Raises:
        Missing: WordNet is not in nltk's data path, or not all of it.
    """
    import nltk.data
    from nltk.corpus.reader import CorpusReader, WordNetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    class English(WordNetCorpusReader):  # type: ignore[misc]
        def map_wn(self, version: str = "wordnet") -> None:
            """Senses of other languages' wordnets are not mapped, which takes longer than all the rest."""

    wordnet = LazyCorpusLoader("wordnet", English, LazyCorpusLoader("omw-1.4", CorpusReader, "-"))
    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError) as why:
        raise Missing(
            f"WordNet is not in nltk's data path ({', '.join(map(str, nltk.data.path))}), or not all of it: "
            f"nltk.download('wordnet'), or `apt-get download wordnet-base wordnet-sense-index` (no root is needed) and "
            f"pipeline.text.wordnet.unpack([both files], a folder of that path)"
        ) from why
    return wordnet


def read_version() -> str:
    """WordNet's version, as 3.0: levels differ by it (REC-08), so that it belongs in signatures."""
    return str(load_reader().get_version())


@lru_cache(1 << 16)
def lemmatize(word: str, upos: str) -> str:
    """Base form of a word by WordNet's morphy; a word that WordNet lacks, or of another part of speech, as it is.

    Of morphy's candidates: the irregular form if its exception list has one (saw, see), else for verbs the first
    (hoping, hope, not hop), for others the shortest (years, year, though WordNet also lists years). On UD EWT, all
    parts with gold UPOS: NOUN .972, VERB .991, ADJ .993, ADV .976; `nltk.WordNetLemmatizer` has .973, .986, .976, .974.

    Args:
        word: in any case, with blanks or underscores between its parts.
        upos: universal part of speech; AUX is looked up as a verb, PROPN not at all.
    """
    form, pos = _to_key(word), POS.get("VERB" if upos == "AUX" else upos)
    forms = _list_forms(form, pos) if pos else []
    regular = set(_list_forms(form, pos, exceptions=False)) if pos and len(forms) > 1 else set(forms)
    irregular = [one for one in forms if one not in regular]
    best = irregular[:1] or (forms[:1] if pos == "v" else sorted(forms, key=len)[:1]) or [form]
    return best[0].replace("_", " ")


def _to_key(word: str) -> str:
    return word.lower().replace(" ", "_")


def _list_forms(form: str, pos: str, exceptions: bool = True) -> list[str]:
    """All base forms; the public morphy shows the first alone, with which years stay years."""
    found: list[str] = load_reader()._morphy(form, pos, exceptions)  # noqa: SLF001
    return found


def list_synsets(lemma: str, pos: str) -> list[Any]:
    """The synsets of exactly this lemma, the most frequent first; an inflected form has none of its own."""
    return list(dict.fromkeys(found.synset() for found in load_reader().lemmas(_to_key(lemma), pos)))


class Pools(NamedTuple):
    """Words that stand near a lemma or against it."""

    synonyms: frozenset[str]
    antonyms: frozenset[str]


@lru_cache(1 << 16)
def find_pools(lemma: str) -> Pools:
    """All synonyms and antonyms of a lemma, over all senses of all parts of speech (section 3.4; REC-12).

    Antonyms of a sense are those of any of its lemmas, the stricter reading. The lemma is not its own synonym.
    """
    found = [each for pos in POS.values() for synset in list_synsets(lemma, pos) for each in synset.lemmas()]
    against = (other for each in found for other in each.antonyms())
    synonyms, antonyms = ({each.name().lower().replace("_", " ") for each in some} for some in (found, against))
    return Pools(frozenset(synonyms - {_to_key(lemma).replace("_", " ")}), frozenset(antonyms))


@lru_cache(1 << 16)
def join_glosses(word: str) -> str:
    """Definitions of a word's first sense in each part of speech, each behind its tag (appendix D; REC-20).

    As nltk does it: the word is lemmatised as a noun, since a choice stands without context, and looked up as every
    part of speech (went has no noun, its verb is go). The tags are universal (NOUN …): WordNet's own letter for
    adjectives is also an English word. Empty for a word that WordNet lacks.
    """
    query = _to_key(lemmatize(word, "NOUN"))
    firsts = [(tag, load_reader().synsets(query, pos)[:1]) for tag, pos in POS.items()]
    return " ".join(f"{tag} {synset.definition()}" for tag, found in firsts for synset in found)


@cache
def load_levels(pos: str) -> dict[str, int]:
    """Levels of all synsets of a part of speech: the longest hypernym path to a root, whose level is 0 (REC-08).

    Instances count as hyponyms (a river's name lies below river). Synsets on a hypernym cycle share the level of the
    longest way out. Nouns and verbs alone have hypernyms: others get an empty table.
    """
    if pos not in {"n", "v"}:
        return {}
    synsets = list(load_reader().all_synsets(pos))
    names = [synset.name() for synset in synsets]
    row = {name: i for i, name in enumerate(names)}
    above = [
        (row[synset.name()], row[other.name()])
        for synset in synsets
        for other in synset.hypernyms() + synset.instance_hypernyms()
    ]
    below, over = np.array(above, np.int64).reshape(-1, 2).T
    return dict(zip(names, _measure_paths(below, over, len(names)).tolist(), strict=True))


def _measure_paths(below: np.ndarray, over: np.ndarray, count: int) -> np.ndarray:
    """Edges of the longest path upward from each node; a cycle counts as one node, so that the paths end."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(below), np.int8), (below, over)), shape=(count, count))
    parts, part = connected_components(graph, connection="strong")
    ways = np.unique(np.stack([part[below], part[over]])[:, part[below] != part[over]], axis=1)
    level, before = np.zeros(parts, np.int64), None
    while before is None or (level != before).any():  # as often as the longest path has edges
        before = level.copy()
        np.maximum.at(level, ways[0], before[ways[1]] + 1)
    found: np.ndarray = level[part]
    return found


def find_level(synset: str) -> int | None:
    """Nonspecificity of a synset by name, 0 (a root) to the part of speech's maximum; None if it has no hierarchy.

    The paper says 0 to 17; in WordNet 3.0 nouns reach 19 and verbs 12 (REC-08), which `find_max_levels` tells.
    """
    return load_levels(synset.rsplit(".", 2)[-2]).get(synset)


def find_max_levels() -> dict[str, int]:
    """The highest level of nouns and of verbs."""
    return {pos: max(load_levels(pos).values(), default=0) for pos in ("n", "v")}


def is_nonspecific(level: int | None, pos: str, threshold: int = NONSPECIFIC) -> bool:
    """Is a sense a target of subtask 2: a noun or verb whose level is strictly under the threshold (REC-10)?"""
    return pos in {"n", "v"} and level is not None and level < threshold


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
_PARTS = ("noun", "verb", "adj", "adv")
FILES = (
    *(f"index.{part}" for part in _PARTS), *(f"data.{part}" for part in _PARTS), *(f"{part}.exc" for part in _PARTS),
    "cntlist.rev", "index.sense",
)  # fmt: skip


def unpack(sources: Sequence[Path], target: Path) -> Path:
    """Lay out Debian's wordnet-base and wordnet-sense-index as nltk's corpus, complete or not at all.

    Debian has no `lexnames`, so that it is written from the table in WordNet's manual (lexnames(5WN)). Files are
    copied, 36 MB: nltk refuses links and folders outside of its data path. nltk 3.10 does not load without
    `index.sense`, hence the second package. A layout that is there already is left as it is.

    Args:
        sources: .deb files, or folders they were unpacked to (usr/share/wordnet, or the one above usr).
        target: a folder of nltk's data path, as nltk_data in a virtual environment.

    Returns:
        target/corpora/wordnet.

    Raises:
        BadInput: a source is absent, a file is in none of them, or something else stands in the place.
        Missing: there is no dpkg-deb to open a package with.
    """
    place = target / "corpora" / "wordnet"
    if place.exists():
        if lacking := [name for name in (*FILES, "lexnames") if not (place / name).is_file()]:
            raise BadInput(f"{place}: is there but lacks {', '.join(lacking)}; remove it or choose another folder")
        return place
    with create_folder(place, may_exist=True) as draft, tempfile.TemporaryDirectory() as folder:
        _copy_files([_open_source(source, Path(folder) / str(i)) for i, source in enumerate(sources)], draft)
        rows = (f"{i:02d}\t{name}\t{category}\n" for i, (name, category) in enumerate(_LEXNAMES))
        (draft / "lexnames").write_text("".join(rows), encoding="ascii")
    return place


def _copy_files(folders: Sequence[Path], draft: Path) -> None:
    for name in FILES:
        found = [folder / name for folder in folders if (folder / name).is_file()]
        if not found:
            raise BadInput(
                f"no {name} in {', '.join(map(str, folders)) or 'no sources'}; expected the files of the packages "
                f"wordnet-base and wordnet-sense-index"
            )
        shutil.copyfile(found[0], draft / name)


def _open_source(source: Path, folder: Path) -> Path:
    """The folder with WordNet's files in a source; a package is unpacked below `folder`."""
    if source.is_file():
        if not shutil.which("dpkg-deb"):
            raise Missing(f"no dpkg-deb to open {source} with; unpack it (ar x, tar xf data.tar.*) and give the folder")
        done = subprocess.run(["dpkg-deb", "-x", source, folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BadInput(f"{source}: expected a Debian package, dpkg-deb says: {done.stderr.strip()}")
        source = folder
    if not source.is_dir():
        raise BadInput(f"{source}: there is no such package or folder")
    below = source / "usr" / "share" / "wordnet"
    return below if below.is_dir() else source
