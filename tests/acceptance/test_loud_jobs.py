"""What a run says may be large or make no sense: its neighbours and its worker live on."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import until

LOUD = "tests.acceptance.loud_jobs:app"
LEASES = {"FAIRWAY_LEASE_SECONDS": "short=6,medium=6,long=6"}
SLICE_BYTES = 16 << 10


async def test_results_that_are_too_much_for_one_call(house: House) -> None:
    """Five of 14 MB at the same moment: more than a call of the platform may have."""
    house.settings |= LEASES
    (worker,) = await house.open(app=LOUD)
    other = await house.post("nap", "short", seconds=8)
    at = time.time() + 2
    jobs = [await house.post("large", "medium", megabytes=14, at=at) for _ in range(5)]
    views = [await house.finished(job, within_seconds=60) for job in (*jobs, other)]
    assert {(view["state"], view["deliveries"]) for view in views} == {("succeeded", 1)}
    assert worker.alive


@pytest.mark.slow
async def test_odd_outcomes_end_no_worker(house: House) -> None:
    house.settings |= LEASES
    (worker,) = await house.open(app=LOUD)
    other = await house.post("nap", "short", seconds=6)
    odd = [
        await house.post(kind, "medium", seconds=seconds)
        for kind in ("later", "away")
        for seconds in (1e10, 1e300)
    ]
    chatty = await house.post("chatty", "medium")
    for job in (chatty, other):
        view = await house.finished(job, within_seconds=40)
        assert (view["state"], view["deliveries"]) == ("succeeded", 1), view
    assert max([(await house.view(job))["deliveries"] for job in odd]) == 1, "each ran once"
    assert worker.alive


@pytest.mark.slow
async def test_a_large_result_on_a_slow_link_costs_nobody_a_lease(
    house: House, figures: dict[str, str]
) -> None:
    """8 MB at 1 MB/s; the leases are six seconds, and a call used to have five for everything."""
    house.settings |= LEASES
    house.start_server()
    await house.servers[0].ready()
    async with slow_link(house.urls[0], bytes_per_second=1 << 20) as url:
        worker = house.start_worker(urls=[url], app=LOUD)
        await worker.says("worker ready")
        naps = [await house.post("nap", "short", seconds=10) for _ in range(3)]
        began = time.monotonic()
        job = await house.post("large", "medium", megabytes=8, at=0)
        view = await house.finished(job, within_seconds=60)
        figures["a result of 8 MB at 1 MB/s"] = f"recorded after {time.monotonic() - began:.1f} s"
        assert (view["state"], view["deliveries"]) == ("succeeded", 1)
        for nap in naps:
            view = await house.finished(nap, within_seconds=40)
            assert (view["state"], view["deliveries"]) == ("succeeded", 1)


@pytest.mark.slow
async def test_a_large_outcome_survives_its_worker(house: House) -> None:
    """The server is away when the job ends, and then its worker dies: the next one reports it."""
    house.settings |= {"FAIRWAY_LEASE_SECONDS": "short=2,medium=60,long=60"}
    (worker,) = await house.open(app=LOUD)
    (server,) = house.servers
    job = await house.post("large", "medium", megabytes=2, at=time.time() + 3)
    await asyncio.sleep(1)
    await server.kill()
    folder = house.room / "journal"
    large = re.compile(rb'"job":"%s".*"result":"x{%d}"' % (job.encode(), 2 << 20))
    await until(
        lambda: any(large.search(path.read_bytes()) for path in folder.iterdir()),
        20,
        "the outcome in the journal",
    )
    await worker.kill()
    await house.restart(server).ready()
    house.start_worker(app=LOUD)
    view = await house.finished(job, within_seconds=40)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 1), view


@asynccontextmanager
async def slow_link(target: str, bytes_per_second: int) -> AsyncIterator[str]:
    """An address that passes on to the target; all that goes up shares the link."""
    place, link = urlsplit(target), asyncio.Lock()

    async def pass_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_slow: bool
    ) -> None:
        try:
            while data := await reader.read(SLICE_BYTES):
                if is_slow:
                    async with link:
                        await asyncio.sleep(len(data) / bytes_per_second)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(place.hostname, place.port)
        await asyncio.gather(pass_on(reader, back, True), pass_on(there, writer, False))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
