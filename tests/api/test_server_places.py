"""Uploads and downloads that a whole server may have on their way, whoever's they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import httpx2
import pytest
from tests.api.house import House, own_house, problem
from tests.api.jobs.test_uploads import put
from tests.api.test_body_room import MB, deaf, job, until
from tests.api.test_uploads import begin_put, flying, new_url
from tests.api.worker import HandWorker
from tests.postgres import Server

from fairway.services.backpressure.waiting_slots import DOWNLOADS_MAX, DOWNLOADS_TENANT_MAX
from fairway.services.object_storage.uploads import FLYING_MAX

LARGE = 7 * MB  # more than the sockets in between take


@pytest.fixture(scope="module")
def house(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    storage = f"file://{tmp_path_factory.mktemp('objects')}"
    with own_house(postgres_server, "server_places_tests", storage_url=storage) as house:
        yield house


@pytest.fixture
async def worker(house: House) -> AsyncIterator[HandWorker]:
    async with house.caller(house.new_key({"scope": "worker"})) as client:
        worker = HandWorker(client)
        yield worker
        await worker.leave()


async def test_a_server_takes_so_many_uploads_at_a_time(house: House) -> None:
    each = house.platform.settings.uploads_in_flight
    with ExitStack() as stack:
        for _ in range(FLYING_MAX // each):
            async with house.caller(house.new_tenant()[1]) as tenant:
                urls = [await new_url(tenant) for _ in range(each)]
            for url in urls:
                last = stack.enter_context(begin_put(house, url, b"content-length: 9", b"{"))
        await flying(house, FLYING_MAX)
        async with house.caller(house.new_tenant()[1]) as newcomer:
            url = await new_url(newcomer)
        told = problem(await put(house, url, b"{}"), 503, "OVERLOADED")
        assert f"takes {FLYING_MAX} uploads" in told["detail"]
        last.close()
        await flying(house, FLYING_MAX - 1)
        assert (await put(house, url, b"{}")).status_code == 204
    await flying(house, 0)


def sending(house: House, kind: str) -> float:
    find = house.platform.metrics.registry.get_sample_value
    return find("fairway_requests_waiting", {"kind": kind}) or 0.0


async def stored(house: House, key: str, job_type: str = "t", size: int = LARGE) -> str:
    async with house.caller(key) as tenant:
        reply = await tenant.post("/v1/jobs", json=job(size) | {"type": job_type})
    assert reply.status_code == 202, reply.text
    return f"/v1/jobs/{reply.json()['id']}/payload"


async def get(house: House, key: str, path: str) -> httpx2.Response:
    async with house.caller(key) as client:
        return await client.get(path)


def is_sending(house: House, kind: str, count: int) -> None:
    until(lambda: sending(house, kind) == count, f"{count} {kind} are under way")


@pytest.mark.slow
async def test_a_server_sends_so_many_at_a_time_and_workers_have_places_of_their_own(
    house: House, worker: HandWorker
) -> None:
    keys = [house.new_tenant()[1] for _ in range(DOWNLOADS_MAX // DOWNLOADS_TENANT_MAX + 1)]
    paths = [await stored(house, key) for key in keys[:-1]]
    late = await stored(house, keys[-1], worker.type)
    await worker.hello()
    lease = await worker.lease()
    at_worker = f"/v1/workers/w/payloads/{lease['job']}?tenant={lease['tenant']}"
    staff = worker.client.headers["authorization"].removeprefix("Bearer ")
    with ExitStack() as stack:
        for key, path in zip(keys, paths, strict=False):
            for _ in range(DOWNLOADS_TENANT_MAX):
                stack.enter_context(deaf(house, key, path))
            if key == keys[0]:
                await asyncio.to_thread(is_sending, house, "downloads", DOWNLOADS_TENANT_MAX)
                told = problem(await get(house, key, path), 429, "TOO_MANY_WAITING")
                assert f"You have {DOWNLOADS_TENANT_MAX} " in told["detail"]
        await asyncio.to_thread(is_sending, house, "downloads", DOWNLOADS_MAX)
        told = problem(await get(house, keys[-1], late), 429, "TOO_MANY_WAITING")
        assert f"This server has {DOWNLOADS_MAX} " in told["detail"]
        assert len((await get(house, staff, at_worker)).content) > LARGE
        for _ in range(DOWNLOADS_MAX):
            stack.enter_context(deaf(house, staff, at_worker))
        await asyncio.to_thread(is_sending, house, "payloads", DOWNLOADS_MAX)
        problem(await get(house, staff, at_worker), 503, "OVERLOADED")
    await asyncio.to_thread(is_sending, house, "downloads", 0)
    assert len((await get(house, keys[-1], late)).content) > LARGE


async def test_of_many_at_once_each_is_whole_or_refused(house: House) -> None:
    """Never begun and cut short, because another took its place between looking and sending."""
    _, key = house.new_tenant()
    path = await stored(house, key, size=MB)
    count = 2 * DOWNLOADS_TENANT_MAX
    replies = await asyncio.gather(*(get(house, key, path) for _ in range(count)))
    assert {len(reply.content) > MB for reply in replies if reply.status_code == 200} == {True}
    assert {reply.status_code for reply in replies} <= {200, 429}
