"""Dependency trees: what a file may hold, which spans are subtrees, what is left when they go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput, Missing
from pipeline.text import trees
from pipeline.text.segment import load_tokenizer
from pipeline.text.tagging import load_stanza
from pipeline.text.trees import Tree, drop_words, find_subtrees, load_parser, match_trees, measure_depths, read
from tests.support.oracles.tree_cases import heads

HEADS = [1, 2, -1, 2, 6, 6, 3, 2]  # Our neighbour sold what the old man left .  (of our own: left hangs on sold)

FILE = """\
# newdoc
# sent_id = ours-1
# text = She didn't sleep.
1\tShe\tshe\tPRON\t_\tCase=Nom\t4\tnsubj\t_\t_
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\t_\tMood=Ind|Tense=Past\t4\taux\t_\t_
3\tn't\t_\tPART\t_\t_\t4\tadvmod\t_\t_
3.1\tever\tever\tADV\t_\t_\t_\t_\t4:advmod\t_
4\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

1\tSnow\tsnow\tNOUN\t_\t_\t2\tdep\t_\t_
2\t_\t_\tPUNCT\t_\t_\t0\troot\t_\t_
"""
TREES = [
    Tree(("She", "did", "n't", "sleep", "."), (3, 3, 3, -1, 3),
         ("PRON", "AUX", "PART", "VERB", "PUNCT"), ("she", "do", "", "sleep", "."),
         ("Case=Nom", "Mood=Ind|Tense=Past", "", "", ""), "ours-1", "She didn't sleep."),
    Tree(("Snow", "_"), (1, -1), ("NOUN", "PUNCT"), ("snow", "_"), ("", "")),
]  # fmt: skip


def family(up: list[int], word: int) -> set[int]:
    return {word}.union(*(family(up, child) for child, head in enumerate(up) if head == word))


def written(tmp_path: Path, *columns: str) -> Path:
    """A file of a comment and one sentence, by ID and HEAD of each word; the first row is line 2."""
    rows = [column.split() for column in columns]
    path = tmp_path / "broken.conllu"
    path.write_text("# ours\n" + "".join(f"{n}\tw\tw\tX\t_\t_\t{head}\tdep\t_\t_\n" for n, head in rows))
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_of_trees(tmp_path: Path, ends: str) -> None:
    """Ranges and empty nodes are passed over; what is _ is empty; comments are of their own sentence alone."""
    path = tmp_path / "ours.conllu"
    path.write_text(FILE, encoding="utf-8", newline=ends)
    assert list(read(path)) == TREES


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["1 0", "2 _"], r"line 3: field HEAD should be a number from 0 to 2, and not 2, .* found '_'"),
        (["1 0", "2 3"], r"line 3: field HEAD .* found '3'"),
        (["1 0", "2 -1"], r"line 3: field HEAD .* found '-1'"),
        (["1 0", "2 ²"], r"line 3: field HEAD .* found '²'"),
        (["1 0", f"2 {'9' * 5000}"], r"line 3: field HEAD .* found '9999"),
        (["1 1", "2 0"], r"line 2: field HEAD .* and not 1, the word itself; found '1'"),
        (["1 2", "2 1"], r"line 2: .* 0 for one word, the root, found 0"),
        (["1 0", "2 0"], r"line 2: .* 0 for one word, the root, found 2"),
        (["1 0", "2 3", "3 2"], r"line 2: .* the heads of word [23] form a cycle"),
        (["1 0", "3 1"], r"line 3: field ID should be 2"),
    ],
)
def test_a_broken_tree_is_named(tmp_path: Path, columns: list[str], told: str) -> None:
    """The row of a wrong head, the first row of a sentence that is not one tree."""
    path = written(tmp_path, *columns)
    with pytest.raises(BadInput, match=told) as why:
        list(read(path))
    assert str(why.value).startswith(f"{path}, line ")


def test_trees_are_matched_by_their_words() -> None:
    """The first tree of the words; a sentence asked twice has it twice, one that no tree has gets None."""
    other = TREES[1]._replace(sent_id="other")
    asked = [["Snow", "_"], ["Rain"], list(TREES[0].words), ["Snow", "_"]]
    assert match_trees(iter([*TREES, other]), asked) == [TREES[1], None, TREES[0], TREES[1]]


def test_depths_and_subtrees_by_hand() -> None:
    """Sold is the root, left hangs on it by way of what; subtrees are neither the whole nor `old man`."""
    assert measure_depths(HEADS).tolist() == [3, 2, 1, 2, 4, 4, 3, 2]
    assert measure_depths([]).tolist() == []
    assert find_subtrees(HEADS).tolist() == [[0, 1], [0, 2], [3, 7], [4, 5], [4, 7], [5, 6], [7, 8]]
    assert find_subtrees([-1]).shape == (0, 2)


@given(heads())
def test_subtrees_are_families_that_stand_together(up: list[int]) -> None:
    """The spans are those of a recursion over children; each is sorted, once, and closed under descendants."""
    families = [sorted(family(up, word)) for word in range(len(up))]
    together = [(each[0], each[-1] + 1) for each in families if each == [*range(each[0], each[-1] + 1)]]
    found = list(map(tuple, find_subtrees(up).tolist()))
    assert found == sorted(set(together) - {(0, len(up))})
    for start, end in found:
        assert all(start <= word < end for word, head in enumerate(up) if start <= head < end)


@given(heads(), st.data())
def test_what_is_left_hangs_as_it_did(up: list[int], data: st.DataObject) -> None:
    """Without a subtree, if there is one, each word that stays has the head that it had."""
    start, end = data.draw(st.sampled_from(find_subtrees(up).tolist() or [[0, 0]]))
    stays = [word for word in range(len(up)) if not start <= word < end]
    left = drop_words(up, [word in stays for word in range(len(up))])
    assert [stays[head] if head >= 0 else -1 for head in left] == [up[word] for word in stays]


# stanza, which has no models here: its own document, made by hand


class Pretended:
    """Stanza's pipeline, by which each word hangs on the one before."""

    calls: list[int]

    def __init__(self, language: str, **options: Any) -> None:
        wanted = {"tokenize_pretokenized": True, "download_method": None, "use_gpu": False}
        assert options.items() >= wanted.items()
        self.processors = dict.fromkeys(options["processors"].split(",") if language == "en" else ["tokenize"])
        Pretended.calls = []

    def __call__(self, sentences: list[list[str]]) -> Any:
        from stanza.models.common.doc import Document

        self.calls.append(len(sentences))
        return Document([
            [{"id": (i,), "text": word, "upos": "X", "head": i - 1, "deprel": "dep" if i > 1 else "root"} for i, word
             in enumerate(words, 1)] for words in sentences
        ])  # fmt: skip


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that passes for one of stanza's models."""
    (tmp_path / "resources.json").write_text("{}")
    monkeypatch.setattr("stanza.Pipeline", Pretended)
    return tmp_path


