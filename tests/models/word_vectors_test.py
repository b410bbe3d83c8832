"""Files of word vectors: read, refused with file and line; words without a vector."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import BadInput
from pipeline.models.word_vectors import find_rows, read

GLOVE = "的 0.1 0.2 -0.3\n天气 1 2 3\n. . . 4e-1 5 6\n，\u3000 7 8 9\n"


def file_of(folder: Path, text: str) -> Path:
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("header", ["", "4 3\n"], ids=["glove", "word2vec"])
def test_reads_glove_and_word2vec(tmp_path: Path, header: str) -> None:
    """With or without word2vec's first line; words may hold blanks, and wide blanks are no separators (CSD-28)."""
    vectors = read(file_of(tmp_path, header + GLOVE))
    assert vectors.words == ["的", "天气", ". . .", "，\u3000"]
    assert vectors.vectors.dtype == np.float32
    assert vectors.vectors == pytest.approx(np.array([[0.1, 0.2, -0.3], [1, 2, 3], [0.4, 5, 6], [7, 8, 9]]))


def test_only_some_words(tmp_path: Path) -> None:
    """Only the words asked for are kept, and the first ones of the file where that is asked for as well."""
    path = file_of(tmp_path, "a 1\nb 2\nc 3\nd 4\n")
    assert read(path, only={"c", "x"}).words == ["c"]
    assert read(path, only={"d"}, first=2).words == ["a", "b", "d"]
    assert read(path, only=set()).vectors.shape == (0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", r"line 2: expected a word and 2 numbers, found 'b 1"),
        ("a 1 2\nb 1 2 3\n", r"line 2: expected a word and 2 numbers, found 'b 1 2 3"),
        ("a 1 2\nb 1 x\n", r"line 2: the 2 fields after 'b' should be finite numbers"),
        ("a 1 2\nb 1 nan\n", r"line 2: the 2 fields after 'b'"),
        ("a 1 2\nb 1 inf\n", r"line 2: the 2 fields after 'b'"),
        ("2 2\na 1 2\n", r"expected 2 vectors, found 1; is the file complete"),
        ("2 3\na 1 2\nb 3 4\n", r"line 2: expected a word and 3 numbers"),
        ("word\n", r"line 1: expected a word and 1 numbers"),
        ("", r"expected some vectors, found 0"),
    ],
)
def test_what_is_no_file_of_vectors(tmp_path: Path, text: str, message: str) -> None:
    """A line of another width, what is no finite number, too few lines: BadInput with file and line."""
    with pytest.raises(BadInput, match=rf"vectors\.txt.*{message}"):
        read(file_of(tmp_path, text))


def test_words_without_a_vector() -> None:
    """A word has its own row; that of its lower case; else those of its characters that have one; else none."""
    place = {"天气": 0, "天": 4, "气": 5, "rain": 6}
    assert [find_rows(place, word) for word in ("天气", "气天", "Rain", "晴", "")] == [[0], [5, 4], [6], [], []]
    assert find_rows({"天": 4}, "天天晴") == [4, 4]
