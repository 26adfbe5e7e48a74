"""Scenes of fair sharing: tenants with terms, a backlog of naps, and the log of who ran when.

Everything goes through the front door; a nap holds a slot and burns no processor time, so that
slots are what tenants compete for, as they do with real jobs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fairway.bench.engine import BATCH
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.bench.run_log import RunLog
from fairway.rig.load import closed_loop
from fairway.rig.load_client import post

LEARN_SECONDS = 2.5  # servers read changed terms every two seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Napper:
    """A tenant of a scene and what it submits before the curtain rises."""

    name: str
    weight: int = 10
    nap_seconds: float = 0.1
    jobs: int = 0
    types: tuple[int, ...] = (0,)  # of its naps, in turn; one of its own has an estimate of its own
    timeout_seconds: float | None = None
    terms: tuple[tuple[str, Any], ...] = ()

    def body(self, first: int, count: int, pool: str) -> bytes:
        jobs = [
            {
                "type": f"bench.nap.{self.types[(first + n) % len(self.types)]}",
                "payload": {"who": self.name, "seconds": self.nap_seconds},
                "pool": pool,
                "timeout_seconds": self.timeout_seconds,
            }
            for n in range(count)
        ]
        return json.dumps({"jobs": jobs}).encode()


class Scene:
    def __init__(self, platform: BenchPlatform, nappers: list[Napper], pool: str) -> None:
        self._platform = platform
        self._numbers = {napper.name: number for number, napper in enumerate(nappers)}
        self.nappers = nappers
        self.pool = pool

    async def submit(self, napper: Napper, jobs: int) -> None:
        """Queue naps of one tenant."""
        key = self._platform.keys[self._numbers[napper.name]]
        sizes = [min(BATCH, jobs - first) for first in range(0, jobs, BATCH)]
        requests = (
            (post("/v1/jobs/batch", key, napper.body(n * BATCH, size, self.pool)), size)
            for n, size in enumerate(sizes)
        )
        tally = await closed_loop(self._platform.client(), requests, connections=1)
        if tally.refused:
            raise RuntimeError(f"{tally.refused} naps of {napper.name} were refused")

    async def play(self, slots: int, seconds: float) -> RunLog:
        """Let a worker in for so long; answers who ran when."""
        log = self._platform.folder / "runs.txt"
        log.unlink(missing_ok=True)
        worker = await self._platform.start_worker(slots, self.pool, FAIRWAY_BENCH_RUNS=str(log))
        await asyncio.sleep(seconds + 1.0)  # it takes a second to come
        await worker.stop()
        return RunLog.read(log)


@asynccontextmanager
async def scene(nappers: list[Napper], *, pool: str = "short") -> AsyncIterator[Scene]:
    """Tenants with their terms and their backlogs, and no worker yet."""
    async with bench_platform(len(nappers)) as platform:
        for number, napper in enumerate(nappers):
            await platform.set_entitlement([number], weight=napper.weight, **dict(napper.terms))
        await platform.start_server()
        found = Scene(platform, nappers, pool)
        for napper in nappers:
            if napper.jobs:
                await found.submit(napper, napper.jobs)
        yield found
