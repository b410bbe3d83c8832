"""Document frequencies: those of a dictionary, whatever the batches, and hashes that distinguish tokens."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.metrics.overlap.frequencies import build_idf, count_documents, hash_ngrams, hash_tokens
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, seeds
from tests.support.oracles.plain_cider import count_plainly


def hash_gram(*gram: str) -> int:
    """Hash an n-gram, read as a text of its own."""
    (batch,) = read_batches([gram], [[[]]])
    *_, (hashes, _) = hash_ngrams(batch.words, batch.ends, batch.types, len(gram))
    return int(hashes[0])


@settings(max_examples=20)
@given(seeds, st.integers(1, 12))
def test_frequencies_are_exact(seed: int, size: int) -> None:
    """Counts are those of a dictionary, of n-grams in two documents or more, whatever the batch."""
    references = draw_case(seed, 20).references
    actual = count_documents(lambda: iter(references), 3, size=size)
    expected = {hash_gram(*gram): count for gram, count in count_plainly(references, 3).items() if count > 1}
    assert actual.documents == 20
    assert dict(zip(actual.hashes.tolist(), actual.counts.tolist(), strict=True)) == expected
    assert (np.diff(actual.hashes.astype(object)) > 0).all()
    assert actual.digest() == count_documents(references, 3).digest()


def test_by_hand() -> None:
    """A word twice in one document counts once; idf is log 3 less the log of documents, log 3 for words never seen."""
    actual = count_documents([[["雪", "雪"], ["雪"]], [["雪"], ["雨"]], [["雨", "风"]]], 1)
    assert actual.documents == 3
    assert actual.hashes.tolist() == sorted([hash_gram("雪"), hash_gram("雨")])
    assert actual.counts.tolist() == [2, 2]
    hashes = np.array([hash_gram(word) for word in ("雪", "风", "云")], np.uint64)
    assert build_idf(actual)(hashes).tolist() == pytest.approx([np.log(3 / 2), np.log(3), np.log(3)])


def test_tokens_have_distinct_hashes() -> None:
    """All strings of up to four of six letters, one of which is zero, and lone surrogates differ."""
    tokens = ["".join(letters) for n in range(5) for letters in product("ab\0雪\ud800😀", repeat=n)]
    hashes = hash_tokens(tokens)
    assert len(set(hashes.tolist())) == len(tokens)
    assert hash_tokens(tokens[::-1]).tolist() == hashes.tolist()[::-1]
    assert hash_tokens([]).tolist() == []
    assert hash_gram("雪") == 298902145239085256  # another value would change every signature


def test_what_cannot_be_counted_is_an_error() -> None:
    """No documents, a document without references."""
    with pytest.raises(BadInput, match="at least one document"):
        count_documents([])
    with pytest.raises(BadInput, match="row 2, references"):
        count_documents([[["a"]], []])


def test_a_stream_is_read_once() -> None:
    """A stream that cannot be read twice gives what a list gives."""
    references = draw_case(7, 60).references
    assert count_documents(iter(references), size=2).digest() == count_documents(references).digest()
