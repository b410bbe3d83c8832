"""The training data of ImpScore as row numbers of distinct texts: triples of pairs, and graded groups."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import torch
from torch import Tensor

SIDES = ("implicit", "explicit", "negative")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct texts, and pairs and groups that refer to them by row."""

    texts: list[str]
    pairs: pl.DataFrame  # rows of `pairs`
    triples: Tensor  # [pairs, 3]: rows of implicit, explicit, negative
    groups: pl.DataFrame  # group, level, text, split
    graded: Tensor  # [sentences of groups]: their rows

    def select_triples(self, split: str) -> Tensor:
        """Select the triples of a split: [n, 3]."""
        return self.triples[torch.from_numpy((self.pairs["split"] == split).to_numpy())]

    def select_groups(self, split: str) -> list[Tensor]:
        """Select the rows of each group of a split, from its most explicit sentence to its most implicit."""
        numbered = self.groups.with_columns(row=pl.Series(self.graded.numpy())).filter(split=split)
        rows_of_groups = numbered.sort("group", "level").group_by("group", maintain_order=True).agg("row")["row"]
        return [torch.from_numpy(rows.to_numpy().copy()) for rows in rows_of_groups]

    def replace_train(self, train: pl.DataFrame) -> "Corpus":
        """Return the corpus with another training part, whose sentences are among the texts."""
        pairs = pl.concat([train, self.pairs.filter(pl.col("split") != "train")])
        row_of = {text: row for row, text in enumerate(self.texts)}
        rows = [[row_of[text] for text in texts] for texts in pairs.select(SIDES).iter_rows()]
        return replace(self, pairs=pairs, triples=torch.tensor(rows, dtype=torch.int64).reshape(-1, len(SIDES)))


def make_corpus(pairs: pl.DataFrame, groups: pl.DataFrame | None = None) -> Corpus:
    """Number the distinct texts of rows of `pairs` and, if there are any, of groups: group, level, text, split."""
    if groups is None:
        groups = pl.DataFrame(schema={"group": pl.String, "level": pl.Int64, "text": pl.String, "split": pl.String})
    texts = pl.concat([pairs[side].rename("text") for side in SIDES] + [groups["text"]])
    distinct, rows = np.unique(texts.to_numpy().astype(object), return_inverse=True)
    triples, graded = rows[: 3 * pairs.height].reshape(3, -1).T, rows[3 * pairs.height :]
    texts_by_row = [str(text) for text in distinct]
    return Corpus(texts_by_row, pairs, torch.from_numpy(triples.copy()), groups, torch.from_numpy(graded.copy()))
