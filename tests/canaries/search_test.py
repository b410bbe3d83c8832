"""The search for secrets finds each form in each place it looks into, and tells nothing of the secret."""

import base64
import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import warehouse
from pipeline.text.redact import mask_secrets
from tests.support.rows.filled import DAY, filled
from tests.support.search import find

CANARY = 'kanarienvogel/+="0042'


FORMS = [CANARY, quote(CANARY), quote(CANARY, safe=""), json.dumps({"key": CANARY}), CANARY.encode().hex()]
FORMS += [base64.b64encode(f"{'x' * n}{CANARY}yz".encode()).decode() for n in range(4)]


@pytest.mark.parametrize("form", FORMS)
def test_forms_in_files(tmp_path: Path, form: str) -> None:
    """A secret is found plain, percent-encoded, escaped, hexadecimal and anywhere inside base64; the place is named."""
    path = tmp_path / "task.log"
    path.write_text(f"said {form} again", encoding="utf-8")
    places = find({"llm": CANARY}, [tmp_path])
    assert {(place.secret, place.location) for place in places} == {("llm", str(path))}
    assert CANARY not in str(places)
    assert not find({"llm": "another-canary-0815"}, [tmp_path])
    assert CANARY not in mask_secrets(form, [CANARY])
    path.write_text(f"said {mask_secrets(form, [CANARY])} again", encoding="utf-8")
    assert not find({"llm": CANARY}, [tmp_path])


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    """Parquet's values and metadata, gzip, zip, names of files, and the rows of a database."""
    table = pa.table({"text": [CANARY * 3] * 50})
    pq.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"x": CANARY}), tmp_path / "meta.parquet")
    (tmp_path / "log.gz").write_bytes(gzip.compress(CANARY.encode()))
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("sheet.xml", CANARY * 9)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("create table xcom (value)")
        connection.execute("insert into xcom values (?)", [f'{{"key": {json.dumps(CANARY)}}}'])
    places = find({"c": CANARY}, [tmp_path], [f"sqlite:///{tmp_path}/x.db"])
    locations = {place.location.removeprefix(f"{tmp_path}/") for place in places}
    in_files = {"rows.parquet, column text", "meta.parquet, metadata", "log.gz, unpacked", "a.xlsx, sheet.xml"}
    assert locations >= in_files | {"x.db", "database 0, xcom.value"}


def test_manifests_are_read(tables: Path) -> None:
    """A value in the bounds of an Iceberg manifest is found there; what stands by chance is no canary."""
    frame = filled("comments", {"text": "a"}).with_columns(origin=pl.lit("kanarienvogel-0"))
    warehouse.overwrite("comments", warehouse.make_slice(source="weibo", day=DAY), frame)
    places = find({"c": "kanarienvogel-0"}, [tables / "warehouse"])
    for end in (".avro, a record", ".parquet, column origin"):
        assert any(place.location.endswith(end) for place in places)
    with pytest.raises(ValueError, match="at least 12"):
        find({"c": "secret"}, [])


@settings(max_examples=40)
@given(st.text(min_size=12), st.text(), st.text())
def test_masking_leaves_no_form(secret: str, before: str, after: str) -> None:
    """A masked text holds its secret in none of the forms that it may be written in."""
    masked = mask_secrets(f"{before}{secret}{after}", [secret])
    assert secret not in masked or set(secret) <= {"*"}
