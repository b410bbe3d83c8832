"""WordNet: laid out for nltk or named as missing, lemmas, levels, pools and glosses, on a small net of our own."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput, Missing
from pipeline.text import wordnet
from tests.support.oracles.wordnet_net import found_in, small, write

__all__ = ["small"]  # a fixture


def test_what_is_missing_is_told_with_the_ways_to_get_it(tmp_path: Path) -> None:
    """Without WordNet the error names nltk's download, Debian's packages and the path that was searched."""
    with found_in(tmp_path), pytest.raises(Missing) as why:
        wordnet.read_version()
    assert all(part in str(why.value) for part in ("nltk.download('wordnet')", "wordnet-sense-index", str(tmp_path)))


def test_the_layout_is_what_nltk_reads(small: Path) -> None:
    """A Debian tree opens by nltk's loader; senses come in its order and are never those of a base form."""
    assert wordnet.read_version() == "3.0"
    names = [wordnet.load_reader().synset(name).lexname() for name in ("bass.n.02", "bar.v.01")]
    assert names == ["noun.animal", "verb.social"]
    lines = (small / "nltk_data" / "corpora" / "wordnet" / "lexnames").read_text().splitlines()
    assert (len(lines), lines[0], lines[3], lines[44]) == (45, "00\tadj.all\t3", "03\tnoun.Tops\t1", "44\tadj.ppl\t3")
    assert [synset.name() for synset in wordnet.list_synsets("bank", "n")] == ["bank.n.01", "bank.n.02"]
    assert [synset.name() for synset in wordnet.list_synsets("banks", "n")] == ["banks.n.01"]
    assert [synset.name() for synset in wordnet.list_synsets("all right", "a")] == ["fine.s.01"]
    assert wordnet.list_synsets("bank", "r") == []


def test_packages_are_unpacked(tmp_path: Path) -> None:
    """The files may come from two packages, as in Debian; the layout is there once, and stays as it is."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("needs dpkg-deb to make a package")
    base = write(tmp_path / "base")
    index = tmp_path / "index" / "usr" / "share" / "wordnet"
    index.mkdir(parents=True)
    (base / "usr/share/wordnet/index.sense").rename(index / "index.sense")
    packages = []
    for tree in (base, tmp_path / "index"):
        (tree / "DEBIAN").mkdir()
        control = f"Package: {tree.name}\nVersion: 1\nArchitecture: all\nMaintainer: us\nDescription: ours\n"
        (tree / "DEBIAN" / "control").write_text(control)
        packages.append(tmp_path / f"{tree.name}.deb")
        subprocess.run(["dpkg-deb", "-b", tree, packages[-1]], check=True, capture_output=True)
    place = wordnet.unpack(packages, tmp_path / "to")
    assert sorted(path.name for path in place.iterdir()) == sorted([*wordnet.FILES, "lexnames"])
    assert [path.name for path in place.parent.iterdir()] == ["wordnet"]
    (place / "verb.exc").write_text("ours\n")
    assert wordnet.unpack(packages, tmp_path / "to") == place
    assert (place / "verb.exc").read_text() == "ours\n"


def test_what_cannot_be_laid_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lacking file, a lacking source, no package and a taken place are told, and nothing is left half done."""
    tree, target = write(tmp_path / "tree"), tmp_path / "to"
    (tree / "usr/share/wordnet/index.sense").unlink()
    with pytest.raises(BadInput, match=r"no index\.sense in .*wordnet-sense-index"):
        wordnet.unpack([tree], target)
    with pytest.raises(BadInput, match="no such package or folder"):
        wordnet.unpack([tmp_path / "none.deb"], target)
    (tmp_path / "text.deb").write_text("no package")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Missing, match="dpkg-deb"):
        wordnet.unpack([tmp_path / "text.deb"], target)
    monkeypatch.undo()
    if shutil.which("dpkg-deb"):
        with pytest.raises(BadInput, match="expected a Debian package"):
            wordnet.unpack([tmp_path / "text.deb"], target)
    assert list((target / "corpora").iterdir()) == []
    (target / "corpora" / "wordnet").mkdir()
    with pytest.raises(BadInput, match=r"exists but lacks index\.noun"):
        wordnet.unpack([tree], target)


@pytest.mark.parametrize(
    ("word", "upos", "wanted"),
    [
        ("wolves", "NOUN", "wolf"),
        ("banks", "NOUN", "bank"),  # not the botanist
        ("years", "NOUN", "year"),  # though years is a lemma too
        ("saw", "VERB", "see"),
        ("hoping", "VERB", "hope"),  # not hop, which is shorter
        ("Better", "ADJ", "good"), ("sea basses", "NOUN", "sea bass"), ("banks", "AUX", "bank"),
        ("banks", "PROPN", "banks"), ("Teapots", "NOUN", "teapots"), ("", "NOUN", ""), ("银行", "NOUN", "银行"),
    ],
)  # fmt: skip
def test_lemmas(small: Path, word: str, upos: str, wanted: str) -> None:
    """Base forms by morphy: irregular ones first, of several the likelier; what WordNet lacks stays in lower case."""
    assert wordnet.lemmatize(word, upos) == wanted


def level(synset: str) -> int | None:
    return wordnet.load_levels(synset.rsplit(".", 2)[-2]).get(synset)


def test_levels_are_longest_paths(small: Path) -> None:
    """A root is at level 0, the longer of two ways counts, an instance lies below its class (REC-08).

    Synsets that are each other's hypernyms share the level of the way out, and those below go on from there.
    """
    names = ["entity.n.01", "river.n.01", "oder.n.01", "fish.n.01", "bass.n.02", "act.v.01", "hope.v.01"]
    assert [level(name) for name in names] == [0, 2, 3, 3, 4, 0, 0]
    assert [level(name) for name in ("good.a.01", "fine.s.01", "well.r.01", "teapot.n.01")] == [None] * 4
    assert [max(wordnet.load_levels(pos).values()) for pos in "nv"] == [4, 2]
    assert [level(f"{verb}.v.01") for verb in ("hinder", "stop", "bar")] == [1, 1, 2]


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_levels_of_any_graph(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    """A level is one more than the highest above the node's loop, or 0: with numbers given, this fixes them all."""
    count, edges = drawn
    reach = np.eye(count, dtype=bool)
    for below, over in edges:
        reach[below, over] = True
    for _ in range(count):
        reach |= reach @ reach
    found = wordnet._measure_paths(*np.array(edges, np.int64).reshape(-1, 2).T, count)
    for node in range(count):
        loop = reach[node] & reach[:, node]
        outside = [found[over] for below, over in edges if loop[below] and not loop[over]]
        assert found[node] == (1 + max(outside) if outside else 0)


def test_pools_are_over_all_senses(small: Path) -> None:
    """All senses give synonyms and antonyms (REC-12); glosses are of the first senses, each behind its tag."""
    assert wordnet.find_pools("bank") == ({"riverside", "banking house"}, set())
    assert wordnet.find_pools("bass") == ({"sea bass"}, {"treble"})
    assert wordnet.find_pools("sea bass").synonyms == {"bass"}
    assert wordnet.find_pools("good").antonyms == {"bad"}
    assert wordnet.find_pools("teapot") == (set(), set())
    wanted = "NOUN land at the side of a river VERB leave money with a firm"
    assert [wordnet.join_glosses(word) for word in ("bank", "Banks", "banks")] == [wanted] * 3
    assert wordnet.join_glosses("better") == "ADJ as it should be"
    assert wordnet.join_glosses("sea bass") == "NOUN a spiny fish of lakes and coasts"
    assert wordnet.join_glosses("teapot") == ""
