"""Uploads that go straight to a bucket: what lies there now counts; addresses end soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import boto3
import httpx2
import pytest
from moto.server import ThreadedMotoServer
from tests.api.house import NO_TLS, House, own_house, problem
from tests.postgres import Server

from fairway.services.object_storage.uploads import BUCKET_ADDRESS_SECONDS

BUCKET = "uploads"


@pytest.fixture(scope="module")
def house(postgres_server: Server) -> Iterator[House]:
    """With a bucket as its storage, at a server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test",
        aws_secret_access_key="test",
    ).create_bucket(Bucket=BUCKET)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_REGION", "us-east-1")
        storage = f"s3://{BUCKET}/fairway"
        with own_house(postgres_server, "bucket_tests", storage_url=storage) as house:
            yield house
    server.stop()


async def put(url: str, body: bytes) -> None:
    async with httpx2.AsyncClient(verify=NO_TLS, trust_env=False, timeout=60) as anybody:
        assert (await anybody.put(url, content=body)).is_success


@pytest.mark.parametrize("filler", [b"", b"x" * (9 << 20)], ids=["small", "large"])
async def test_another_object_of_the_same_size_is_looked_at_anew(
    house: House, filler: bytes
) -> None:
    """What was found was remembered by size: a mended object was refused again, and a spoilt one
    taken."""
    _, key = house.new_tenant()
    good, bad = b'{"x":"%b"}' % filler, b'{"x":"%b"]' % filler
    async with house.caller(key) as tenant:
        made = (await tenant.post("/v1/uploads")).json()
        job = {"type": "t", "payload_upload": made["id"]}
        for body in (bad, good, bad):
            await put(made["url"], body)
            reply = await tenant.post("/v1/jobs", json=job)
            if body == good:
                assert reply.status_code == 202, reply.text
            else:
                problem(reply, 400, "INVALID_JSON", "/payload_upload")


async def test_an_address_that_nobody_can_take_back_is_good_for_a_quarter_of_an_hour(
    house: House,
) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as tenant:
        made = (await tenant.post("/v1/uploads")).json()
    assert httpx2.URL(made["url"]).params["X-Amz-Expires"] == str(BUCKET_ADDRESS_SECONDS)
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert left < timedelta(minutes=15, seconds=5)
