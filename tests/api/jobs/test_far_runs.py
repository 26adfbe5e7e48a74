"""A job that runs looks the same through every server, be it the owner of its shard or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker
from tests.services.platform_room import until

FACTS = ("state", "attempts", "deliveries", "progress")


@pytest.fixture(scope="module")
def second(house: House) -> Iterator[House]:
    with open_house(house.dsn) as second:
        yield second


@pytest.fixture
async def pair(house: House, second: House) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """The same tenant at the owner and at the other server."""
    _, key = house.new_tenant()
    async with house.caller(key) as near, second.caller(key) as far:
        yield [near, far]


async def begin(near: httpx2.AsyncClient, worker: HandWorker) -> tuple[str, dict[str, Any]]:
    await worker.hello()
    reply = await near.post("/v1/jobs", json={"type": worker.type})
    lease = await worker.lease()
    return str(reply.headers["location"]), lease


async def test_progress_and_state_are_the_same_everywhere(
    pair: list[httpx2.AsyncClient], worker: HandWorker
) -> None:
    location, lease = await begin(pair[0], worker)
    for done in (1, 2):
        await worker.say(running=[worker.holding(lease, progress={"done": done})])
        replies = [await client.get(location) for client in pair]
        jobs = [reply.json() for reply in replies]
        assert jobs[1]["progress"] == {"done": done}
        assert [jobs[0][name] for name in FACTS] == [jobs[1][name] for name in FACTS]
        near, far = (datetime.fromisoformat(job["started_at"]) for job in jobs)
        assert abs(near - far) < timedelta(milliseconds=20)  # their clocks, as the store's is read
        assert replies[0].headers["etag"] == replies[1].headers["etag"]
        pages = [(await client.get("/v1/jobs")).json()["jobs"] for client in pair]
        assert pages[1][0]["progress"] == {"done": done}
    await worker.tell(worker.report(lease))


async def test_a_stream_of_the_other_server_tells_progress(
    pair: list[httpx2.AsyncClient], worker: HandWorker
) -> None:
    location, lease = await begin(pair[0], worker)
    heard: list[str] = []

    async def follow() -> None:
        async with pair[1].stream("GET", f"{location}/events") as reply:
            async for line in reply.aiter_lines():
                heard.append(line)  # noqa: PERF401  (as it comes, not when the stream is over)

    following = asyncio.create_task(follow())
    for done in (1, 2):
        await worker.say(running=[worker.holding(lease, progress={"done": done})])
        text = f'"done":{done}'
        await until(lambda text=text: any(text in line for line in heard))
    await worker.tell(worker.report(lease))
    await following
    assert any('"state":"succeeded"' in line for line in heard)


@pytest.mark.parametrize("path", ["/internal/hint", "/internal/runs"])
async def test_nobody_but_a_server_is_heard(pair: list[httpx2.AsyncClient], path: str) -> None:
    problem(await pair[0].post(path, json=[]), 404, "NOT_FOUND")
