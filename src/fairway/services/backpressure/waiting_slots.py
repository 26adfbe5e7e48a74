"""Places for what waits: event streams, held requests, heavy bodies; so many each and in all.

Whoever waits costs memory and a connection, not work; so nobody is refused for its rate here, only
for how many are there already. A place is free again when whatever held it ends, however it ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeVar

from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics
from fairway.services.backpressure.owner_slots import OwnerSlots

RETRY_SECONDS = 5
HEAVY_RETRY_SECONDS = 1  # this line moves quickly
HEAVY_TENANT_MAX, HEAVY_MAX = 64, 512
MANY_WAITS_TENANT_MAX, MANY_WAITS_MAX = 32, 512  # each watches up to a thousand jobs
DOWNLOADS_TENANT_MAX, DOWNLOADS_MAX = 32, 128  # each holds a few pieces
HEAVY_TENANT_BYTES = 64 << 20  # of bodies that wait in memory
HEAVY_BYTES, HEAVY_SHARED_BYTES = 256 << 20, 128 << 20  # the rest is for who has none there yet
LONG_LOOKS_MAX = 2  # each leaves others twice as long as it takes

Result = TypeVar("Result")


class WaitLimits(NamedTuple):
    tenant_max: int
    total_max: int
    code: str
    what: str
    retry_seconds: int = RETRY_SECONDS
    staff_places: int = 0  # that tenants leave free: whatever they do, an operator can look
    staff_max: int | None = None  # of all operators; None: as of a tenant
    staff_key_max: int | None = None  # of one operator's key: the other operators can look, too

    def most_of(self, holder: TenantId) -> int:
        if holder == STAFF and self.staff_max is not None:
            return self.staff_max
        return self.tenant_max


class WaitingRoom:
    def __init__(self, limits: dict[str, WaitLimits], metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._taken: dict[str, Counter[TenantId]] = {kind: Counter() for kind in limits}
        self._of_key: dict[str, Counter[str]] = {kind: Counter() for kind in limits}  # staff's
        self._totals = dict.fromkeys(limits, 0)

    @contextmanager
    def slot(self, kind: str, tenant: TenantId, key_id: str = "") -> Iterator[None]:
        """Hold a place, or be refused. STAFF's are counted by key as well."""
        self.take(kind, tenant)
        try:
            with self._key_place(kind, key_id if tenant == STAFF else ""):
                yield
        finally:
            self.give_back(kind, tenant)

    @contextmanager
    def _key_place(self, kind: str, key_id: str) -> Iterator[None]:
        limits, taken = self._limits[kind], self._of_key[kind]
        if not key_id or limits.staff_key_max is None:
            yield
            return
        if taken[key_id] >= limits.staff_key_max:
            raise _full(limits, f"Your key has {limits.staff_key_max}")
        taken[key_id] += 1
        try:
            yield
        finally:
            taken[key_id] -= 1
            if not taken[key_id]:
                del taken[key_id]

    def has_slot(self, kind: str, tenant: TenantId) -> bool:
        is_below = self._taken[kind][tenant] < self._limits[kind].most_of(tenant)
        return is_below and self._has_room(kind, tenant)

    def _has_room(self, kind: str, tenant: TenantId) -> bool:
        limits, total = self._limits[kind], self._totals[kind]
        if tenant == STAFF or total >= limits.total_max:
            return total < limits.total_max
        return total - self._taken[kind][STAFF] < limits.total_max - limits.staff_places

    def take(self, kind: str, tenant: TenantId) -> None:
        limits, taken = self._limits[kind], self._taken[kind]
        if taken[tenant] >= (most := limits.most_of(tenant)):
            raise _full(limits, f"You have {most}" if tenant != STAFF else f"Operators have {most}")
        if not self._has_room(kind, tenant):
            raise _full(limits, f"This server has {limits.total_max}")
        taken[tenant] += 1
        self._count(kind, 1)

    def give_back(self, kind: str, tenant: TenantId) -> None:
        taken = self._taken[kind]
        taken[tenant] -= 1
        if not taken[tenant]:
            del taken[tenant]
        self._count(kind, -1)

    def _count(self, kind: str, change: int) -> None:
        self._totals[kind] += change
        self._metrics.waits.labels(kind).set(self._totals[kind])


