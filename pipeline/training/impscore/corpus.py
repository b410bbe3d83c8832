"""What ImpScore is fitted on, as row numbers of distinct texts: triples of pairs, and graded groups."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import torch
from torch import Tensor

SIDES = ("implicit", "explicit", "negative")
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct texts, and what refers to them by row."""

    texts: list[str]
    pairs: pl.DataFrame  # rows of `pairs`
    triples: Tensor  # [pairs, 3]: rows of implicit, explicit, negative
    groups: pl.DataFrame  # group, level, text, split
    graded: Tensor  # [sentences of groups]: their rows

    def select_triples(self, split: str) -> Tensor:
        """Triples of a split: [n, 3]."""
        return self.triples[torch.from_numpy((self.pairs["split"] == split).to_numpy())]

    def select_groups(self, split: str) -> list[Tensor]:
        """Rows of each group of a split, from its most explicit sentence to its most implicit."""
        numbered = self.groups.with_columns(row=pl.Series(self.graded.numpy())).filter(pl.col("split") == split)
        parts = numbered.sort("group", "level").partition_by("group", maintain_order=True)
        return [torch.from_numpy(part["row"].to_numpy().copy()) for part in parts]

    def replace_train(self, train: pl.DataFrame) -> "Corpus":
        """The same with another training part, whose sentences are among the texts."""
        pairs = pl.concat([train, self.pairs.filter(pl.col("split") != "train")])
        row_of = {text: row for row, text in enumerate(self.texts)}
        rows = [[row_of[text] for text in texts] for texts in pairs.select(SIDES).iter_rows()]
        return replace(self, pairs=pairs, triples=torch.tensor(rows, dtype=torch.int64).reshape(-1, len(SIDES)))


def make_corpus(pairs: pl.DataFrame, groups: pl.DataFrame | None = None) -> Corpus:
    """Number the distinct texts of pairs and groups.

    Args:
        pairs: rows of the table `pairs`.
        groups: group, level, text, split; none if there are no groups to learn from.
    """
    if groups is None:
        groups = pl.DataFrame(schema={"group": pl.String, "level": pl.Int64, "text": pl.String, "split": pl.String})
    texts = [*(pairs[side] for side in SIDES), groups["text"]]
    distinct, rows = np.unique(
        pl.concat([t.rename("text") for t in texts]).to_numpy().astype(object), return_inverse=True
    )
    triples = torch.from_numpy(rows[: 3 * pairs.height].reshape(3, -1).T.copy())
    return Corpus([str(t) for t in distinct], pairs, triples, groups, torch.from_numpy(rows[3 * pairs.height :].copy()))
