"""Starts by key within a while: so many in any stretch of that length, not only on average.

A window remembers when it let jobs start, near ones as one mark that is as young as the last of
them: so it is never too generous, costs the same however many start, and is at most a sixteenth
of its length too late. Of a tenant the keys that it used last are remembered, and so many of all
tenants, of which nobody has more than half of what the others leave; those whose while is over are
forgotten.

An owner that lets a shard go saves what it knows, in so many bytes: tenants with little first, so
that one with very many keys shuts out itself alone. A new owner that finds nothing saved does not
know what started before it came: every key is closed until its length has passed since, but for a
minute at most.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import TypeAlias

import msgspec
from msgspec import Struct

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards

MARKS = 16
NO_BOUND = 1 << 62
KEYS_TOTAL = 100_000
KEYS_PER_TENANT = 10_000
_WINDOW_BYTES = 16  # of a saved one, beside its key and marks
KEYS_PER_LOOK = 2_000  # half a millisecond
LET_GO_PART = 16  # where there are too many: one of so many goes, for it takes as long as one
CLOSED_US_MAX = 60_000_000  # after a change of owner

SAVED_BYTES_MAX = 256 << 10  # about that, of a shard

RateName: TypeAlias = tuple[str, int]  # key, length in milliseconds


class SavedWindow(Struct, frozen=True, array_like=True, gc=False):
    tenant: TenantId
    key: str
    length_ms: int
    marks: list[int]  # of each its first start, its last, and how many; as microseconds ago


class SavedRates(Struct, frozen=True, array_like=True):
    """What an owner knew as it let a shard go."""

    windows: list[SavedWindow]
    unknown: list[TenantId]  # tenants whose windows did not fit
    known_for_us: int | None = None  # it owned the shard for so long; None: from its beginning


pack_rates = msgspec.msgpack.Encoder().encode
unpack_rates = msgspec.msgpack.Decoder(SavedRates).decode


class StartWindow(Struct, eq=False, gc=False):
    """One key's starts. The newest mark is at hand; only a busy key has older ones."""

    length_us: int
    first_us: int  # of the newest mark
    last_us: int
    seen_us: int  # `last_us` when its place among other keys was found
    used: int = 1  # starts that counted when it was looked at last
    # Of each older mark its first start, its last, and how many: flat, for there are many.
    older: array[int] | None = None

    def slide(self, now_us: int) -> int:
        """How many of the starts still count."""
        length_us, older = self.length_us, self.older
        if now_us - self.last_us >= length_us:
            self.used, self.older = 0, None
        elif older is not None:
            while older and now_us - older[1] >= length_us:
                self.used -= older[2]
                del older[:3]
        return self.used

    def add(self, now_us: int, most: int = NO_BOUND) -> bool:
        """One more start beside some that count, if those are fewer than `most`; answers so."""
        length_us = self.length_us
        if self.older is not None:
            self.slide(now_us)
        if self.used >= most:
            return False
        if now_us - self.first_us < length_us // MARKS:
            self.last_us = max(self.last_us, now_us)
        else:
            self._add_mark(now_us)
        self.used += 1
        return True

    def _add_mark(self, now_us: int) -> None:
        if self.older is None:
            self.older = array("q", (self.first_us, self.last_us, self.used))
        else:
            count = self.used - sum(self.older[2::3])
            self.older.extend((self.first_us, self.last_us, count))
        self.first_us = self.last_us = now_us

    def opens_us(self, now_us: int) -> int:
        """When the next of its starts is forgotten."""
        if not self.slide(now_us):
            return now_us
        return (self.older[1] if self.older else self.last_us) + self.length_us

    @property
    def marks(self) -> list[int]:
        """Of each its first start, its last, and how many."""
        older = self.older.tolist() if self.older else []
        return [*older, self.first_us, self.last_us, self.used - sum(older[2::3])]

    def save(self, now_us: int) -> list[int]:
        """Its marks, with times as microseconds ago."""
        return [one if n % 3 == 2 else now_us - one for n, one in enumerate(self.marks)]

    def restore(self, saved: list[int], saved_us: int) -> None:
        """As they were at that moment."""
        marks = array("q", (one if n % 3 == 2 else saved_us - one for n, one in enumerate(saved)))
        self.first_us, self.last_us, _ = marks[-3:]
        self.older = marks[:-3] or None
        self.used = sum(marks[2::3])


