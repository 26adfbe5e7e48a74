"""Degraded mode: which jobs start while nobody owns their shard, pulled from the store directly.

Without an owner there are no windows and no fair shares of slot-time. A server that does not own
shards stands in once nobody has owned one for a while: tenants with work take turns, a job each,
over all rounds: a slot that comes free goes to whoever was given something the longest ago.
Caps of tenants, holds (pauses, circuits, suspensions) and the limits of keys hold as ever; weights,
floors and reservations do not. Decisions alone: what is there is read, and written, by others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from fairway.core.backlog.priority import AGEING_MS
from fairway.core.backlog.streams import StreamKey
from fairway.core.backoff import backoff_seconds
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob, due_ms_of

ROWS_MAX = 200  # that one pull reads: with the largest payloads in rows, 12 MB
PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0


class UnownedShards:
    """For how long nobody has owned each shard, by the clock of whoever looks.

    Time with an owner takes away as much as time without adds: one that comes for a moment and
    dies again, over and over, keeps nobody from standing in, and one that stays is soon trusted.
    What the store says in a look counts, and nothing else: no look, no judgement, and looks far
    apart say nothing of the time between. So neither a store that was away nor a process that
    stood still makes an owner absent.
    """

    def __init__(self) -> None:
        self._absent_us: dict[ShardId, int] = {}  # without an owner, less the time with one
        self._unowned: frozenset[ShardId] = frozenset()  # in the last look
        self._looked_us: int | None = None

    def forget(self) -> None:
        """The store takes no writes: no owner could have said that it is there."""
        self._absent_us, self._unowned = {}, frozenset()

    def look(
        self, unowned: Iterable[ShardId], now_us: int, patience_us: int, apart_us: int
    ) -> set[ShardId]:
        """These have no owner now; answers those that lacked one for our whole patience.

        Time counts as without an owner when both looks around it saw none, and no more than our
        patience is kept in mind. Looks that are further apart than `apart_us` begin anew.
        """
        if self._looked_us is None or now_us - self._looked_us > apart_us:
            self.forget()
            self._looked_us = now_us
        passed_us, self._looked_us = now_us - self._looked_us, now_us
        now_unowned = frozenset(unowned)
        still = now_unowned & self._unowned
        absent_us = {
            shard: min(before_us + passed_us, patience_us)
            if shard in still
            else max(before_us - passed_us, 0)
            for shard, before_us in self._absent_us.items()
        }
        self._absent_us = {shard: us for shard, us in absent_us.items() if us or shard in still}
        self._absent_us |= dict.fromkeys(now_unowned - self._absent_us.keys(), 0)
        self._unowned = now_unowned
        return {shard for shard in now_unowned if self._absent_us[shard] >= patience_us}


class Taker(NamedTuple):
    """Workers of one kind with free slots: what they can be given."""

    types: frozenset[TypeId]
    tenants: frozenset[TenantId] | None  # whose jobs; None: everybody's
    free: int

    def may_run(self, tenant: TenantId, type_id: TypeId) -> bool:
        return type_id in self.types and (self.tenants is None or tenant in self.tenants)


class Ask(NamedTuple):
    """A wish to read the first jobs of one stream."""

    key: StreamKey
    limit: int


class PullPauses:
    """A shard's pool whose pull failed rests, ever longer: the others have their turn meanwhile."""

    def __init__(self) -> None:
        self._failures: dict[tuple[ShardId, PoolId], int] = {}  # in a row
        self._until_us: dict[tuple[ShardId, PoolId], int] = {}

    def __bool__(self) -> bool:
        """Whether any of them rests, or has not worked since."""
        return bool(self._failures)

    def is_over(self, shard: ShardId, pool: PoolId, now_us: int) -> bool:
        return now_us >= self._until_us.get((shard, pool), now_us)

    def failed(self, shard: ShardId, pool: PoolId, now_us: int) -> None:
        place = shard, pool
        self._failures[place] = count = self._failures.get(place, 0) + 1
        seconds = backoff_seconds(PAUSE_FIRST_SECONDS, count, PAUSE_MAX_SECONDS)
        self._until_us[place] = now_us + round(seconds * 1e6)

    def worked(self, shard: ShardId, pool: PoolId) -> None:
        self._failures.pop((shard, pool), None)
        self._until_us.pop((shard, pool), None)

    def clear(self) -> None:
        """Nobody pulls any more."""
        self._failures.clear()
        self._until_us.clear()


