"""An S3-compatible store on loopback (moto)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def running_store() -> Iterator[tuple[str, int]]:
    """A running store; its host and port."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        yield server.get_host_and_port()
    finally:
        server.stop()


def store_settings(url: str, warehouse: str, **keys: str) -> dict[str, str]:
    """Environment variables for a warehouse in the store."""
    return {
        **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test"),
        **dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1"),
        **dict.fromkeys(("AWS_ALLOW_HTTP", "AWS_EC2_METADATA_DISABLED"), "true"), "AWS_ENDPOINT_URL": url,
        "UNDERTONE_WAREHOUSE": warehouse, **keys,
    }  # fmt: skip


@contextmanager
def bucket(settings: Mapping[str, str]) -> Iterator[Any]:
    """A client of the store, with these settings in force and the bucket of the warehouse made."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        client = pytest.importorskip("boto3").client("s3")
        client.create_bucket(Bucket=settings["UNDERTONE_WAREHOUSE"].split("/")[2])
        yield client
        client.close()
