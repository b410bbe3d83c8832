"""The commenters: what they read and write, whatever they are batched with, and their arithmetic by hand."""

from typing import Any

import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models.commenting import commenters
from pipeline.models.commenting.commenters import BEGIN, END, SPECIAL, UNKNOWN, Commenter, Network, Shape
from pipeline.models.decoding import Decoding

WORDS = [*SPECIAL, *"雨又停了吗真好看呀", "the", "rain", "stops"]
TITLES = [["雨", "停"], ["the", "rain", "stops", "又", "停", "了"], [], ["快", "看"]]
CONTENTS = [["又", "停", "了", "吗"], None, ["好"], list("雨又停了吗真好")]
KINDS = [(unit, flag) for unit in ("lstm", "gru") for flag in (True, False)]


def make_config(**changes: Any) -> dict[str, Any]:
    sizes = {"title_words": 5, "content_words": 6, "comment_words": 4, "embedding": 6, "hidden": 5}
    kinds = {"kind": "commenter", "source": "title_and_content", "unit": "lstm", "has_attention": True}
    return {**sizes, **kinds, "words": WORDS, **changes}


def make_model(unit: Any = "lstm", has_attention: bool = True, **changes: Any) -> Commenter:
    """Make a commenter of large random weights, so that its probabilities are far apart."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = Network(len(WORDS), Shape(embedding=6, hidden=5, unit=unit, has_attention=has_attention))
    tensors = {name: value * 3 for name, value in network.state_dict().items()}
    return commenters.load(tensors, make_config(unit=unit, has_attention=has_attention, **changes))


def list_words(comments: list[list[commenters.Comment]]) -> list[list[list[str]]]:
    return [[comment.words for comment in row] for row in comments]


def test_what_is_read_of_an_article() -> None:
    """Title, </s> and the beginning of the content are read (AAC-21); a comment's words and end are learnt (AAC-22)."""
    word = {word: number for number, word in enumerate(WORDS)}
    both_parts, titles = make_model(), make_model(source="title")
    assert commenters.encode_article(titles, ["雨", "快"], ["好"]) == [word["雨"], UNKNOWN, END]
    assert commenters.encode_article(both_parts, ["雨"], ["好", "快"]) == [word["雨"], END, word["好"], UNKNOWN]
    assert commenters.encode_article(both_parts, [], None) == [END]
    assert commenters.encode_article(both_parts, ["雨"] * 9, ["又"] * 9) == [word["雨"]] * 5 + [END] + [word["又"]] * 6
    assert commenters.encode_article(both_parts, list(SPECIAL)) == [UNKNOWN] * 4 + [END]  # no marks of ours
    with pytest.raises(BadInput, match="lists of words; found a text"):
        commenters.encode_article(both_parts, "雨又停了")
    word = {word: number for number, word in enumerate(WORDS)}
    assert commenters.encode_comment(make_model(), ["真", "快"]) == [word["真"], UNKNOWN, END]
    assert commenters.encode_comment(make_model(), ["真"] * 4) == [word["真"]] * 4 + [END]
    assert commenters.encode_comment(make_model(), ["真"] * 5) == [word["真"]] * 4
    assert commenters.encode_comment(make_model(), []) == [END]


@pytest.mark.parametrize(("unit", "has_attention"), KINDS)
@pytest.mark.parametrize("method", ["beam", "sample"])
def test_batches_and_padding_change_nothing(unit: str, has_attention: bool, method: Any) -> None:
    """An article alone, with longer ones beside it, or in another batch, gets the same comments."""
    commenter = make_model(unit, has_attention)
    decoding = Decoding(method=method, beams=3, best=3, longest=7)
    expected = commenters.generate_candidates(commenter, TITLES, CONTENTS, decoding)
    for batch in (1, 3):
        comments = commenters.generate_candidates(commenter, TITLES, CONTENTS, decoding, batch)
        assert list_words(comments) == list_words(expected)
        probabilities, other = ([c.log_probability for row in rows for c in row] for rows in (comments, expected))
        assert probabilities == pytest.approx(other, abs=1e-4)
    later = commenters.generate_candidates(commenter, TITLES[2:], CONTENTS[2:], decoding, first=2)
    assert list_words(later) == list_words(expected)[2:]


@pytest.mark.parametrize(("unit", "has_attention"), KINDS)
def test_step_by_step_is_all_at_once(unit: str, has_attention: bool) -> None:
    """The log probability of decoding is that of the network reading the whole comment, as in training."""
    commenter = make_model(unit, has_attention)
    ((comment,),) = commenters.generate_candidates(commenter, TITLES[3:], CONTENTS[3:], Decoding(longest=7))
    source = commenters.pad_rows([commenters.encode_article(commenter, TITLES[3], CONTENTS[3]), [END] * 12])
    target = [WORDS.index(word) for word in comment.words] + ([END] if len(comment.words) < 7 else [])
    inputs = commenters.pad_rows([[BEGIN, *target[:-1]], [BEGIN] * 9])
    with torch.no_grad():
        logs = commenter.network.out(commenter.network(source, inputs)).log_softmax(2)
    expected = sum(float(logs[0, position, token]) for position, token in enumerate(target))
    assert comment.log_probability == pytest.approx(expected, abs=1e-4)


def test_additive_attention_by_hand() -> None:
    """Bahdanau et al. (2014), A.1.2: e = vᵀ tanh(W s + U h), weighed by softmax over the words there are."""
    network = make_model().network
    memory, (state, _, context) = network.read(commenters.pad_rows([[5, 6, END], [7]]))
    assert memory.lengths.tolist() == [3, 1]
    states = memory.states[0, :3]
    energies = network.weigh(torch.tanh(network.ask(state[0]) + states @ network.keys.weight.T))
    expected = (energies.softmax(dim=0) * memory.states[0]).sum(dim=0)
    assert torch.allclose(context[0], expected, atol=1e-5)
    assert torch.allclose(context[1], memory.states[1, 0], atol=1e-5)  # of one word all is attended to


def test_without_attention_the_first_state_is_all_that_is_known() -> None:
    """Articles differ in what is written, and the decoder's first state is made of both directions' final states."""
    network = make_model("lstm", has_attention=False).network
    short, long = [5, 6], [5, 6, 7, 8]
    memory, (state, cell) = network.read(commenters.pad_rows([short, long]))
    hidden = network.shape.hidden
    final = torch.cat([memory.states[0, 1, :hidden], memory.states[0, 0, hidden:]])
    assert torch.allclose(state[0], network.bridge(final)[:hidden].tanh(), atol=1e-6)
    assert torch.allclose(cell[0], network.bridge(final)[hidden:], atol=1e-6)
    assert not torch.allclose(state[0], state[1])


def test_input_that_does_not_fit() -> None:
    """A model of another kind is bad input; no article is no comment; contents need not be there for title readers."""
    with pytest.raises(BadInput, match="of kind 'reader', not 'commenter'"):
        commenters.load({}, make_config(kind="reader"))
    assert commenters.generate_candidates(make_model(), [], [], Decoding()) == []
    assert len(commenters.generate_candidates(make_model(source="title"), TITLES, [None] * 4, Decoding())) == 4