class PullTurns:
    """Whose turn it is, over many rounds that each have few slots."""

    def __init__(self) -> None:
        self._count = 0
        self._last: dict[TenantId, int] = {}  # tenant → when it was given something, in turns

    def order(self, tenants: Iterable[TenantId]) -> list[TenantId]:
        """Who was given something the longest ago goes first."""
        return sorted(tenants, key=lambda tenant: (self._last.get(tenant, 0), tenant))

    def had(self, tenant: TenantId) -> None:
        self._count += 1
        self._last[tenant] = self._count


def asks_for(
    heads: Iterable[StreamKey],
    takers: Sequence[Taker],
    rooms: Mapping[TenantId, int],
    is_held: Callable[[StreamKey], bool],
) -> list[Ask]:
    """What to read of streams with work: of every tenant as much, as far as it may run more.

    `rooms` says how many more of each tenant's jobs may run. All of it is bounded, however many
    slots are free: what is left over is asked for in the next round.
    """
    wanted = [
        key
        for key in heads
        if rooms.get(key.tenant, 0) > 0
        and any(one.may_run(key.tenant, key.type) for one in takers)
        and not is_held(key)
    ][:ROWS_MAX]
    if not wanted:
        return []
    slots = min(sum(one.free for one in takers), ROWS_MAX)
    each = -(-slots // len({key.tenant for key in wanted}))
    each = max(min(each, ROWS_MAX // len(wanted)), 1)
    return [Ask(key, min(each, rooms[key.tenant])) for key in wanted]


def startable(jobs: Iterable[QueuedJob], may_start: Callable[[QueuedJob], bool]) -> list[QueuedJob]:
    """Those that may start; of a tenant's jobs with limits of their keys one at a time.

    The next round knows that it runs, and asks whether its key has room for another.
    """
    found: list[QueuedJob] = []
    limited: set[TenantId] = set()
    for job in jobs:
        if job.tenant in limited and job.limits is not None:
            continue
        if may_start(job):
            found.append(job)
            if job.limits is not None:
                limited.add(job.tenant)
    return found


def deal(
    jobs: Collection[QueuedJob],
    takers: Sequence[Taker],
    rooms: Mapping[TenantId, int],
    turns: PullTurns,
) -> list[tuple[QueuedJob, int]]:
    """Who is given what, as (job, number of its taker): tenants take turns, a job each.

    Inside a tenant a higher priority goes first, and waiting makes up for it, as ever.
    """
    lines: dict[TenantId, deque[QueuedJob]] = {}
    for job in sorted(jobs, key=_rank):
        lines.setdefault(job.tenant, deque()).append(job)
    free, room = [one.free for one in takers], dict(rooms)
    dealt: list[tuple[QueuedJob, int]] = []
    waiting = deque(turns.order(lines))
    while waiting:
        tenant = waiting.popleft()
        if room.get(tenant, 0) <= 0:
            continue
        found = _next_of(lines[tenant], takers, free)
        if found is not None:
            dealt.append(found)
            free[found[1]] -= 1
            room[tenant] -= 1
            turns.had(tenant)
            waiting.append(tenant)
    return dealt


def _next_of(
    line: deque[QueuedJob], takers: Sequence[Taker], free: Sequence[int]
) -> tuple[QueuedJob, int] | None:
    """The first of a tenant's jobs that somebody has a slot for; those before it wait on."""
    while line:
        job = line.popleft()
        for number, taker in enumerate(takers):
            if free[number] > 0 and taker.may_run(job.tenant, job.type):
                return job, number
    return None


def _rank(job: QueuedJob) -> tuple[int, str]:
    return due_ms_of(job) - job.priority * AGEING_MS, job.id
