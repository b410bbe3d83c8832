"""A small WordNet of our own, written as a folder, and the real one where it is installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nltk.data
import pytest
from nltk.corpus import wordnet as nltk_wordnet

from pipeline.errors import Missing
from pipeline.text import glosses, wordnet

ROWS = [
    ("entity", "n", "entity", "anything that there is", ""),
    ("ground", "n", "ground land", "the firm part of the world that one walks on", "@entity"),
    ("shore", "n", "bank riverside", 'land at the side of a river; "reeds grew on the bank"', "@ground"),
    ("group", "n", "group", "several together", "@entity"),
    ("firm", "n", "firm company", "people who trade together for money", "@group"),
    ("lender", "n", "bank banking_house", 'a firm that keeps and lends money; "the bank was shut on Monday"', "@firm"),
    ("savings", "n", "savings_bank", "one for people with little, who deposit coins", "@lender"),
    ("water", "n", "water", "what falls as rain", "@entity"),
    ("river", "n", "river", "water on its way to the sea", "@water"),
    ("Oder", "n", "Oder", "between Germany and Poland", "@i:river"), ("being", "n", "being", "what lives", "@entity"),
    ("animal", "n", "animal", "a being that moves about", "@being"), ("food", "n", "food", "what is eaten", "@entity"),
    ("fish", "n", "fish", "an animal under water that anglers hope for", "@animal @food"),  # two ways up: 3 and 2
    ("tone", "n", "bass", "the lowest notes of a song or a band", "@entity !1:treble"),
    ("treble", "n", "treble", "the highest notes", "@entity !1:tone"),
    ("perch", "n", "bass sea_bass", "a spiny fish of lakes and coasts", "@fish"),
    ("wolf", "n", "wolf", "a grey animal of the woods", "@animal"), ("year", "n", "year", "four seasons", "@entity"),
    ("age", "n", "years", "a long time lived", "@entity"),
    ("Banks", "n", "Banks", "a botanist who sailed with Cook", "@i:animal"), ("act", "v", "act", "do something", ""),
    ("hinder", "v", "hinder", "make slow", "@stop"),  # a loop, of which stop leads out
    ("stop", "v", "stop", "make an end", "@hinder @act"), ("bar", "v", "bar", "stop by a bar", "@hinder"),
    ("see", "v", "see", "take in with the eyes", "@act"), ("saw", "v", "saw", "cut with teeth of steel", "@act"),
    ("hop", "v", "hop", "go on one leg", "@act"), ("hope", "v", "hope", "wish and expect", ""),
    ("lend", "v", "bank", "leave money with a firm", "@act"), ("good", "a", "good", "as it should be", "!1:bad &fine"),
    ("bad", "a", "bad", "as it should not be", "!1:good"), ("fine", "s", "fine all_right", "good enough", "&good"),
    ("well", "r", "well", "in a good way", ""),
]  # fmt: skip
SEARCHED = tuple(map(Path, nltk.data.path))
EXCEPTIONS = {"noun": "wolves wolf\n", "verb": "saw see\n", "adj": "better good\n", "adv": ""}
PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
LICENCE = "  1 A small net of our own in the format of WordNet 3.0 Copyright 2026 by nobody  \n"
LEXNAMES = {"perch": 5, "bar": 41}


def write(folder: Path) -> Path:
    """Our rows in the format of wndb(5WN), without lexnames, as Debian has them: folder/usr/share/wordnet."""
    target = folder / "usr" / "share" / "wordnet"
    target.mkdir(parents=True)
    offsets: dict[str, int] = {}
    back = {key: "" for key, *_ in ROWS}  # WordNet lists hyponyms too
    for key, *_, pointers in ROWS:
        for pointer in pointers.split():
            if pointer[0] == "@":
                back[pointer.split(":")[-1].lstrip("@")] += f" ~i:{key}" if ":" in pointer else f" ~{key}"
    kind = {key: pos for key, pos, *_ in ROWS}
    for _ in range(2):  # offsets are of fixed width: the second round knows them all
        for pos, part in PARTS.items():
            text = LICENCE
            for key, key_pos, lemmas, gloss, pointers in ROWS:
                if key_pos.replace("s", "a") == pos:
                    offsets[key] = len(text)
                    ends = (pointers + back[key]).split()
                    text += _format_line(key, key_pos, lemmas.split(), gloss, ends, offsets, kind)
            (target / f"data.{part}").write_text(text)
            (target / f"index.{part}").write_text(LICENCE + "".join(_index(pos, offsets)))
            (target / f"{part}.exc").write_text(EXCEPTIONS[part])
    for name in ("cntlist.rev", "index.sense"):
        (target / name).write_text("")
    return folder


def _format_line(key, pos, lemmas, gloss, pointers, offsets, kind) -> str:
    ends = []
    for pointer in pointers:
        symbol, name = pointer.split(":") if ":" in pointer else (pointer[0], pointer[1:])
        lexical = "0101" if symbol.endswith("1") else "0000"
        ends.append(f"{symbol.removesuffix('1')} {offsets.get(name, 0):08d} {kind[name].replace('s', 'a')} {lexical}")
    words = " ".join(f"{lemma} 0" for lemma in lemmas)
    frames = " 00" if pos == "v" else ""
    start = f"{offsets[key]:08d} {LEXNAMES.get(key, 0):02d} {pos} {len(lemmas):02x} {words}"
    return " ".join([start, f"{len(ends):03d}", *ends]) + f"{frames} | {gloss}  \n"


def _index(pos: str, offsets: dict[str, int]) -> Iterator[str]:
    keys: dict[str, list[str]] = {}
    for key, key_pos, lemmas, *_ in ROWS:
        for lemma in lemmas.split() if key_pos.replace("s", "a") == pos else ():
            keys.setdefault(lemma.lower(), []).append(f"{offsets[key]:08d}")
    for lemma, ends in sorted(keys.items()):
        yield f"{lemma} {pos} {len(ends)} 0 {len(ends)} 0 {' '.join(ends)}  \n"


def forget() -> None:
    """Let nltk and us look for WordNet again."""
    ours = wordnet.load_reader() if wordnet.load_reader.cache_info().currsize else nltk_wordnet
    for reader in (ours, nltk_wordnet):
        for file in vars(reader).get("_data_file_map", {}).values():
            file.close()
    nltk_wordnet._unload()
    cached = ("load_reader", "lemmatize", "find_pools", "join_glosses", "load_levels")
    for function in (
        *(getattr(wordnet, name) for name in cached),
        glosses._lemmatize,
        glosses.load_texts,
        glosses.relate,
    ):
        function.cache_clear()


@contextmanager
def found_in(*folders: Path) -> Iterator[None]:
    """Nltk's data path is these folders alone."""
    before = list(nltk.data.path)
    forget()
    nltk.data.path[:] = map(str, folders)
    try:
        yield
    finally:
        forget()
        nltk.data.path[:] = before


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Our net is the WordNet that nltk finds."""
    wordnet.unpack([write(tmp_path / "tree")], tmp_path / "nltk_data")
    with found_in(tmp_path / "nltk_data"):
        yield tmp_path


@contextmanager
def real() -> Iterator[None]:
    """The real WordNet, where nltk finds one."""
    with found_in(*SEARCHED):
        try:
            wordnet.load_reader()
        except Missing as why:
            pytest.skip(f"needs WordNet: {why}")
        yield
