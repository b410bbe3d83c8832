"""Texts on a map: alike ones near each other, the same again, and any number of them."""

import numpy as np
import pytest

from pipeline.models.encoder import load
from pipeline.score import projection


def test_texts_that_are_alike_lie_near_each_other() -> None:
    """The nearest of a text is of its subject; a second run gives the same places."""
    texts = [f"{name} likes cold fish" for name in ("a cat", "my old cat", "our kitten", "the tomcat", "her black cat")]
    texts += [f"the train to {city} is late" for city in ("Paris", "Rome", "Oslo", "Bern", "Kyoto")]
    places = projection.place(texts, load())
    distances = np.linalg.norm(places[:, None] - places, axis=-1) + np.diag([np.inf] * 10)
    assert [int(nearest) // 5 for nearest in distances.argmin(1)] == [0] * 5 + [1] * 5
    assert (projection.place(texts, load()) == places).all()
    assert projection.sign(load()).startswith("projection|tsne|encoder:embedded@")


@pytest.mark.parametrize("texts", [[], ["one"], list("abcd"), list("ԱԲԳԴԵԶԷ")])
def test_few_or_unknown_texts_have_places(texts: list[str]) -> None:
    """Too few texts, or those of which the encoder knows nothing, are all in the middle."""
    assert (projection.place(texts, load("characters")) == np.zeros((len(texts), 2))).all()
