"""The parts of `fairway bench fairness` that are about shares: who got how much of the slots.

Times are a tenth of those in the guarantees (12 s instead of 120 s), so that a part fits in a
minute; shares do not depend on the scale.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from fairway.bench.run_log import RunLog, worst_error
from fairway.bench.scenes import LEARN_SECONDS, Napper, scene
from fairway.rig.quantile import jain

WINDOW_SECONDS = 5.0
SETTLE_SECONDS = 1.0  # the first moment, when every slot is granted at once, is no share yet


class Shares(NamedTuple):
    """What a plot needs: received over entitled, by tenant, over time."""

    title: str
    log: RunLog
    entitled_slots: dict[str, float]
    seconds: float


def _windows(log: RunLog, seconds: float) -> list[tuple[float, float]]:
    start = log.began + SETTLE_SECONDS
    count = max(int((seconds - SETTLE_SECONDS) / WINDOW_SECONDS), 1)
    return [(start + n * WINDOW_SECONDS, start + (n + 1) * WINDOW_SECONDS) for n in range(count)]


def _entitled(nappers: list[Napper], slots: int) -> dict[str, float]:
    total = sum(napper.weight for napper in nappers)
    return {napper.name: slots * napper.weight / total for napper in nappers}


async def under_estimated(seconds: float) -> tuple[float, Shares]:
    """50 slots, weights 100/100/10; one tenant's naps of 12 s are believed to take 0.3 s.

    Each of its naps has a type of its own, so that the estimator never learns better.
    """
    nappers = [
        Napper(name="long-100", weight=100, nap_seconds=12, jobs=300, types=tuple(range(1, 299))),
        Napper(name="short-100", weight=100, nap_seconds=0.3, jobs=int(110 * seconds)),
        Napper(name="short-10", weight=10, nap_seconds=0.3, jobs=int(40 * seconds)),
    ]
    return await _errors("Believed 0.3 s, takes 12 s", nappers, "short", seconds)


async def over_estimated(seconds: float) -> tuple[float, Shares]:
    """The same weights; one tenant's naps of 0.1 s are believed to take 10 s, a hundred times."""
    nappers = [
        Napper(
            name="quick-100",
            weight=100,
            nap_seconds=0.1,
            jobs=int(300 * seconds),
            types=tuple(range(1, 299)),
        ),
        Napper(name="plain-100", weight=100, nap_seconds=1.0, jobs=int(40 * seconds)),
        Napper(name="plain-10", weight=10, nap_seconds=1.0, jobs=int(20 * seconds)),
    ]
    return await _errors("Believed 10 s, takes 0.1 s", nappers, "medium", seconds)


async def _errors(
    title: str, nappers: list[Napper], pool: str, seconds: float
) -> tuple[float, Shares]:
    slots = 50
    async with scene(nappers, pool=pool) as stage:
        log = await stage.play(slots, seconds)
    weights = {napper.name: float(napper.weight) for napper in nappers}
    error = worst_error(log, weights, _windows(log, seconds))
    return error, Shares(title, log, _entitled(nappers, slots), seconds)


async def long_against_short(seconds: float) -> tuple[float, Shares]:
    """Equal weights, naps of 3.4 s against 0.1 s: how far from half each is, in all."""
    slots = 20
    nappers = [
        Napper(name="34x", nap_seconds=3.4, jobs=int(10 * seconds), types=(1,)),
        Napper(name="1x", nap_seconds=0.1, jobs=int(130 * seconds)),
    ]
    async with scene(nappers) as stage:
        log = await stage.play(slots, seconds)
    start = log.began + SETTLE_SECONDS
    got = log.slot_seconds(start, log.began + seconds)
    error = abs(got["34x"] / sum(got.values()) - 0.5)
    return error, Shares(
        "One tenant's jobs 34 times longer", log, _entitled(nappers, slots), seconds
    )


async def many_backlogged(seconds: float, count: int = 100) -> tuple[float, Shares]:
    """Jain's index of received over entitled, tenants of mixed weights and naps."""
    slots = 200
    nappers = [
        Napper(
            name=f"t{n}",
            weight=(10, 20, 50)[n % 3],
            nap_seconds=(0.1, 0.2, 0.4)[n // 3 % 3],
            types=(n % 9,),
            jobs=int(seconds * 42 + 50),
        )
        for n in range(count)
    ]
    async with scene(nappers) as stage:
        log = await stage.play(slots, seconds)
    entitled = _entitled(nappers, slots)
    got = log.slot_seconds(log.began, log.began + seconds)
    ratios = [got.get(name, 0.0) / (fair * seconds) for name, fair in entitled.items()]
    return jain(ratios), Shares(f"{count} backlogged tenants", log, entitled, seconds)


async def idle_return(seconds: float) -> tuple[float, Shares]:
    """What a tenant that was idle gets in the time after it came back, over its share."""
    slots = 21
    nappers = [
        Napper(name="steady-a", jobs=int(slots * 10 * (seconds + 8))),
        Napper(name="steady-b", jobs=int(slots * 10 * (seconds + 8))),
        Napper(name="comes-back", jobs=50),
    ]
    async with scene(nappers) as stage:
        play = asyncio.create_task(stage.play(slots, seconds + 8))
        await asyncio.sleep(7.0)
        returned = time.time()
        await stage.submit(nappers[2], int(slots * 10 * seconds))
        log = await play
    got = log.slot_seconds(returned, returned + seconds)["comes-back"]
    entitled = _entitled(nappers, slots)
    return got / (entitled["comes-back"] * seconds), Shares(
        "A tenant comes back from idle", log, entitled, seconds + 8
    )


class Protected(NamedTuple):
    reservation_violations: int
    floor_reached_seconds: float


async def reserved_and_floor(seconds: float) -> Protected:
    """A full pool of short jobs: does it ever hold reserved slots, and how soon is a floor held?

    Naps of the crowd have no time limit, so none of them may borrow a reserved slot.
    """
    slots, reserved = 100, 20
    crowd = [Napper(name=f"crowd-{n}", nap_seconds=0.3, jobs=int(100 * seconds)) for n in range(4)]
    owner = Napper(name="owner", nap_seconds=0.2, terms=(("reserved", f'{{"short": {reserved}}}'),))
    pro = Napper(name="pro", weight=100, nap_seconds=0.2, terms=(("tier", "pro"),))
    nappers = [*crowd, owner, pro]
    async with scene(nappers) as stage:
        await asyncio.sleep(LEARN_SECONDS)
        play = asyncio.create_task(stage.play(slots, seconds))
        await asyncio.sleep(seconds / 2)
        asked = time.time()
        await stage.submit(pro, 20)
        await stage.submit(owner, 2_000)
        log = await play
    names = {napper.name for napper in crowd} | {"pro"}
    held = log.most_at_once(names, log.began, log.began + seconds)
    first = log.first_start("pro", asked)
    return Protected(max(held - (slots - reserved), 0), (first or float("inf")) - asked)
