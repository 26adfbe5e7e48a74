"""How long nobody grants anything when an owner dies, and when it hands over: started by `-m slow`.

With the times that servers have by default, under load, ten of each; the figures are printed.
"""

from __future__ import annotations

import asyncio
import signal
import time
from itertools import pairwise

import pytest
from tests.acceptance.checker import SUCCEEDED, Change
from tests.acceptance.house import House, Server

TIMES = 10
SETTLED_JOBS = 60  # accepted between two: the platform is as it was before


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_ten_kills_of_the_owner(house: House, figures: dict[str, str]) -> None:
    gaps = await _ten_times(house, _kill, figures, "ten kills of the owner")
    assert gaps[-1] <= 8, gaps  # five, and more for a machine that has other work to do


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_ten_hand_overs(house: House, figures: dict[str, str]) -> None:
    gaps = await _ten_times(house, _stop, figures, "ten hand-overs")
    assert gaps[-1] <= 1, gaps


async def _kill(owner: Server) -> None:
    await owner.kill()


async def _stop(owner: Server) -> None:
    owner.send(signal.SIGTERM)
    assert await owner.ended(60) == 0


async def _ten_times(house: House, end: object, figures: dict[str, str], what: str) -> list[float]:
    """Answers the longest time without the end of a job around each, the shortest first."""
    assert callable(end)
    house.settings = {
        name: value for name, value in house.settings.items() if not name.endswith("_SECONDS")
    }
    await house.open(servers=2, workers=2)
    moments: list[tuple[float, float]] = []
    async with house.load(rate=60, run_seconds=lambda dice: 0.0) as load:
        for _ in range(TIMES):
            await load.has_accepted(SETTLED_JOBS, within_seconds=120)
            await _caught_up(house, load.accepted[-1])
            _, url = await house.book.owner()
            (owner,) = [server for server in house.servers if server.url == url]
            began = time.time()
            await end(owner)
            await house.restart(owner).ready(120)
            await load.has_accepted(SETTLED_JOBS, within_seconds=120)
            await _caught_up(house, load.accepted[-1])
            moments.append((began, time.time()))
    verdict = await house.check(load.accepted, drain_seconds=120)
    ends = [change.at for change in await house.book.changes() if change.after == SUCCEEDED]
    gaps = sorted(_longest(ends, *moment) for moment in moments)
    figures[what] = (
        f"without an end: {', '.join(f'{gap:.2f}' for gap in gaps)} s; {verdict.jobs} jobs,"
        f" 0 lost, {verdict.lost_leases} leases lost, {verdict.ran_twice} jobs ran twice;"
        f" clients saw {dict(load.answers)}"
    )
    return gaps


async def _caught_up(house: House, job: str) -> None:
    began = time.monotonic()
    while True:
        changes: list[Change] = [one for one in await house.book.changes() if one.job == job]
        if any(one.after == SUCCEEDED for one in changes):
            return
        assert time.monotonic() - began < 60, job
        await asyncio.sleep(0.1)


def _longest(ends: list[float], began: float, over: float) -> float:
    """The longest pause between two ends, of those that reach into this time."""
    pauses = [b - a for a, b in pairwise(sorted(ends)) if b > began and a < over]
    return max(pauses)
