"""Our own client and worker at a real server that has no room: they come again, nothing is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw
from tests.api.house import House, own_house
from tests.api.test_body_room import MB, PART, ROOM, full, half_sent
from tests.postgres import Server

from fairway.core.errors import LimitReached
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.client import Client
from fairway.sdk.http.settings import ClientSettings
from fairway.wire.messages import JobRequest
from fairway.worker.keeper import Keeper
from fairway.worker.options import WorkerOptions

PATIENCE_SECONDS = 40.0  # for a busy machine


@pytest.fixture(scope="module")
def narrow(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    storage = f"file://{tmp_path_factory.mktemp('objects')}"
    with own_house(
        postgres_server, "no_room_tests", storage_url=storage, body_room_bytes_max=ROOM
    ) as house:
        yield house


def refused(house: House, kind: str, reason: str) -> float:
    find = house.platform.metrics.registry.get_sample_value
    return find("fairway_bodies_refused_total", {"kind": kind, "reason": reason}) or 0.0


async def until_refused(house: House, kind: str, reason: str, count: float) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while refused(house, kind, reason) < count:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.02)


@asynccontextmanager
async def client_of(
    house: House, key: str, patience_seconds: float = PATIENCE_SECONDS
) -> AsyncIterator[Client]:
    settings = ClientSettings(url=house.url, api_key=key)
    client = Client(settings, patience_seconds=patience_seconds)
    try:
        yield client
    finally:
        await client.aclose()


def submission(size_bytes: int, job_type: str = "t") -> Submission:
    payload = json.dumps({"text": "x" * size_bytes}).encode()
    return Submission(None, JobRequest(type=job_type, payload=Raw(payload)), None)  # type: ignore[arg-type]  # the client does not look at the job type


async def test_a_client_whose_part_is_full_comes_again(narrow: House) -> None:
    _, key = narrow.new_tenant()
    before = refused(narrow, "requests", "own part")
    async with client_of(narrow, key) as client:
        with half_sent(narrow, PART - MB, key):
            sent = asyncio.create_task(client.submit(submission(2 * MB)))
            await until_refused(narrow, "requests", "own part", before + 1)
            assert not sent.done()
        assert (await sent)[0]


async def test_a_client_that_finds_no_room_comes_again(narrow: House) -> None:
    _, key = narrow.new_tenant()
    before = refused(narrow, "requests", "all")
    async with client_of(narrow, key) as client:
        with full(narrow):
            sent = asyncio.create_task(client.submit(submission(2 * MB)))
            await until_refused(narrow, "requests", "all", before + 1)
            assert not sent.done()
        assert (await sent)[0]


async def test_a_client_without_patience_hears_why(narrow: House) -> None:
    _, key = narrow.new_tenant()
    async with client_of(narrow, key, patience_seconds=1.0) as client:
        with half_sent(narrow, PART - MB, key), pytest.raises(LimitReached) as told:
            await client.submit(submission(2 * MB))
    assert told.value.code == "TOO_MANY_BYTES"


@asynccontextmanager
async def working(house: House, key: str) -> AsyncIterator[asyncio.Task[None]]:
    options = WorkerOptions(
        target="tests.acceptance.jobs:app", name="one", urls=[house.url], api_key=key,
        slots={"short": 2, "medium": 2},
    )  # fmt: skip
    life = asyncio.create_task(Keeper(options).run())
    try:
        yield life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def test_a_worker_whose_report_finds_no_room_says_it_again(narrow: House) -> None:
    """Meanwhile small reports of its are heard; nothing is run a second time."""
    key = narrow.new_key({"scope": "worker"})
    before = refused(narrow, "shared_workers", "all")
    async with (
        narrow.caller(narrow.new_tenant()[1]) as tenant,
        working(narrow, key) as life,
    ):

        async def ends(location: str) -> dict[str, object]:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    assert not life.done()
                    view: dict[str, object] = (await tenant.get(location)).json()
                    if view["state"] not in ("queued", "running", "leased"):
                        return view
                    await asyncio.sleep(0.1)

        async def submit(job: dict[str, object]) -> str:
            reply = await tenant.post("/v1/jobs", json=job)
            assert reply.status_code == 202, reply.text
            return str(reply.headers["location"])

        with half_sent(narrow, ROOM // 4 - 2 * MB, key, "/v1/workers/other/exchange"):
            text = {"text": "x" * 3 * MB}
            large = await submit({"type": "echo", "pool": "medium", "payload": text})
            await until_refused(narrow, "shared_workers", "all", before + 2)
            small = await submit({"type": "echo", "pool": "medium", "payload": {"text": "x"}})
            assert (await ends(small))["state"] == "succeeded"
            assert (await tenant.get(large)).json()["state"] == "running"
        found = await ends(large)
        assert (found["state"], found["attempts"]) == ("succeeded", 1), found
