"""Tasks with awkward texts, labels of them as rows and files, and sheets read back."""

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.label import label_files, schema

IDS = [f"{n:032x}" for n in range(1, 4)]
TEXTS = ["你可真准时，才迟到一小时", "=1+1", "Lovely weather\nfor ducks"]
FORMULAS = ["=1+1", "+1", "-1 分", "@SUM(A1)", "\t=1", "'=1", "''+1", '=HYPERLINK("http://x.invalid")', "\r=1"]


def tasks(texts: list[str] = TEXTS) -> pl.DataFrame:
    """Tasks with the given texts, as the table has them: with what ties them to their comments."""
    return pl.DataFrame(
        {
            "task_id": [f"{n:032x}" for n in range(1, len(texts) + 1)], "text": texts, "lang": "zh",
            "context": [None, *["开会"] * (len(texts) - 1)], "schema_version": schema.hash_schema(), "source": "weibo",
            "comment_id": "49731234567890", "thread_id": "88812345", "row_id": "abcdef0123456789", "user_id": "u1",
        },
        schema_overrides={"context": pl.String},
    )  # fmt: skip


def row(**given: Any) -> dict[str, Any]:
    return {"task_id": IDS[0], "rater_id": "r1", "field": "sarcasm", "value": "1", **given}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file of the kind its ending names."""
    if path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path, include_bom=True)
    elif path.suffix == ".xlsx":
        pl.DataFrame(rows).write_excel(path)
    elif path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def labels(*rows: dict[str, Any]) -> pl.DataFrame:
    return label_files.check_rows([(f"row {n}", r) for n, r in enumerate(rows)], tasks(), name="x")


def sheet(path: Path) -> list[dict[str, Any]]:
    """The first sheet's rows, as text."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    frame = pl.read_excel(path, infer_schema_length=0)
    return [{k: v or "" for k, v in r.items()} for r in frame.iter_rows(named=True)]
