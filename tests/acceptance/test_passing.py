"""An owner freezes and dies while another server passes jobs on to it: nothing is lost or doubled.

The jobs have no keys and each is sent once, so that only the servers themselves can double one.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections import Counter

import asyncpg
import httpx2
from tests.acceptance.house import House
from tests.acceptance.processes import until

CLIENTS = 8
REST_SECONDS = 0.02


class Stream:
    """Sends numbered jobs through one server, each once."""

    def __init__(self, house: House, url: str) -> None:
        self._headers = {"authorization": f"Bearer {house.api_key}"}
        self._url = url
        self._numbers = itertools.count()
        self._is_over = False
        self._tasks = [asyncio.create_task(self._send()) for _ in range(CLIENTS)]
        self.accepted: dict[int, str] = {}
        self.refused = 0
        self.longest_seconds = 0.0

    async def _send(self) -> None:
        async with httpx2.AsyncClient(headers=self._headers, timeout=30, trust_env=False) as http:
            while not self._is_over:
                number, began = next(self._numbers), time.monotonic()
                body = {"type": "nap", "pool": "short", "payload": {"n": number}}
                reply = await http.post(f"{self._url}/v1/jobs", json=body)
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
                if reply.status_code == 202:
                    self.accepted[number] = reply.json()["id"]
                else:
                    assert reply.status_code == 503, reply.text
                    self.refused += 1
                await asyncio.sleep(REST_SECONDS)

    async def has_accepted(self, more: int) -> None:
        enough = len(self.accepted) + more
        await until(lambda: len(self.accepted) >= enough, 60, f"{more} more jobs")

    async def end(self) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)


async def test_an_owner_that_freezes_and_dies_costs_no_job_that_was_passed_on(
    house: House, figures: dict[str, str]
) -> None:
    house.settings |= {"FAIRWAY_STORE_WAIT_SECONDS": "1", "FAIRWAY_TERM_SECONDS": "3"}
    owner = house.start_server()
    await owner.ready()
    house.settings |= {"FAIRWAY_OWNS_SHARDS": "false"}
    door = house.start_server()
    await door.ready()
    stream = Stream(house, door.url)
    await stream.has_accepted(60)
    owner.send(signal.SIGSTOP)  # what is on its way to it is written twice, or once too late
    await asyncio.sleep(2.2)
    owner.send(signal.SIGCONT)
    await stream.has_accepted(60)
    await owner.kill()
    await stream.has_accepted(60)
    await stream.end()
    connection = await asyncpg.connect(house.dsn)
    rows = await connection.fetch(
        "SELECT id::text, convert_from(payload, 'UTF8') AS text FROM jobs"
    )
    await connection.close()
    there = {row["id"] for row in rows}
    doubled = [text for text, count in Counter(row["text"] for row in rows).items() if count > 1]
    assert there.issuperset(stream.accepted.values()), "accepted, and not there"
    assert not doubled
    assert stream.longest_seconds < 10
    assert "owner gives no answer" in door.said
    figures["owner frozen and killed while jobs are passed on"] = (
        f"{len(stream.accepted)} accepted, 0 lost, 0 doubled, {stream.refused} refused, longest"
        f" call {stream.longest_seconds:.1f} s"
    )
