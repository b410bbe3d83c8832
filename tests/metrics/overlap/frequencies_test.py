"""Document frequencies: those of a dictionary, whatever the batches, and hashes that distinguish tokens."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.metrics.overlap.cider import count_documents, hash_ngrams, hash_tokens
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, seeds
from tests.support.oracles.plain_cider import count_plainly


def hash_gram(*gram: str) -> int:
    (batch,) = read_batches([gram], [[[]]])
    *_, (hashes, _) = hash_ngrams(batch.words, batch.ends, batch.types, len(gram))
    return int(hashes[0])


@settings(max_examples=8)
@given(seeds, st.integers(1, 12))
def test_frequencies_are_exact(seed: int, size: int) -> None:
    """Counts are those of a dictionary, of n-grams in two documents or more, whatever the batch; a stream is enough."""
    references = draw_case(seed, 20).references
    actual = count_documents(lambda: iter(references), 3, size=size)
    expected = {hash_gram(*gram): count for gram, count in count_plainly(references, 3).items() if count > 1}
    assert actual.documents == 20
    assert dict(zip(actual.hashes.tolist(), actual.counts.tolist(), strict=True)) == expected
    assert (np.diff(actual.hashes.astype(object)) > 0).all()
    assert actual.digest() == count_documents(iter(references), 3).digest()


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
