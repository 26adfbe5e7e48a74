"""A bucket as object storage, against a server that speaks S3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from fairway.core.errors import Unavailable
from fairway.store.object_storage.storage import Objects

BUCKET = "objects"
NAME = "payloads/2026-01-31/7/job-1/payload"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
        aws_secret_access_key="test",
    ).create_bucket(Bucket=BUCKET)  # fmt: skip
    yield url
    server.stop()


def opened(endpoint: str, monkeypatch: pytest.MonkeyPatch, bucket: str) -> Objects:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    return Objects.untied(f"s3://{bucket}/fairway", Path("unused"))


async def test_the_life_of_an_object(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    objects = opened(endpoint, monkeypatch, BUCKET)
    await objects.put(NAME, pieces())
    assert (await objects.get(NAME), await objects.size(NAME)) == (b"onetwo", 6)
    assert b"".join([piece async for piece in objects.stream(NAME)]) == b"onetwo"
    copied = NAME.replace("job-1", "job-2")
    await objects.copy(NAME, copied)
    assert await objects.listing("payloads/2026-01-31") == [(NAME, 6), (copied, 6)]
    assert await objects.folders("payloads") == ["2026-01-31"]
    await objects.delete([NAME, copied])
    assert (await objects.get(NAME), await objects.size(NAME)) == (None, None)
    await objects.check()


async def test_a_bucket_that_is_not_there_is_away_not_empty(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable):
        await opened(endpoint, monkeypatch, "misspelt").check()
