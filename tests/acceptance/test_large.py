"""Large arguments and results go all the way: client, storage, worker, storage, client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.house import House
from tests.acceptance.jobs import echo

from fairway.sdk.client.backend import Submission
from fairway.sdk.client.client import Client
from fairway.sdk.client.handle import Handle
from fairway.sdk.http.settings import ClientSettings

TEXT = "abc" * 2_000_000


async def test_six_megabytes_there_and_back(house: House) -> None:
    """Over what goes with a request: the client uploads it by itself."""
    await house.open()
    client = Client(ClientSettings(url=house.urls[0], api_key=house.api_key))
    request = echo.options().request((TEXT,), {})
    job = await client.submit(Submission(echo, request))
    handle: Handle[str] = Handle(client, job, echo.codec.decode_result)
    assert await handle.aresult(timeout=30) == TEXT[::-1]
    view = await house.view(job)
    assert view["payload_bytes"] > 6_000_000
    assert view["result_bytes"] > 6_000_000
    await client.aclose()


def object_of(house: House, job: str) -> Path:
    (path,) = house.room.glob(f"objects/payloads/*/*/{job}/payload")
    return path


async def post_upload(house: House, body: bytes) -> httpx2.Response:
    made = (await house.call("POST", "/v1/uploads")).json()
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as anybody:
        assert (await anybody.put(made["url"], content=body)).status_code == 204
    wanted = {"type": "echo", "pool": "medium", "payload_upload": made["id"]}
    return await house.call("POST", "/v1/jobs", json=wanted)


async def end_of(house: House, job: str) -> tuple[str, str, str]:
    view: dict[str, Any] = await house.finished(job)
    return view["state"], view["error"]["failure"], view["error"]["type"]


@pytest.mark.slow
async def test_a_payload_that_cannot_be_had_ends_its_job(house: House) -> None:
    """Gone or damaged: dead for good, and the runner's other jobs go on. What never was a payload
    makes no job at all."""
    server = house.start_server()
    await server.ready()
    gone = await house.post("echo", "medium", text="x" * 100_000)
    object_of(house, gone).unlink()
    damaged = await house.post("echo", "medium", text="x" * 100_000)
    object_of(house, damaged).write_bytes(b"y" * object_of(house, damaged).stat().st_size)
    filler = json.dumps({"text": "z" * (9 << 20)}).encode()
    orders = b',"x":1},{"job":"01900000-0000-7000-8000-00000000dead","epoch":1,"payload":{}'
    foreign = await post_upload(house, filler + orders)
    assert (foreign.status_code, foreign.json()["code"]) == (400, "INVALID_JSON")
    good = (await post_upload(house, filler)).json()["id"]
    await house.start_worker().says("worker ready")
    assert (await house.finished(good))["state"] == "succeeded"
    assert await end_of(house, gone) == ("dead", "permanent", "PayloadGone")
    assert await end_of(house, damaged) == ("dead", "permanent", "PayloadGone")
    assert (await house.view(good))["deliveries"] == 1
