"""Places for what waits: event streams, held requests, heavy bodies; so many each and in all.

Whoever waits costs memory and a connection, not work; so nobody is refused for its rate here, only
for how many are there already. A place is free again when whatever held it ends, however it ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeVar

from fairway.core.connections import STAFF
from fairway.core.errors import LimitReached
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics

RETRY_SECONDS = 5
HEAVY_TENANT_MAX, HEAVY_MAX = 4, 32

Result = TypeVar("Result")


class PlaceLimits(NamedTuple):
    tenant_max: int
    total_max: int
    code: str
    what: str


class WaitingRoom:
    def __init__(self, limits: dict[str, PlaceLimits], metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._taken: dict[str, Counter[int]] = {kind: Counter() for kind in limits}
        self._totals = dict.fromkeys(limits, 0)

    @contextmanager
    def place(self, kind: str, tenant: int) -> Iterator[None]:
        """Hold a place, or be refused."""
        self.take(kind, tenant)
        try:
            yield
        finally:
            self.give_back(kind, tenant)

    def has_place(self, kind: str, tenant: int) -> bool:
        limits = self._limits[kind]
        return (
            self._taken[kind][tenant] < limits.tenant_max and self._totals[kind] < limits.total_max
        )

    def take(self, kind: str, tenant: int) -> None:
        limits, taken = self._limits[kind], self._taken[kind]
        if taken[tenant] >= limits.tenant_max:
            raise _full(limits, f"You have {limits.tenant_max}")
        if self._totals[kind] >= limits.total_max:
            raise _full(limits, f"This server has {limits.total_max}")
        taken[tenant] += 1
        self._count(kind, 1)

    def give_back(self, kind: str, tenant: int) -> None:
        taken = self._taken[kind]
        taken[tenant] -= 1
        if not taken[tenant]:
            del taken[tenant]
        self._count(kind, -1)

    def _count(self, kind: str, change: int) -> None:
        self._totals[kind] += change
        self._metrics.waits.labels(kind).set(self._totals[kind])


class HeavyLane:
    """What computes for long without a pause: in a thread, one at a time, few of one tenant.

    Shared workers have a lane of their own, and are never refused: they wait. Whoever goes away
    while its work is under way keeps the lane and its place until that is done: a thread cannot be
    stopped.
    """

    def __init__(self, rooms: WaitingRoom) -> None:
        self._rooms = rooms
        self._one, self._one_of_staff = asyncio.Semaphore(1), asyncio.Semaphore(1)

    async def run(self, holder: int, work: Callable[[], Result]) -> Result:
        """For a tenant, or for STAFF."""
        lane = self._one_of_staff if holder == STAFF else self._one
        with ExitStack() as held:
            if holder != STAFF:
                held.enter_context(self._rooms.place("heavy", holder))
            await lane.acquire()
            held.callback(lane.release)
            thread = asyncio.create_task(asyncio.to_thread(work), name="heavy")
            until_done = held.pop_all()
            thread.add_done_callback(lambda _: until_done.close())
        return await asyncio.shield(thread)


def waiting_room(settings: Settings, metrics: Metrics) -> WaitingRoom:
    waits = "TOO_MANY_WAITING"
    return WaitingRoom(
        {
            "streams": PlaceLimits(
                settings.streams_per_tenant, settings.streams_max, "TOO_MANY_STREAMS",
                "event streams",
            ),
            "waits": PlaceLimits(
                settings.waits_per_tenant, settings.connections_max, waits, "requests that wait"
            ),
            "heavy": PlaceLimits(HEAVY_TENANT_MAX, HEAVY_MAX, waits, "large bodies on their way"),
        },
        metrics,
    )  # fmt: skip


def _full(limits: PlaceLimits, who_has: str) -> LimitReached:
    return LimitReached(
        f"{who_has} {limits.what} already, as many as there may be.",
        code=limits.code,
        retry_after_seconds=RETRY_SECONDS,
    )
