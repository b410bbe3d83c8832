"""Trees of answers."""

import polars as pl

from pipeline.collect.threads import add_roots


def test_the_root_is_the_top_of_the_branch() -> None:
    """A file that names only parents gets the comment at the top of each branch; one that is absent stays as it is."""
    parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d", "x": "absent", "y": "x"}
    comments = pl.DataFrame({"thread_id": "t", "comment_id": list(parents), "root_id": list(parents.values())})
    other = pl.DataFrame({"thread_id": "u", "comment_id": ["b"], "root_id": ["a"]})
    roots = add_roots(pl.concat([comments, other]))["root_id"].to_list()
    assert roots == [None, "a", "a", "a", "a", "absent", "absent", "a"]


def test_roots_in_a_circle_end() -> None:
    """Roots that a hostile file writes in a circle are followed a bounded number of times."""
    comments = pl.DataFrame({"thread_id": "t", "comment_id": ["a", "b", "c"], "root_id": ["b", "c", "a"]})
    assert add_roots(comments).height == 3