def test_stanza_gives_trees_of_our_words(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words stay whole, even with a blank; heads count from 0; sentences go in chunks, and come as they are taken."""
    monkeypatch.setattr(trees, "CHUNK", 2)
    found = load_parser(models, "en")(words for words in [["New York", "."], ["no"], ["!"]])
    assert Pretended.calls == []
    assert next(found) == Tree(("New York", "."), (-1, 0), ("X", "X"), ("", ""), ("", ""))
    assert Pretended.calls == [2]
    assert [tree.words for tree in found] == [("no",), ("!",)]
    assert Pretended.calls == [2, 1]


@pytest.mark.parametrize(
    "load",
    [lambda folder: load_parser(folder, "en"), load_stanza, lambda folder: load_tokenizer("stanza", folder.parent)],
)
def test_stanza_without_models_is_missing(tmp_path: Path, load: Callable[[Path], object]) -> None:
    """No list of models, or a list without its models: the error says how to get them; nothing is downloaded."""
    folder = tmp_path / "stanza"
    with pytest.raises(Missing, match=r"has no models.*stanza\.download\('en'"):
        load(folder)
    folder.mkdir()
    (folder / "resources.json").write_text('{"en": {"lang_name": "English"}}')
    with pytest.raises(Missing, match=r"not complete.*stanza\.download"):
        load(folder)


def test_the_english_treebank(data: Path) -> None:
    """UD English EWT's test part has 2,077 sentences of 25,094 words; of 2,051 all words have a span, and 984
    words have Tense=Past (by awk).
    """
    found = list(read(data / "ud_english_ewt" / "en_ewt-ud-test.conllu"))
    assert (len(found), sum(len(tree.words) for tree in found)) == (2077, 25094)
    assert sum(len(find_subtrees(tree.heads)) == len(tree.heads) - 1 for tree in found) == 2051
    assert all(tree.sent_id and tree.text for tree in found)
    assert len({tree.sent_id for tree in found}) == 2077
    assert sum("Tense=Past" in each for tree in found for each in tree.features) == 984
    assert [found[7]] == match_trees(found, [found[7].words])