#: A key with one start that counts, as most have, is that moment alone: with very many keys it is
#: their memory that takes time to reach.
Known: TypeAlias = StartWindow | int


class KeyWindows:
    """Of one tenant, in two generations: keys that started since the last turn, and those that did
    so before it and not since. At a turn nothing of the older ones counts any more, so they go all
    at once: nobody looks at each of them."""

    __slots__ = ("before", "longest_ms", "now", "turns_us")

    def __init__(self) -> None:
        self.now: dict[RateName, Known] = {}
        self.before: dict[RateName, Known] = {}
        self.turns_us = 0  # the older ones are over then, whatever their lengths
        self.longest_ms = 0  # of the younger ones

    def __len__(self) -> int:
        return len(self.now) + len(self.before)

    def items(self) -> Iterator[tuple[RateName, Known]]:
        """Those that started longest ago first, as far as is known."""
        return chain(self.before.items(), self.now.items())

    def get(self, name: RateName) -> Known | None:
        known = self.now.get(name)
        return self.before.get(name) if known is None else known

    def put(self, name: RateName, known: Known) -> None:
        """A start of it, which may have been here before."""
        if self.before:
            self.before.pop(name, None)
        self.now[name] = known
        self.longest_ms = max(self.longest_ms, name[1])

    def turn(self, now_us: int) -> None:
        """It is time: see `turns_us`."""
        self.before, self.now = self.now, {}
        self.turns_us, self.longest_ms = now_us + self.longest_ms * 1000, 0

    def drop(self, name: RateName) -> None:
        if self.now.pop(name, None) is None:
            del self.before[name]


def _last_us(known: Known) -> int:
    return known if isinstance(known, int) else known.last_us


def _window(name: RateName, known: Known) -> StartWindow:
    """The same, whole."""
    if isinstance(known, int):
        return StartWindow(name[1] * 1000, known, known, known)
    return known


def _is_over(name: RateName, known: Known, now_us: int) -> bool:
    return now_us - _last_us(known) >= name[1] * 1000


def _was_not_used(known: Known) -> bool:
    """Since its place among others was found; of a lone start, perhaps."""
    return isinstance(known, int) or known.seen_us == known.last_us


