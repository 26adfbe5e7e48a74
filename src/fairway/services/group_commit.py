"""Group commit: everyone who arrives while a write is under way shares the next one.

Nobody waits when it is quiet, and groups grow by themselves when it is not. A group that takes long
holds up those that come after it for a moment only, while there is a lane left. The items' own
flush function owns the transaction and tells each item how it went; nothing is lost in silence.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, Literal, NamedTuple, TypeVar

from fairway.core.backpressure.arrivals import Arrivals
from fairway.core.ids import ShardId
from fairway.runtime.telemetry import Instruments, logger
from fairway.store.connections.database import Database

Item = TypeVar("Item")

JOBS_MAX = 2000  # in one commit
BYTES_MAX = 4 << 20  # in one commit, unless one item has more: all in it wait for all of it
FULL_JOBS = 400  # a group of this size need not wait for more
LINGER_MIN = 8  # linger only if recent groups were at least this large, in jobs or in items
ENDS_PER_SECOND_MIN = 100  # in all processes: two or more of so many meet within a linger
PROCESSES_MAX = 4  # that patience grows with: nobody waits longer for the sake of more
PATIENCE_SECONDS = 0.25  # a group that is under way for longer is not waited for
log = logger("group_commit")


class Sizes(NamedTuple, Generic[Item]):
    """How large an item is, where items are not one small job each."""

    jobs: Callable[[Item], int]
    bytes: Callable[[Item], int]


class Lingering(NamedTuple):
    """How long groups wait for more to come."""

    seconds: float = 0.0
    recent_min: float = LINGER_MIN  # they linger when recent ones had as many or more
    times_max: float = 1.0  # as many times as long as recent ones had, but so many at most
    #: Or, however few recent ones had, when as many come a second and do meet while they linger.
    per_second_min: float = math.inf
    #: What their size is counted in when it is asked whether more is likely to come: an item of
    #: many jobs that comes alone need not wait for others.
    counts: Literal["jobs", "items"] = "jobs"

    def times(self, recent: float) -> float:
        return min(max(recent, 1.0), self.times_max)


class GroupCommit(Generic[Item]):
    def __init__(
        self,
        kind: str,
        flush: Callable[[list[Item]], Awaitable[None]],
        *,
        instruments: Instruments,
        sizes: Sizes[Item] | None = None,
        writes_max: int = 1,
        linger: Lingering | None = None,
    ) -> None:
        linger = linger or Lingering()
        self.kind = kind
        self._flush = flush
        self._clock = instruments.clock
        self._jobs_seen = instruments.metrics.commit_jobs.labels(kind)
        self._seconds_seen = instruments.metrics.commit_seconds.labels(kind)
        self._sizes = sizes  # None: one small job each
        self._writes_max = writes_max
        self._linger = linger
        self._counts_items = linger.counts == "items"
        self._meets_by_rate = linger.per_second_min < math.inf
        self._items: list[Item] = []
        self._taken = 0  # items that went on their way, of all times
        self._jobs_gathered = 0  # in items, not under way yet
        self._recent = 0.0  # how large groups were lately
        self._arrivals = Arrivals(linger.per_second_min)
        self._pump_due = False
        self._pump_at = 0.0  # by the loop's clock, of those that linger
        self._timer: asyncio.Handle | None = None  # of that; there is one at most
        self._is_awaited = False  # one of those that linger
        self._look_due = False
        self._begun_us = 0  # when the last group went on its way
        self._busy: set[asyncio.Task[None]] = set()
        self.jobs_waiting = 0

    def add(self, item: Item) -> None:
        self._items.append(item)
        self._added(1 if self._sizes is None else self._sizes.jobs(item))

    def add_many(self, items: list[Item]) -> None:
        self._items += items
        self._added(self._jobs_in(items))

    def hurry(self) -> None:
        """Somebody waits for one of these: they linger no longer than one that comes alone."""
        if self._is_awaited or not self._items or self._linger.times_max <= 1:
            return  # what is under way already lingers no more, and the next may
        self._is_awaited = True
        # One that comes alone lingers where recent groups were large, else not at all.
        seconds = self._linger.seconds if self._recent >= self._linger.recent_min else 0.0
        if self._pump_due and asyncio.get_running_loop().time() + seconds < self._pump_at:
            self._pump_later(seconds)

    def keep_moving(self) -> None:
        """Others begin when such as these are written: for a while none lingers for the rate."""
        self._arrivals.rest(self._clock.now_us())

    def _added(self, jobs: int) -> None:
        self._jobs_gathered += jobs
        self.jobs_waiting += jobs
        if self._meets_by_rate:
            self._arrivals.came(jobs, self._clock.now_us())
        self._schedule()

    def withdraw(self, is_gone: Callable[[Item], bool]) -> list[Item]:
        """Those of them that are not under way yet: they will not be."""
        gone = [item for item in self._items if is_gone(item)]
        if gone:
            self._items = [item for item in self._items if not is_gone(item)]
            self._taken += len(gone)
            jobs = self._jobs_in(gone)
            self._jobs_gathered -= jobs
            self.jobs_waiting -= jobs
        return gone

    def _jobs_in(self, items: list[Item]) -> int:
        return len(items) if self._sizes is None else sum(map(self._sizes.jobs, items))

    def _schedule(self) -> None:
        """Begin a commit soon, if one may begin: at once when it is quiet, else after a moment."""
        if self._pump_due:
            return
        if not self._may_begin():
            self._look_later()
            return
        if not self._are_others_likely():
            self._pump()  # a turn of the event loop may take longer than the commit
            return
        self._pump_due = True
        if self._jobs_gathered < FULL_JOBS:
            self._pump_later(self._linger.seconds * self._times())
        else:
            self._pump_later(0.0)

    def _are_others_likely(self) -> bool:
        if self._recent >= self._linger.recent_min:
            return True
        if self._is_awaited or not self._meets_by_rate:
            return False
        return self._arrivals.is_likely(self._clock.now_us())

    def _times(self) -> float:
        """As long as one linger, or several."""
        if self._is_awaited:
            return 1.0
        is_by_rate = self._recent < self._linger.recent_min
        return self._linger.times_max if is_by_rate else self._linger.times(self._recent)

    def _pump_later(self, seconds: float) -> None:
        """Instead of when it was due: a timer that is left would cut the next group short."""
        loop = asyncio.get_running_loop()
        self._forget_timer()
        self._pump_at = loop.time() + seconds
        self._timer = (
            loop.call_later(seconds, self._pump) if seconds else loop.call_soon(self._pump)
        )

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _may_begin(self) -> bool:
        """One commit at a time makes larger groups; a further lane is for groups that are large,
        and for those that come while one stands still."""
        if not self._busy:
            return True
        if len(self._busy) >= self._writes_max:
            return False
        if self._jobs_gathered >= FULL_JOBS:
            return True
        # When a look is due, it comes the moment that patience is over: nobody need ask before.
        return not self._look_due and self._patience_seconds() <= 0

    def _patience_seconds(self) -> float:
        """How long the last group is still waited for."""
        return PATIENCE_SECONDS - (self._clock.now_us() - self._begun_us) / 1e6

    def _look_later(self) -> None:
        """Nobody may come by when patience is over."""
        if not self._look_due and len(self._busy) < self._writes_max:
            self._look_due = True
            seconds = max(self._patience_seconds(), 0.001)  # timers may be early by as much
            asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._look_due = False
        if self._items:
            self._schedule()

    def _pump(self) -> None:
        if self._pump_due and self._meets_by_rate and not self._is_awaited:
            self._arrivals.met(self._jobs_gathered, self._clock.now_us())
        self._forget_timer()
        self._pump_due = False
        while self._items and self._may_begin():
            group = self._take()
            jobs = self._jobs_in(group)
            self._jobs_gathered -= jobs
            self._recent += ((len(group) if self._counts_items else jobs) - self._recent) / 4
            self._begun_us = self._clock.now_us()
            task = asyncio.create_task(self._commit(group, jobs), name=f"commit:{self.kind}")
            self._busy.add(task)
            task.add_done_callback(self._done)
        self._is_awaited &= bool(self._items)
        if self._items:  # nobody may come by, should what is under way stand still
            self._look_later()

    def _take(self) -> list[Item]:
        """As many items as make one group; at least one."""
        end = JOBS_MAX if self._sizes is None else self._end_of_group(self._sizes)
        group, self._items = self._items[:end], self._items[end:]
        self._taken += len(group)
        return group

    def _end_of_group(self, sizes: Sizes[Item]) -> int:
        jobs = weight_bytes = 0
        for index, item in enumerate(self._items):
            jobs += sizes.jobs(item)
            weight_bytes += sizes.bytes(item)
            if index and (jobs > JOBS_MAX or weight_bytes > BYTES_MAX):
                return index
        return len(self._items)

    async def _commit(self, group: list[Item], jobs: int) -> None:
        began_us = self._clock.now_us()
        try:
            await self._flush(group)
        finally:
            self.jobs_waiting -= jobs
            self._jobs_seen.observe(jobs)
            self._seconds_seen.observe((self._clock.now_us() - began_us) / 1e6)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("group commit failed", kind=self.kind, error=repr(error))
        if self._items:
            self._schedule()

    async def drain(self) -> None:
        """Wait until everything that was added is on its way out and done."""
        while self._items or self._busy:
            self._pump()
            await asyncio.gather(*self._busy, return_exceptions=True)

    async def settle(self) -> None:
        """Wait until all that was added by now is done, whatever comes meanwhile."""
        last = self._taken + len(self._items)
        while self._taken < last:
            self._pump()
            if self._taken < last:
                await asyncio.wait(set(self._busy), return_when=asyncio.FIRST_COMPLETED)
        if self._busy:
            await asyncio.wait(set(self._busy))


def together_of(database: Database) -> Callable[[ShardId], int | None] | None:
    """Which shards one statement may name; None, at once, where it may name all."""
    is_one = database.placement is None and not database.by_shard
    return None if is_one else database.together


def linger_of_submissions(*, is_distributed: bool, is_heavy: bool) -> Lingering:
    """How jobs that were handed in wait a moment for others; who hands in waits, too.

    On a distributed store those that came together are of one part, so there are fewer of them, and
    a statement costs there as much for one as for ten.
    """
    if is_distributed and not is_heavy:
        return Lingering(0.004, recent_min=2, counts="items")
    return Lingering(0.002, counts="jobs" if is_heavy else "items")


def linger_of_ends(*, is_distributed: bool, processes: int) -> Lingering:
    """How ends wait a moment for others; who asks for a result waits, too.

    On a distributed store there are as many groups as it has parts, and each statement is planned
    anew, twice: what it costs hardly depends on how many ends it carries. So they wait longer when
    many come, unless somebody waits for one of them (`GroupCommit.hurry`).

    Several processes share what comes: each sees its part, and would make as many writes by itself
    as one makes of all. So each lingers for as much longer, and at its part.

    With many shards a statement books a row for each of those that it has ends of: of few ends
    nearly a row an end. So they wait twice as long for others, unless somebody waits for one.

    A statement for one end costs as much as all else of a job together. So they wait, too, where
    each would go alone but many come a second, if others do come meanwhile (`Arrivals`).
    """
    if is_distributed:
        return Lingering(0.050, recent_min=0, times_max=4)
    shared_by = min(max(processes, 1), PROCESSES_MAX)
    return Lingering(
        0.010 * shared_by,
        recent_min=LINGER_MIN / shared_by,
        times_max=2,
        per_second_min=ENDS_PER_SECOND_MIN / shared_by,
    )


class ShardCommits(Generic[Item]):
    """One group commit for all shards that a statement may name together (`Database.together`): all
    of them, those of one node, or each for itself. What goes wrong with one holds up no other."""

    def __init__(
        self,
        make: Callable[[], GroupCommit[Item]],
        shard_of: Callable[[Item], ShardId],
        together: Callable[[ShardId], int | None] | None,
        is_any_awaited: Callable[[list[Item]], bool] | None = None,
    ) -> None:
        """`is_any_awaited`: whether somebody waits for one of these."""
        self._make = make
        self._shard_of = shard_of
        self._together = together  # None: all of them are
        self._is_any_awaited = is_any_awaited
        self._groups: dict[int | None, GroupCommit[Item]] = {}

    def add_many(self, items: list[Item]) -> None:
        if self._together is None:
            self._add_to(None, items)
            return
        parts: dict[int | None, list[Item]] = {}
        for item in items:
            parts.setdefault(self._together(self._shard_of(item)), []).append(item)
        for key, part in parts.items():
            self._add_to(key, part)

    def _add_to(self, key: int | None, items: list[Item]) -> None:
        group = self._group(key)
        group.add_many(items)
        if self._is_any_awaited is not None and self._is_any_awaited(items):
            group.hurry()

    def keep_moving(self) -> None:
        for group in self._groups.values():
            group.keep_moving()

    def _group(self, key: int | None) -> GroupCommit[Item]:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._make()
        return group

    def withdraw(self, shards: Collection[ShardId]) -> list[Item]:
        """All of these shards that is not under way yet."""
        gone = frozenset(shards)
        groups = self._groups.values()
        found = (group.withdraw(lambda item: self._shard_of(item) in gone) for group in groups)
        return [item for part in found for item in part]

    async def drain(self) -> None:
        """Wait until nothing is left."""
        await asyncio.gather(*(group.drain() for group in self._groups.values()))

    async def settle(self, shards: Collection[ShardId]) -> None:
        """Wait for all of these shards that was added by now.

        One group may hold rows of other shards, too: for those that come later nobody waits.
        """
        together = self._together
        named = {None} if together is None else {*map(together, shards)}
        wanted = [group for key, group in self._groups.items() if key in named]
        await asyncio.gather(*(group.settle() for group in wanted))
