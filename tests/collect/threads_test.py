"""Trees of answers."""

import polars as pl

from pipeline.collect.dedupe import add_roots


def test_the_root_is_the_top_of_the_branch() -> None:
    """The top of each branch is the root of a file that names parents alone; circles are followed a while."""
    parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d", "x": "absent", "y": "x"}
    comments = pl.DataFrame({"thread_id": "t", "comment_id": list(parents), "root_id": list(parents.values())})
    other = pl.DataFrame({"thread_id": "u", "comment_id": ["b"], "root_id": ["a"]})
    roots = add_roots(pl.concat([comments, other]))["root_id"].to_list()
    assert roots == [None, "a", "a", "a", "a", "absent", "absent", "a"]
    comments = pl.DataFrame({"thread_id": "t", "comment_id": ["a", "b", "c"], "root_id": ["b", "c", "a"]})
    assert add_roots(comments).height == 3
