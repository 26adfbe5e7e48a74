"""The event log followed for long over lines and servers that die: none missed, none twice."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable

import httpx2
import pytest
from tests.acceptance.house import House
from tests.api.events.socket_client import Closed, Rejected, socket_to
from tests.api.events.world import Line, line_to

from fairway import App, Event

EVENTS, CUTS = 10_000, 200
BATCH = 50
SECONDS = 600.0

Found = list[tuple[int, str | None]]  # positions and jobs, in the order in which they came


async def ask_for_events(house: House) -> None:
    async with httpx2.AsyncClient(headers=_key(house), trust_env=False) as caller:
        body = {"job_events": True}
        reply = await caller.put(f"{house.urls[0]}/v1/events/settings", json=body)
    assert reply.status_code in (200, 204), reply.text
    await asyncio.sleep(5)  # every server knows by then


def _key(house: House) -> dict[str, str]:
    return {"authorization": f"Bearer {house.api_key}"}


async def make(house: House, count: int, cutting: asyncio.Future[None] | None = None) -> list[str]:
    """Jobs of a type that nobody runs, one event each; so many, and on for as long as it is cut."""
    made: list[str] = []
    async with httpx2.AsyncClient(headers=_key(house), trust_env=False, timeout=10) as caller:
        while len(made) < count or not (cutting is None or cutting.done()):
            body = {"jobs": [{"type": "never.run"}] * BATCH}
            headers = {"idempotency-key": secrets.token_hex(16)}
            made += await _accepted(house, caller, body, headers)
            await asyncio.sleep(0.02 if len(made) < count else 0.5)
    return made


async def _accepted(
    house: House, caller: httpx2.AsyncClient, body: object, headers: dict[str, str]
) -> list[str]:
    while True:
        for url in house.urls:
            try:
                reply = await caller.post(f"{url}/v1/jobs/batch", json=body, headers=headers)
            except httpx2.TransportError:
                continue
            if reply.status_code in (200, 202):
                return [item["id"] for item in reply.json()["items"]]
        await asyncio.sleep(0.1)


async def read_by_stream(urls: list[str], key: str, found: Found) -> None:
    app = App("reader", url=",".join(urls), api_key=key, patience="60s")
    try:
        async for item in app.aevents(after=0, kind="job.accepted"):
            assert isinstance(item, Event), item
            found.append((item.position, item.job))
    finally:
        await app.aclose()


async def read_by_socket(urls: list[str], key: str, found: Found) -> None:
    turn = 0
    while True:
        port = int(urls[turn % len(urls)].rpartition(":")[2])
        turn += 1
        try:
            async with socket_to(port, key) as socket:
                await socket.subscribe("x", after=found[-1][0] if found else 0)
                while True:
                    (event,) = await socket.hear_events(1)
                    found.append((event["position"], event["job"]))
        except (Closed, Rejected, OSError):
            await asyncio.sleep(0.02)


READERS = [read_by_stream, read_by_socket]
Read = Callable[[list[str], str, Found], Awaitable[None]]


async def until_read(reading: asyncio.Future[None], found: Found, count: int) -> None:
    while len(found) < count:
        if reading.done():
            reading.result()  # it has no end of its own
        await asyncio.sleep(0.05)


def check(found: Found, made: list[str]) -> None:
    assert [position for position, _ in found] == [*range(1, len(made) + 1)]
    assert sorted(job or "" for _, job in found) == sorted(made)


async def keep_cutting(line: Line, cuts: int, dice: random.Random) -> None:
    while line.cuts < cuts:
        await asyncio.sleep(dice.uniform(0.005, 0.1))
        line.cut()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("read", READERS, ids=["stream", "socket"])
async def test_two_hundred_cuts(house: House, read: Read, figures: dict[str, str]) -> None:
    await house.open(workers=0)
    await ask_for_events(house)
    found: Found = []
    began = time.monotonic()
    port = int(house.urls[0].rpartition(":")[2])
    async with line_to(port) as line, asyncio.timeout(SECONDS):
        reading = asyncio.ensure_future(read([line.url], house.api_key, found))
        cutting = asyncio.create_task(keep_cutting(line, CUTS, random.Random(7)))
        made = await make(house, EVENTS, cutting)
        await until_read(reading, found, len(made))
        reading.cancel()
    check(found, made)
    figures[f"events over a line that is cut, {read.__name__}"] = (
        f"{len(found)} events, {line.cuts} cuts, {time.monotonic() - began:.0f} s: none missed,"
        " none twice"
    )


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("read", READERS, ids=["stream", "socket"])
async def test_servers_that_die(house: House, read: Read, figures: dict[str, str]) -> None:
    """The owner, which gives events their positions, is killed again and again."""
    await house.open(servers=2, workers=0)
    await ask_for_events(house)
    found: Found = []
    kills = 0
    async with asyncio.timeout(SECONDS):
        reading = asyncio.ensure_future(read(house.urls, house.api_key, found))
        making = asyncio.create_task(make(house, EVENTS))
        while not making.done():
            await asyncio.sleep(3)
            server = house.servers[0]
            await server.kill()
            kills += 1
            await house.restart(server).ready()
        made = await making
        await until_read(reading, found, len(made))
        reading.cancel()
    check(found, made)
    figures[f"events over servers that die, {read.__name__}"] = (
        f"{len(found)} events, {kills} kills: none missed, none twice"
    )
