"""The platform of a bench: thousands of tenants, written in bulk, some far busier than others."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from fairway.rig.arrivals import skewed_weights
from fairway.rig.platform import MeasuredPlatform, fresh
from fairway.rig.program import Program, Programs
from fairway.runtime.random_ids import new_api_key

RATE = 1_000_000  # of each tenant: what is measured is not the limit
SKEW = 100.0  # the busiest tenant submits this many times as much as the quietest
GRACE_SECONDS = 0.5


class BenchPlatform(MeasuredPlatform):
    def __init__(self, programs: Programs, dsn: str, settings: Mapping[str, str]) -> None:
        super().__init__(programs, dsn, settings)
        self.keys: list[str] = []
        self._weights: list[float] = []
        self._dice = random.Random(7)
        self._numbers = itertools.count(1)  # of workers

    async def populate(self, tenants: int) -> None:
        """Tenants with keys, written in bulk: what is measured begins at the front door."""
        keys = [new_api_key("tenant") for _ in range(tenants)]
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.copy_records_to_table(
                "tenants",
                columns=["id", "name", "rate_per_second", "burst"],
                records=[(n + 1, f"tenant-{n}", RATE, RATE) for n in range(tenants)],
            )
            await connection.copy_records_to_table(
                "api_keys",
                columns=["id", "scope", "tenant", "secret_hash"],
                records=[(key.id, key.scope, n + 1, key.secret_hash) for n, key in enumerate(keys)],
            )
        finally:
            await connection.close()
        self.keys = [key.text for key in keys]
        self._weights = skewed_weights(tenants, SKEW)

    async def set_entitlement(self, numbers: Iterable[int], **columns: Any) -> None:
        """Terms of these tenants, straight into the store; servers read them within seconds."""
        changes = ", ".join(f"{name} = ${place + 2}" for place, name in enumerate(columns))
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(
                f"UPDATE tenants SET {changes}, updated_at = now() WHERE id = ANY($1::int[])",
                [number + 1 for number in numbers],
                *columns.values(),
            )
        finally:
            await connection.close()

    def draw(self, count: int) -> list[int]:
        """Tenant numbers, the busy ones more often."""
        return self._dice.choices(range(len(self.keys)), self._weights, k=count)

    async def start_worker(self, slots: int, pool: str = "short", **more: str) -> Program:
        """It takes a second to come."""
        return await self.start_worker_of(
            "fairway.bench.jobs:app",
            {pool: slots},
            f"worker-{next(self._numbers)}",
            GRACE_SECONDS,
            **{**self.settings, **more},
        )


@asynccontextmanager
async def bench_platform(tenants: int, shards: int | None = None) -> AsyncIterator[BenchPlatform]:
    """No server yet. FAIRWAY_… variables of this process are settings of what is measured."""
    ours = {name: text for name, text in os.environ.items() if name.startswith("FAIRWAY_")}
    if shards is not None:
        ours["FAIRWAY_SHARD_COUNT"] = str(shards)
    async with fresh(BenchPlatform, ours) as platform:
        await platform.populate(tenants)
        yield platform
