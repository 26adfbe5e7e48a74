"""One tenant asks for very many changes of one job; nobody else's jobs wait for that."""

from __future__ import annotations

import asyncio

import httpx2
from tests.api.house import House, problem
from tests.locked import held_rows, somebody_stands, standing

HOT = "fairway-hot"
SOON_SECONDS = 1.5  # before whoever stands at the row's lock gives up, and half of what a 503 takes
FLOOD = 200


async def test_a_flood_of_moves_holds_up_nobody_elses_jobs(
    house: House, tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    later = {"type": "moved.often", "delay_seconds": 86_400}
    path = (await tenant.post("/v1/jobs", json=later)).headers["location"]
    async with held_rows(house.dsn, path.rpartition("/")[2]) as holder:
        moves = [tenant.patch(path, json={"delay_seconds": 3600}) for _ in range(FLOOD)]
        flood = [asyncio.create_task(move) for move in moves]
        await somebody_stands(holder, HOT)
        for _ in range(10):
            async with asyncio.timeout(SOON_SECONDS):
                assert (await stranger.post("/v1/jobs", json={"type": "t"})).status_code == 202
        assert await standing(holder, HOT) == 1
    for reply in await asyncio.gather(*flood):
        if reply.status_code != 200:
            code = "OVERLOADED" if "Too many changes" in reply.text else "UNAVAILABLE"
            problem(reply, 503, code)
    assert (await tenant.patch(path, json={"delay_seconds": 60})).status_code == 200
