"""Keeps the gauges of `/metrics` true: what waits, what runs, who is there.

The look at what waits is cut into slices: a hundred thousand tenants must not hold up a grant. It
is taken once for all who want it: whoever tells people of it is handed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable

from msgspec.structs import asdict

from fairway.core.backlog.counts import Expected, Survey
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.look import Look
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Effort, in_parts, step_by_step
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.failure.failure_policy import RESTRAINTS

REST_SECONDS = 2.0


class Gauges:
    def __init__(
        self,
        dispatcher: Dispatcher,
        metrics: Metrics,
        clock: Clock,
        on_look: Callable[[Look], Awaitable[None]],
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._clock = clock
        self._on_look = on_look

    async def run_once(self, now_us: int) -> float:
        metrics, dispatcher = self._metrics, self._dispatcher
        effort = Effort()
        waiting = await self._survey()
        running, slots = self._slots()
        for pool in dispatcher.pools.by_name.values():
            metrics.queued.labels(pool.name).set(waiting.depth[pool.number])
            metrics.running.labels(pool.name).set(running[pool.number])
            metrics.slots.labels(pool.name).set(slots[pool.number])
            age_ms = self._clock.unix_ms() - waiting.oldest_ms[pool.number]
            metrics.oldest.labels(pool.name).set(max(age_ms, 0) / 1000)
        # One of several owners that a worker serves counts it: their sum is the fleet.
        metrics.workers.set(sum(map(dispatcher.offers().is_counted, dispatcher.all_sessions())))
        metrics.window.set(dispatcher.windows().jobs_held())
        restraints = await self._restraints()
        for kind, count in restraints.items():
            metrics.restraints.labels(kind).set(count)
        metrics.shards.set(len(dispatcher.open_shards()))
        look = Look(waiting, running, slots, restraints, self._clock.unix_ms())
        for pool in dispatcher.pools.by_name.values():
            for kind, count in asdict(look.held(pool.number)).items():
                metrics.held.labels(pool.name, kind).set(count)
        await self._on_look(look)
        return effort.rest_seconds(REST_SECONDS)

    async def _survey(self) -> Survey:
        windows = self._dispatcher.windows()
        expected = Expected(self._room, self._run_us, windows.is_shared)
        found = Survey(
            self._dispatcher.holds(), expected, is_before_workers=windows.is_before_workers
        )
        await step_by_step(windows.surveying(found))
        return found

    def _room(self, pool: PoolId, tenant: TenantId) -> int:
        return self._dispatcher.share_of(pool).room(tenant)

    def _run_us(self, pool: PoolId, type_: TypeId) -> int:
        return self._dispatcher.share_of(pool).estimate(type_).mean_us

    async def _restraints(self) -> dict[str, int]:
        found = dict.fromkeys(RESTRAINTS, 0)
        await in_parts(self._dispatcher.counting_restraints(found))
        return found

    def _slots(self) -> tuple[dict[PoolId, int], dict[PoolId, int]]:
        """Slots in use and in all, by pool."""
        running: dict[PoolId, int] = defaultdict(int)
        slots: dict[PoolId, int] = defaultdict(int)
        for session in self._dispatcher.all_sessions():
            for number, count in session.in_use.items():
                running[number] += count
            for number, count in session.slots.items():
                slots[number] += count
        return running, slots
