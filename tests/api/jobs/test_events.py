"""Server-sent events of a job: states in order, resumed where they broke off, ended at the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

from fairway.api.jobs.events import APART_SECONDS, AT_ONCE


class Event(NamedTuple):
    state: str
    id: str
    job: dict[str, Any]


async def follow(
    tenant: httpx2.AsyncClient, location: str, last_id: str | None = None
) -> AsyncIterator[Event]:
    """The events until the server ends the stream."""
    headers = {"last-event-id": last_id} if last_id else {}
    async with tenant.stream("GET", f"{location}/events", headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-accel-buffering"] == "no"
        fields: dict[str, str] = {}
        async for line in reply.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
            elif "data" in fields:
                assert fields["retry"] == "2000"
                yield Event(fields["event"], fields["id"], json.loads(fields["data"]))
                fields = {}


async def test_states_come_in_order_and_the_last_one_ends_it(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    events = follow(tenant, location)
    seen = [await anext(events)]
    await worker.hello()
    lease = await worker.lease()
    seen.append(await anext(events))
    await worker.say(running=[worker.holding(lease, progress=1)])
    seen.append(await anext(events))
    await worker.tell(worker.report(lease, result="done"))
    seen += [event async for event in events]
    assert [event.state for event in seen] == ["queued", "running", "running", "succeeded"]
    assert [event.job["progress"] for event in seen] == [None, None, 1, None]
    assert len({event.id for event in seen}) == 4
    assert all(event.job["state"] == event.state for event in seen)


async def test_a_broken_stream_goes_on_where_it_was(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    async for event in follow(tenant, location):
        assert event.state == "queued"
        break  # the connection is lost
    await worker.hello()
    await worker.run()
    resumed = [event async for event in follow(tenant, location, event.id)]
    assert [one.state for one in resumed] == ["succeeded"]
    assert (await follow(tenant, location).__anext__()).state == "succeeded"


async def test_who_knows_the_end_is_told_to_stop_asking(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant)
    await tenant.delete(location)
    (last,) = [event async for event in follow(tenant, location)]
    assert last.state == "cancelled"
    again = await tenant.get(f"{location}/events", headers={"last-event-id": last.id})
    assert (again.status_code, again.content) == (204, b"")


async def test_head_of_a_stream_does_not_wait(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    reply = await asyncio.wait_for(tenant.head(f"{location}/events"), 30)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")


async def test_a_flood_of_progress_comes_at_a_bounded_rate(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """Every word of it wakes every stream of the job, and a tenant may have hundreds."""
    location = await submit(tenant, worker.type)
    await worker.hello()
    lease = await worker.lease()
    began = time.monotonic()
    stream = follow(tenant, location)
    seen = [await anext(stream)]
    for word in range(40):
        await worker.say(running=[worker.holding(lease, progress=word)])
    await worker.tell(worker.report(lease, result="done"))
    seen += [event async for event in stream]
    assert seen[-1].state == "succeeded"
    assert len(seen) <= 2 + AT_ONCE + (time.monotonic() - began) / APART_SECONDS


async def test_streams_of_one_job_tell_the_same(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    location = await submit(tenant, worker.type)
    streams = [follow(tenant, location) for _ in range(3)]
    first = [await anext(stream) for stream in streams]
    await worker.hello()
    await worker.run()
    last = [[event async for event in stream][-1] for stream in streams]
    assert len({event.id for event in first}) == 1
    assert [event.job for event in last] == [last[0].job] * 3
    assert last[0].state == "succeeded"
