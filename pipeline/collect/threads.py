"""Comments of a thread: their duplicates, the roots of their answers, and their context.

Duplicates are the same comment met twice, the same words, or nearly the same words in one place.
An answered comment always stays. Under eight characters copies are equal texts; under a hundred, numbers count.
"""

from functools import lru_cache

import numpy as np
import polars as pl

from pipeline.errors import BadInput

THRESHOLD = 0.8  # Jaccard similarity of character trigrams
SHORTEST = 8  # characters
NUMBERED = 100  # characters of a text that other numbers make another text
PERMUTATIONS = 64
CANDIDATES = 100  # compared with one text; a flood of look-alikes would else cost its square
_SEED = 20261120
_BLOCK = 1_500_000  # characters whose trigrams are in memory at a time
_SLOTS = 22  # bits of a trigram's place in a table of counts
_SAME = ["thread_id", "comment_id"]
_NUMBERS = pl.when(pl.col("text").str.len_chars() < NUMBERED).then(
    pl.col("text").str.extract_all(r"\d+").list.join(" ")
)
_PLACE = pl.concat_str("thread_id", pl.col("parent_id").fill_null(""), _NUMBERS.fill_null(""), separator="\n")


def deduplicate(
    comments: pl.DataFrame, threshold: float = THRESHOLD, *, keep_copies: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Comments without copies (`duplicate_count`, `like_count` raised on those kept), and dropped (reason, row_key).

    Takes whole threads, in reading order, and the least Jaccard similarity of two near-duplicates. With `keep_copies`
    only a comment met twice, by its id, is dropped.
    """
    columns = [*_SAME, "parent_id", "text", "like_count", "is_hot"]  # all others are taken by row, at the end
    rows = comments.select(columns).with_row_index("_row")
    distinct = rows.group_by(_SAME, maintain_order=True).agg(
        pl.first("_row", "parent_id", "text"), pl.max("like_count"), pl.col("is_hot").any()
    )
    repeated = _list_dropped(comments, rows.join(distinct, on="_row", how="anti"), pl.lit("same_comment"))
    if keep_copies:
        return _take(comments, distinct.with_columns(duplicate_count=pl.lit(0, pl.Int64))), repeated
    parents = distinct.select("thread_id", comment_id="parent_id").drop_nulls().unique()
    distinct = distinct.join(parents.with_columns(_answered=True), on=_SAME, how="left", maintain_order="left")
    words = pl.col("text").str.to_lowercase().str.replace_all(r"\s+", "")
    leader = pl.col("_row").sort_by(pl.col("_answered").fill_null(value=False), descending=True, maintain_order=True)
    exact = distinct.with_columns(_of=leader.first().over("thread_id", "parent_id", words))
    near = _find_near(exact.filter((pl.col("_of") == pl.col("_row")) | pl.col("_answered")), threshold)
    is_near = pl.col("_row").is_in(list(near))
    exact = exact.drop("thread_id", "comment_id", "parent_id", "text").with_columns(
        _of=pl.when("_answered").then("_row").otherwise("_of").replace(near),
        _reason=pl.when(is_near).then(pl.lit("near_duplicate")).otherwise(pl.lit("exact_duplicate")),
    )
    is_copy = pl.col("_of") != pl.col("_row")
    counts = exact.group_by("_of").agg(duplicate_count=pl.len().cast(pl.Int64) - 1, _likes=pl.col("like_count").max())
    unique = exact.filter(~is_copy).join(counts, on="_of", how="left").with_columns(like_count="_likes").sort("_row")
    copies = _list_dropped(comments, exact.filter(is_copy), pl.col("_reason"))
    return _take(comments, unique), pl.concat([repeated, copies])


def _take(comments: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    return comments[rows["_row"]].with_columns(rows["like_count"], rows["is_hot"], rows["duplicate_count"])


def _list_dropped(comments: pl.DataFrame, rows: pl.DataFrame, reason: pl.Expr) -> pl.DataFrame:
    return rows.with_columns(comments["row_key"].gather(rows["_row"]), reason=reason).select("reason", "row_key")


def _find_near(rows: pl.DataFrame, threshold: float) -> dict[int, int]:
    from rensa import RMinHash, RMinHashLSH

    long = rows.filter(pl.col("text").str.len_chars() >= SHORTEST).sort(
        pl.col("_answered").fill_null(value=False), "_row", descending=[True, False]
    )
    long = long.filter(_may_resemble(long, threshold))
    if long.height < 2:
        return {}
    texts = long.select(_PLACE.alias("_place"), "text")
    grams = (_trigrams(*row) for row in texts.iter_rows())  # of one text at a time: those of all fill the memory
    index = RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=PERMUTATIONS // 4)
    matrix = RMinHash.digest_matrix_from_token_sets(grams, num_perm=PERMUTATIONS, seed=_SEED)
    suspects = [i for i, flag in enumerate(index.query_duplicate_flags_matrix_one_shot(matrix)) if flag]
    kinds = {i: set(_trigrams(*texts.row(i))) for i in suspects}
    sketches = RMinHash.from_token_sets(kinds.values(), num_perm=PERMUTATIONS, seed=_SEED)
    ids, answered = long["_row"].to_list(), long["_answered"].to_list()
    copies: dict[int, int] = {}
    for i, sketch in zip(suspects, sketches, strict=True):
        candidates = sorted(index.query(sketch))[:CANDIDATES]
        shared = ((j, len(kinds[i] & kinds[j])) for j in candidates)
        alike = (j for j, count in shared if count >= threshold * (len(kinds[i]) + len(kinds[j]) - count))
        original = None if answered[i] else next(alike, None)
        if original is not None:
            copies[ids[i]] = ids[original]
        elif len(candidates) < CANDIDATES:  # else its like are there already, and each query would list them all
            index.insert(i, sketch)
    return copies


def _may_resemble(rows: pl.DataFrame, threshold: float) -> np.ndarray:
    """Test if enough of a text's trigrams, by their hash, are also elsewhere in its place for any to be as similar."""
    places = rows.select(_PLACE.hash(seed=_SEED)).to_series().to_numpy()
    texts = [text.lower() for text in rows["text"].to_list()]
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    cuts = np.flatnonzero(np.diff(lengths.cumsum() // _BLOCK, prepend=0, append=-1))
    blocks = [*zip([0, *cuts], cuts, strict=False)]

    @lru_cache(maxsize=1)  # the only block of a small bucket is hashed once, many are hashed twice
    def hash_block(start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Slot of each trigram, and the row of its text within the block."""
        letters = np.frombuffer("".join(texts[start:end]).encode("utf-32-le"), np.uint32).astype(np.uint64)
        row = np.repeat(np.arange(end - start), lengths[start:end])
        is_inside = row[:-2] == row[2:]
        row = row[:-2][is_inside]
        keys = ((letters[:-2] << 42) ^ (letters[1:-1] << 21) ^ letters[2:])[is_inside] ^ places[start:end][row]
        return (keys * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - _SLOTS)).astype(np.int64), row

    counts = np.zeros(1 << _SLOTS, np.uint32)
    for block in blocks:
        np.add.at(counts, hash_block(*block)[0], np.uint32(1))  # another type takes 20 times as long
    alone = np.zeros(len(texts))  # trigrams of a text that no other has
    for start, end in blocks:
        slots, row = hash_block(start, end)
        alone[start:end] = np.bincount(row, counts[slots] == 1, end - start)
    return alone <= (1 - threshold) * (lengths - 2) + 1e-6  # for what floats lose


def _trigrams(thread: str, text: str) -> list[str]:
    """Character trigrams, each bound to its thread so that only texts of one thread resemble each other."""
    text = text.lower()
    return sorted({f"{thread}\t{text[k : k + 3]}" for k in range(len(text) - 2)})


_ROUNDS = 64  # ways of 2**64 answers


def add_context(comments: pl.DataFrame, articles: pl.DataFrame, parents: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add context_id and context: the comment of `parents`, else what the site gave, else title and text."""
    answered = comments if parents is None else parents.unique(["thread_id", "comment_id"], keep="first")
    parents = answered.select("thread_id", parent_id="comment_id", _parent="text")
    article = pl.concat_str("title", "text", separator=" ", ignore_nulls=True).str.strip_chars()
    titles = articles.select("thread_id", _article=article)
    rows = comments.join(parents, on=["thread_id", "parent_id"], how="left", maintain_order="left")
    rows = rows.join(titles, on="thread_id", how="left", maintain_order="left")
    context = pl.coalesce("_parent", "context", pl.when(pl.col("parent_id").is_null()).then("_article"))
    rows = rows.with_columns(context_id=pl.coalesce("parent_id", "thread_id"), context=context)
    return rows.drop("_parent", "_article")


def add_roots(comments: pl.DataFrame) -> pl.DataFrame:
    """Replace root_id by the comment at the top of the branch, as far as it is among the comments."""
    for _ in range(_ROUNDS):
        above = comments.select("thread_id", root_id="comment_id", _root="root_id")
        joined = comments.join(above, on=["thread_id", "root_id"], how="left", maintain_order="left")
        roots = joined.select(root_id=pl.coalesce("_root", "root_id")).to_series()
        if roots.equals(comments["root_id"]):
            break
        comments = comments.with_columns(roots)
    return comments


def refuse_circles(comments: pl.DataFrame) -> None:
    """Raise BadInput, with the file and the rows, if a comment is, through its parents, its own ancestor."""
    answers = comments.filter(pl.col("parent_id") != "").select("thread_id", "comment_id", "parent_id", "row_key")
    up = {(thread, comment): ((thread, parent), row_key) for thread, comment, parent, row_key in answers.iter_rows()}
    checked: set[tuple[str, str]] = set()
    for start in up:
        path: dict[tuple[str, str], None] = {}
        comment = start
        while comment in up and comment not in checked:
            if comment in path:
                circle = list(path)[list(path).index(comment) :]
                keys = [up[answer][1] for answer in circle[:5]]
                names = [
                    f"{file}, row {number}" if file and number[:1].isdigit() else f"{file}{dash}{number}"
                    for file, dash, number in (key.rpartition("-") for key in keys)
                ]
                places = [f"{answer!r} ({name})" for (_, answer), name in zip(circle, names, strict=False)]
                more = f" and {len(circle) - 5} more" if len(circle) > 5 else ""
                expected = "each parent_id to lead to a comment that answers none; correct parent_id in these rows"
                problem = f"{', '.join(places)}{more} answer each other in a circle"
                raise BadInput(f"thread {comment[0]!r}: {problem}; expected {expected}")
            path[comment] = None
            comment = up[comment][0]
        checked.update(path)
