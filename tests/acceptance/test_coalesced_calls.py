"""A server dies under callers that share calls: each of them has its own job in the end, once."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import asyncpg
import msgspec
from tests.acceptance.house import House
from tests.acceptance.processes import until

from fairway import App, Handle, Job

CALLERS, CALLS, KILLS = 40, 10, 2


def handing_in(house: House) -> Job[[int], None]:
    app = App("notes", url=house.urls[0], api_key=house.api_key, patience="60s")

    @app.job(name="note")
    def note(n: int) -> None: ...

    return note


def _has(told: dict[str, int], jobs: int) -> bool:
    return len(told) >= jobs


async def test_kill_9_of_the_server(house: House, figures: dict[str, str]) -> None:
    await house.open(workers=0)
    note, told = handing_in(house), dict[str, int]()

    async def caller(who: int) -> None:
        for n in range(who * CALLS, (who + 1) * CALLS):
            handle: Handle[Any]
            if who % 2:
                handle = await note.aenqueue(n)
            else:
                handle = await asyncio.to_thread(note.enqueue, n)
            told[handle.id] = n

    async def kill() -> None:
        for part in range(1, KILLS + 1):
            wanted = part * CALLERS * CALLS // (KILLS + 2)
            await until(partial(_has, told, wanted), 60, f"{wanted} jobs")
            await house.servers[0].kill()
            await house.restart(house.servers[0]).ready()

    await asyncio.gather(kill(), *map(caller, range(CALLERS)))
    await note.app.aclose()
    connection = await asyncpg.connect(house.dsn)
    rows = await connection.fetch("SELECT id::text AS id, payload FROM jobs")
    await connection.close()
    assert len(told) == CALLERS * CALLS
    assert {row["id"]: msgspec.json.decode(row["payload"])["n"] for row in rows} == told
    figures["server killed under shared calls"] = f"{len(told)} jobs, {KILLS} kills, none twice"
