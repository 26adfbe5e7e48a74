"""`fairway bench engine --subscribed`: what the event log costs the engine.

    drained_subscribed   jobs drained a second when every tenant hears what becomes of its jobs,
                         as a part of those when none does
    batched_subscribed   the same of batches that are submitted, run and recorded all the while
    drained_unheard,     when none does, as a part of those where the tables have no triggers for
    batched_unheard      events at all
    events_behind_s      how long after the last job of a drain its last event was in its log

Kinds take turns on one platform, so that a slow moment of the machine meets all of them; a ratio is
the median of the turns'.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg

from fairway.bench import engine, output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform

TURNS = 3
PLAIN, SUBSCRIBED, BARE = "nobody subscribed", "all subscribed", "no triggers"
LOOK_SECONDS = 0.05
TRIGGERS = "note\\_%"

Rates = Mapping[str, Sequence[float]]


def run(*, json_output: bool, tenants: int, seconds: float, burn_jobs: int) -> int:
    figures = output.measured(measure(tenants, seconds, burn_jobs))
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("What the event log costs, as ratios within this run", figures, AIMS)
    return 0


async def measure(tenants: int, seconds: float, burn_jobs: int) -> dict[str, float]:
    drained: dict[str, list[float]] = {PLAIN: [], SUBSCRIBED: [], BARE: []}
    batched: dict[str, list[float]] = {kind: [] for kind in drained}
    behind: list[float] = []
    async with bench_platform(tenants) as platform:
        await platform.start_server()
        for turn in range(TURNS):
            kinds = [*drained] if turn % 2 else [*reversed(drained)]
            for kind in kinds:
                with part(f"turn {turn + 1} of {TURNS}, {kind}"):
                    async with arranged(platform, kind):
                        await engine.fill(platform, burn_jobs)
                        await until_moved(platform)
                        drained[kind].append(await engine.drain(platform, burn_jobs))
                        behind += [await until_moved(platform)] if kind is SUBSCRIBED else []
                        worker = await platform.start_worker(engine.SLOTS)
                        batched[kind].append((await engine.batches(platform, seconds))[0])
                        await worker.stop()
                        await until_moved(platform)
    return {
        "drained_subscribed": ratio(drained, SUBSCRIBED, PLAIN),
        "batched_subscribed": ratio(batched, SUBSCRIBED, PLAIN),
        "drained_unheard": ratio(drained, PLAIN, BARE),
        "batched_unheard": ratio(batched, PLAIN, BARE),
        "events_behind_s": round(max(behind), 3),
        "drained_jobs_per_s": round(statistics.median(drained[PLAIN])),
        "batched_jobs_per_s": round(statistics.median(batched[PLAIN])),
    }


def ratio(rates: Rates, of: str, to: str) -> float:
    return round(statistics.median(a / b for a, b in zip(rates[of], rates[to], strict=True)), 3)


@asynccontextmanager
async def arranged(platform: BenchPlatform, kind: str) -> AsyncIterator[None]:
    await subscribe(platform, kind is SUBSCRIBED)
    async with connected(platform) as owner:
        taken = await take_triggers(owner) if kind is BARE else []
        try:
            yield
        finally:
            for text in taken:
                await owner.execute(text)


async def subscribe(platform: BenchPlatform, is_wanted: bool) -> None:
    """Returns when the server knows."""
    numbers = range(len(platform.keys))
    await platform.set_entitlement(numbers, job_events=is_wanted)
    for key in (platform.keys[0], platform.keys[-1]):
        while await has_events(platform, key) is not is_wanted:  # noqa: ASYNC110  # another process
            await asyncio.sleep(LOOK_SECONDS)


async def has_events(platform: BenchPlatform, key: str) -> bool:
    reply = await platform.client(key).ask("GET", "/v1/events/settings")
    return bool(json.loads(reply.body)["job_events"])


async def take_triggers(owner: asyncpg.Connection) -> list[str]:
    """Answers what brings them back."""
    rows = await owner.fetch(
        "SELECT tgname, pg_get_triggerdef(oid) AS text FROM pg_trigger"
        " WHERE tgrelid = 'jobs'::regclass AND tgname LIKE $1",
        TRIGGERS,
    )
    for row in rows:
        await owner.execute(f"DROP TRIGGER {row['tgname']} ON jobs")
    return [row["text"] for row in rows]


async def until_moved(platform: BenchPlatform) -> float:
    """Seconds until nothing is in the inbox."""
    began = time.perf_counter()
    async with connected(platform) as owner:
        waits = "SELECT EXISTS (SELECT FROM event_inbox)"
        while await owner.fetchval(waits):  # noqa: ASYNC110  # another process
            await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - began


@asynccontextmanager
async def connected(platform: BenchPlatform) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(platform.dsn)
    try:
        yield connection
    finally:
        await connection.close()


AIMS = {
    "drained_subscribed": Aim("≥ 0.6", lambda v: v >= 0.6),
    "batched_subscribed": Aim("≥ 0.6", lambda v: v >= 0.6),
    "drained_unheard": Aim("≥ 0.97", lambda v: v >= 0.97),
    "batched_unheard": Aim("≥ 0.97", lambda v: v >= 0.97),
}