class HeavyWork:
    """What computes for long without a pause: in a thread, one at a time, tenants in turn.

    Who finds it taken stands in line, as long as there is room for its bytes to wait.

    Shared workers have a lane of their own, and are never refused: they wait. Whoever goes away
    while its work is under way keeps the lane and its place until that is done: a thread cannot be
    stopped.
    """

    def __init__(self, rooms: WaitingRoom) -> None:
        self._rooms = rooms
        self._turns, self._turns_of_staff = Turns(), Turns()
        self._bytes: Counter[TenantId] = Counter()
        self._total_bytes = 0

    async def run(
        self, holder: TenantId, work: Callable[[], Result], size_bytes: int = 0
    ) -> Result:
        """For a tenant, or for STAFF; so much waits in memory meanwhile."""
        turns = self._turns_of_staff if holder == STAFF else self._turns
        with ExitStack() as held:
            if holder != STAFF:
                held.enter_context(self._rooms.slot("heavy", holder))
                held.enter_context(self._room_for(holder, size_bytes))
            await turns.take(holder)
            held.callback(turns.give_back)
            thread = asyncio.create_task(asyncio.to_thread(work), name="heavy")
            until_done = held.pop_all()
            thread.add_done_callback(lambda _: until_done.close())
        return await asyncio.shield(thread)

    @contextmanager
    def _room_for(self, tenant: TenantId, size_bytes: int) -> Iterator[None]:
        held = self._bytes.get(tenant, 0)
        if held and held + size_bytes > HEAVY_TENANT_BYTES:
            raise _heavy(f"{held >> 20} MB of your large bodies are in line already")
        bytes_max = HEAVY_SHARED_BYTES if held else HEAVY_BYTES
        if self._total_bytes + size_bytes > bytes_max:
            raise _heavy("This server has as many bytes of large bodies in line as it may have")
        self._bytes[tenant] += size_bytes
        self._total_bytes += size_bytes
        try:
            yield
        finally:
            self._total_bytes -= size_bytes
            self._bytes[tenant] -= size_bytes
            if not self._bytes[tenant]:
                del self._bytes[tenant]


class Turns:
    """One at a time. Tenants take turns, and of one tenant's the first goes first."""

    def __init__(self) -> None:
        self._is_taken = False
        # whose turn is next comes first
        self._lines: dict[TenantId, deque[asyncio.Future[None]]] = {}

    async def take(self, tenant: TenantId) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(tenant, deque()).append(mine)
        try:
            await mine
        except BaseException:
            if mine.cancelled():
                self._leave(tenant, mine)
            else:  # the turn came in the moment of leaving
                self.give_back()
            raise

    def give_back(self) -> None:
        if not self._lines:
            self._is_taken = False
            return
        tenant = next(iter(self._lines))
        line = self._lines.pop(tenant)
        following = line.popleft()
        if line:
            self._lines[tenant] = line  # behind all others
        if following.done():  # it is about to leave
            self.give_back()
        else:
            following.set_result(None)

    def _leave(self, tenant: TenantId, mine: asyncio.Future[None]) -> None:
        line = self._lines.get(tenant)
        if line is not None and mine in line:
            line.remove(mine)
            if not line:
                del self._lines[tenant]


def long_looks() -> OwnerSlots:
    """For what is light but many: looked at in parts, between other requests. Of one tenant one at
    a time; as many as it has connections would leave nobody else a turn."""
    return OwnerSlots(
        "long requests of yours are being looked at", per_owner=1, in_all=LONG_LOOKS_MAX
    )


def waiting_room(settings: Settings, metrics: Metrics) -> WaitingRoom:
    waits = "TOO_MANY_WAITING"
    return WaitingRoom(
        {
            "streams": WaitLimits(
                settings.streams_per_tenant,
                settings.streams_max,
                "TOO_MANY_STREAMS",
                "event streams",
                staff_places=settings.streams_max // 10,
                staff_max=settings.streams_max // 2,
                staff_key_max=max(settings.streams_per_tenant // 2, 1),
            ),
            "waits": WaitLimits(
                settings.waits_per_tenant, settings.connections_max, waits, "requests that wait"
            ),
            "many_waits": WaitLimits(
                MANY_WAITS_TENANT_MAX, MANY_WAITS_MAX, waits, "requests that wait for many jobs"
            ),
            "downloads": WaitLimits(
                DOWNLOADS_TENANT_MAX, DOWNLOADS_MAX, waits, "large texts on their way out"
            ),
            "payloads": WaitLimits(
                DOWNLOADS_MAX, DOWNLOADS_MAX, waits, "large payloads on their way to workers"
            ),
            "heavy": WaitLimits(
                HEAVY_TENANT_MAX, HEAVY_MAX, waits, "large bodies in line", HEAVY_RETRY_SECONDS
            ),
        },
        metrics,
    )


def _heavy(sentence: str) -> LimitReached:
    return LimitReached(
        f"{sentence}; send this one when some have been looked at.",
        code="TOO_MANY_WAITING",
        retry_after_seconds=HEAVY_RETRY_SECONDS,
    )


def _full(limits: WaitLimits, who_has: str) -> LimitReached:
    return LimitReached(
        f"{who_has} {limits.what} already, as many as there may be.",
        code=limits.code,
        retry_after_seconds=limits.retry_seconds,
    )