def _older_half(some: list[tuple[RateName, Known]]) -> list[RateName]:
    """The names of those whose last start is longest ago."""
    some.sort(key=lambda each: _last_us(each[1]))
    return [name for name, _ in some[: (len(some) + 1) // 2]]


class StartRates:
    def __init__(self, keys_total: int = KEYS_TOTAL) -> None:
        self._keys_total = keys_total
        # Of tenants, who was looked at longest ago comes first; of its keys, the one used so: they
        # are put in order only as room is looked for, so that a start costs nothing for it.
        self._windows: OrderedDict[TenantId, KeyWindows] = OrderedDict()
        self._keys = 0
        self._tenant_shards = TenantShards(1)
        # by shard: before that another may have let jobs start
        self._owner_since_us: dict[ShardId, int] = {}
        self._unknown_since_us: dict[TenantId, int] = {}  # the same, of tenants that did not fit
        self._last_since_us = -NO_BOUND  # the youngest of those: a while later its keys are open

    def begin_anew(self, shard: ShardId, tenant_shards: TenantShards, now_us: int) -> None:
        """Another may have let jobs of this shard's tenants start until now; of no others."""
        self._tenant_shards = tenant_shards
        self._owner_since_us[shard] = now_us
        self._last_since_us = max(self._last_since_us, now_us)
        self._forget(shard)

    def _forget(self, shard: ShardId) -> None:
        for tenant in [one for one in self._windows if self.home(one) == shard]:
            self._keys -= len(self._windows.pop(tenant))
        if self._unknown_since_us:
            kept = self._unknown_since_us.items()
            self._unknown_since_us = {one: us for one, us in kept if self.home(one) != shard}

    # -- over a change of owner ------------------------------------------------------------------

    def save(
        self, shards: Collection[ShardId], tenant_shards: TenantShards, now_us: int
    ) -> dict[ShardId, SavedRates]:
        """What is known of each of these, for its next owner."""
        self._tenant_shards = tenant_shards
        homes: dict[ShardId, list[tuple[int, TenantId]]] = defaultdict(list)
        for tenant, mine in self._windows.items():
            if (home := self.home(tenant)) in shards:
                homes[home].append((len(mine), tenant))
        return {shard: self._saved(shard, sorted(homes[shard]), now_us) for shard in shards}

    def _saved(
        self, shard: ShardId, tenants: list[tuple[int, TenantId]], now_us: int
    ) -> SavedRates:
        """Those with the fewest keys first."""
        since_us, left_bytes = self._owner_since_us.get(shard), SAVED_BYTES_MAX
        # After a minute what is known of a tenant is as much as ever will be, and is handed on.
        lost = self._unknown_since_us.items()
        unknown = {one for one, us in lost if now_us - us < CLOSED_US_MAX}
        unknown = {one for one in unknown if self.home(one) == shard}
        windows: list[SavedWindow] = []
        for _, tenant in tenants:
            known = self._windows[tenant].items()
            mine = [
                SavedWindow(tenant, *name, window.save(now_us))
                for name, window in ((name, _window(name, one)) for name, one in known)
                if left_bytes > 0 and window.slide(now_us)
            ]
            left_bytes -= sum(_WINDOW_BYTES + len(one.key) + 4 * len(one.marks) for one in mine)
            if left_bytes > 0 and tenant not in unknown:
                windows += mine
            else:
                unknown.add(tenant)
        known_for_us = None if since_us is None else now_us - since_us
        return SavedRates(windows, sorted(unknown), known_for_us)

    def restore(
        self, shard: ShardId, tenant_shards: TenantShards, saved: SavedRates, saved_us: int
    ) -> None:
        """As its last owner knew it at that moment: nothing has started in it since."""
        self._tenant_shards = tenant_shards
        self._forget(shard)
        self._owner_since_us.pop(shard, None)
        if saved.known_for_us is not None:
            self._owner_since_us[shard] = saved_us - saved.known_for_us
        self._last_since_us = max(self._last_since_us, saved_us)
        self._unknown_since_us.update((one, saved_us) for one in saved.unknown)
        for one in saved.windows:
            if self._keys >= self._keys_total:
                self._unknown_since_us[one.tenant] = saved_us
                continue
            name = (one.key, one.length_ms)
            window = _window(name, saved_us)
            window.restore(one.marks, saved_us)
            self._windows.setdefault(one.tenant, KeyWindows()).put(name, window)
            self._keys += 1

    def home(self, tenant: TenantId) -> ShardId:
        return self._tenant_shards.of(tenant)

    def used(self, tenant: TenantId, name: RateName, most: int, now_us: int) -> int:
        if self._is_closed(tenant, name, now_us):
            return most
        known = self._windows.get(tenant, _NONE).get(name)
        return 0 if known is None else _window(name, known).slide(now_us)

    def opens_us(self, tenant: TenantId, name: RateName, now_us: int) -> int:
        known = self._windows.get(tenant, _NONE).get(name)
        opens_us = now_us if known is None else _window(name, known).opens_us(now_us)
        return max(opens_us, self._closed_until_us(tenant, name))

    def _closed_until_us(self, tenant: TenantId, name: RateName) -> int:
        since_us = self._owner_since_us.get(self.home(tenant)) if self._owner_since_us else None
        if self._unknown_since_us and (lost_us := self._unknown_since_us.get(tenant)) is not None:
            since_us = lost_us if since_us is None else max(since_us, lost_us)
        return 0 if since_us is None else since_us + min(name[1] * 1000, CLOSED_US_MAX)

    def _is_closed(self, tenant: TenantId, name: RateName, now_us: int) -> bool:
        return now_us < self._closed_until_us(tenant, name)

    def start(self, tenant: TenantId, name: RateName, most: int, now_us: int) -> bool:
        """Count one more, if fewer than `most` count; answers whether it does."""
        length_us = name[1] * 1000
        if now_us - self._last_since_us < length_us and self._is_closed(tenant, name, now_us):
            return False
        mine = self._windows.get(tenant)
        if mine is not None:
            if now_us >= mine.turns_us:
                self._turn(mine, now_us)
            now, before = mine.now, mine.before
            count = len(now) + len(before)
            has_room = count < KEYS_PER_TENANT and count + 1 < self._keys_total - self._keys
            if has_room and name not in now and name not in before:  # as a rule
                now[name] = now_us
                if name[1] > mine.longest_ms:
                    mine.longest_ms = name[1]
                self._keys += 1
                return True
        return self.started(tenant, name, now_us, most)

    def started(self, tenant: TenantId, name: RateName, now_us: int, most: int = NO_BOUND) -> bool:
        """The same of one that another owner may have started, long ago: by then nothing turns,
        for what started here since would be over too soon."""
        mine = self._windows.get(tenant)
        if mine is None:
            mine = self._windows[tenant] = KeyWindows()
        known = mine.get(name)
        if known is None:
            if mine and len(mine) >= self._most(mine):
                self._make_room(mine, now_us)
            mine.put(name, now_us)
            self._keys += 1
            return True
        if _is_over(name, known, now_us):  # nothing of it counts
            mine.put(name, now_us)
            return True
        if isinstance(known, int):
            if most <= 1:
                return False
            known = _window(name, known)
        if not known.add(now_us, most):
            return False
        mine.put(name, known)
        return True

    def _turn(self, mine: KeyWindows, now_us: int) -> None:
        self._keys -= len(mine.before)
        mine.turn(now_us)

    def _most(self, mine: KeyWindows) -> int:
        return min(KEYS_PER_TENANT, (self._keys_total - self._keys + len(mine)) // 2)

    def _make_room(self, mine: KeyWindows, now_us: int) -> None:
        """Of the keys that were looked at longest ago those go whose while is over: they say no
        more than none. Where there are none, those that were not used since: the older half, for
        of a lone start nobody knows whether it came since."""
        part = list(islice(mine.items(), max(len(mine) // LET_GO_PART, 1)))
        over = [name for name, one in part if _is_over(name, one, now_us)]
        gone = over or _older_half([each for each in part if _was_not_used(each[1])])
        gone = gone or [min(part, key=lambda each: _last_us(each[1]) + each[0][1] * 1000)[0]]
        for name, one in part:  # the others go to the end
            if isinstance(one, StartWindow):
                one.seen_us = one.last_us
            elif not over:
                continue  # behind younger ones it would outlast them
            mine.drop(name)
            mine.put(name, one)
        for name in gone:
            mine.drop(name)
        self._keys -= len(gone)

    def forget_over(self, now_us: int) -> None:
        """Upkeep, a part at a time: keys of whose starts none counts any more."""
        looked, most = 0, min(self._keys // LET_GO_PART + 1, KEYS_PER_LOOK)
        for _ in range(len(self._windows)):
            if looked >= most:
                return
            tenant, mine = next(iter(self._windows.items()))
            looked += len(mine)
            over = [name for name, one in mine.items() if _is_over(name, one, now_us)]
            for name in over:
                mine.drop(name)
            self._keys -= len(over)
            self._windows.move_to_end(tenant)
            if not mine:
                del self._windows[tenant]


_NONE = KeyWindows()
