"""Large payloads and results stand aside; small ones never leave their row."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from tests.api.house import NO_TLS, House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

BIG = {"text": "x" * 200_000}


async def stored(house: House, location: str, column: str) -> bytes:
    job = location.rpartition("/")[2]

    async def read(platform: Any) -> bytes:
        async with platform.database.background() as connection:
            found: bytes = await connection.fetchval(
                f"SELECT {column} FROM jobs WHERE id = $1", job
            )
            return found

    text: bytes = house.inside(read)
    return text


async def test_a_large_result_leaves_its_row(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    problem(await tenant.get(f"{location}/result"), 404, "NOT_FOUND")
    await worker.run(result=BIG)
    view = (await tenant.get(location)).json()
    assert (view["state"], view["result"]) == ("succeeded", None)
    assert view["result_bytes"] > 200_000
    assert len(await stored(house, location, "result")) < 400
    assert (await tenant.get(f"{location}/result")).json() == BIG


async def test_a_stranger_sees_neither(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type, payload=BIG)
    problem(await stranger.get(f"{location}/payload"), 404, "NOT_FOUND")
    problem(await stranger.get(f"{location}/result"), 404, "NOT_FOUND")


# -- uploads -----------------------------------------------------------------------------------


async def put(house: House, url: str, body: bytes) -> httpx2.Response:
    """As anybody who has the address: to this server, without a key."""
    path = url.partition("/v1/")[2]
    async with httpx2.AsyncClient(verify=NO_TLS) as anybody:
        return await anybody.put(f"{house.url}/v1/{path}", content=body)


async def test_a_payload_over_the_limit_goes_by_upload(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    huge = {"text": "y" * (9 << 20)}
    refused = await tenant.post("/v1/jobs", json={"type": worker.type, "payload": huge})
    problem(refused, 413, "PAYLOAD_TOO_LARGE")
    made = (await tenant.post("/v1/uploads")).json()
    assert (await put(house, made["url"], json.dumps(huge).encode())).status_code == 204
    accepted = await tenant.post(
        "/v1/jobs", json={"type": worker.type, "payload_upload": made["id"]}
    )
    assert accepted.status_code == 202, accepted.text
    found = await tenant.get(f"{accepted.headers['location']}/payload")
    assert found.json() == huge


async def test_the_last_room_on_the_disk_is_not_for_uploads(
    house: House, tenant: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, made = house.platform.admission.disk_reserve, (await tenant.post("/v1/uploads")).json()
    monkeypatch.setattr(room, "_folder", None)  # nobody looks at the real one meanwhile
    monkeypatch.setattr(room, "_is_low", True)
    problem(await tenant.post("/v1/uploads"), 503, "DISK_FULL")
    problem(await put(house, made["url"], b"{}"), 503, "DISK_FULL")
    monkeypatch.setattr(room, "_is_low", False)
    assert (await put(house, made["url"], b"{}")).status_code == 204


async def test_an_upload_is_its_tenants_alone(
    house: House, tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    await put(house, made["url"], b"{}")
    theirs = await stranger.post("/v1/jobs", json={"type": "x", "payload_upload": made["id"]})
    problem(theirs, 404, "NOT_FOUND", "/payload_upload")


@pytest.mark.parametrize(
    "change", [("expires=", "expires=9"), ("tenant=", "tenant=9"), ("re=", "re=0")]
)
async def test_an_address_that_was_changed_is_refused(
    house: House, tenant: httpx2.AsyncClient, change: tuple[str, str]
) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    problem(await put(house, made["url"].replace(*change), b"{}"), 403, "FORBIDDEN")


@pytest.mark.parametrize("upload", ["", "nothing", "../../etc", "2026-01-31." + "0" * 31])
async def test_what_is_no_upload(tenant: httpx2.AsyncClient, upload: str) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "x", "payload_upload": upload})
    problem(reply, 422, "INVALID_REQUEST", "/payload_upload")


async def test_nothing_uploaded_is_said(tenant: httpx2.AsyncClient) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    reply = await tenant.post("/v1/jobs", json={"type": "x", "payload_upload": made["id"]})
    problem(reply, 404, "NOT_FOUND", "/payload_upload")
