"""Starts by key within a while: so many in any stretch of that length, not only on average.

A window remembers when it let jobs start, near ones as one mark that is as young as the last of
them: so it is never too generous, costs the same however many start, and is at most a sixteenth
of its length too late. Of a tenant the keys that it used last are remembered, and so many of all
tenants, of which nobody has more than half of what the others leave.

A new owner does not know what started before it came: every key is closed until its length has
passed since, but for a minute at most.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TypeAlias

from fairway.core.ids import ShardId, TenantId, shard_for_tenant

MARKS = 16
KEYS_TOTAL = 200_000
KEYS_PER_TENANT = 10_000
CLOSED_US_MAX = 60_000_000  # after a change of owner

RateName: TypeAlias = tuple[str, int]  # key, length in milliseconds


class StartWindow:
    __slots__ = ("_length_us", "_marks", "used")

    def __init__(self, length_us: int) -> None:
        self._length_us = length_us
        self._marks: deque[tuple[int, int, int]] = deque()  # first and last start, and how many
        self.used = 0

    def slide(self, now_us: int) -> int:
        """How many of the starts still count."""
        while self._marks and now_us - self._marks[0][1] >= self._length_us:
            self.used -= self._marks.popleft()[2]
        return self.used

    def add(self, now_us: int) -> None:
        self.slide(now_us)
        self.used += 1
        if self._marks and now_us - self._marks[-1][0] < self._length_us // MARKS:
            first, last, count = self._marks[-1]
            self._marks[-1] = (first, max(last, now_us), count + 1)
        else:
            self._marks.append((now_us, now_us, 1))

    def opens_us(self, now_us: int) -> int:
        """When the next of its starts is forgotten."""
        return self._marks[0][1] + self._length_us if self.slide(now_us) else now_us


class StartRates:
    def __init__(self, keys_total: int = KEYS_TOTAL) -> None:
        self._keys_total = keys_total
        self._windows: dict[TenantId, OrderedDict[RateName, StartWindow]] = {}
        self._keys = 0
        self._shard_count = 1
        # by shard: before that another may have let jobs start
        self._owner_since_us: dict[ShardId, int] = {}

    def begin_anew(self, shard: ShardId, shard_count: int, now_us: int) -> None:
        """Another may have let jobs of this shard's tenants start until now; of no others."""
        self._shard_count = shard_count
        self._owner_since_us[shard] = now_us
        for tenant in [one for one in self._windows if self._home(one) == shard]:
            self._keys -= len(self._windows.pop(tenant))

    def _home(self, tenant: TenantId) -> ShardId:
        return shard_for_tenant(tenant, self._shard_count)

    def used(self, tenant: TenantId, name: RateName, most: int, now_us: int) -> int:
        if now_us < self._closed_until_us(tenant, name):
            return most
        window = self._window(tenant, name)
        return 0 if window is None else window.slide(now_us)

    def opens_us(self, tenant: TenantId, name: RateName, now_us: int) -> int:
        window = self._window(tenant, name)
        opens_us = now_us if window is None else window.opens_us(now_us)
        return max(opens_us, self._closed_until_us(tenant, name))

    def _window(self, tenant: TenantId, name: RateName) -> StartWindow | None:
        mine = self._windows.get(tenant)
        return None if mine is None else mine.get(name)

    def _closed_until_us(self, tenant: TenantId, name: RateName) -> int:
        since_us = self._owner_since_us.get(self._home(tenant)) if self._owner_since_us else None
        return 0 if since_us is None else since_us + min(name[1] * 1000, CLOSED_US_MAX)

    def started(self, tenant: TenantId, name: RateName, now_us: int) -> None:
        mine = self._windows.setdefault(tenant, OrderedDict())
        window = mine.get(name)
        if window is None:
            self._make_room(mine, now_us)
            window = mine[name] = StartWindow(name[1] * 1000)
            self._keys += 1
        mine.move_to_end(name)
        window.add(now_us)

    def _make_room(self, mine: OrderedDict[RateName, StartWindow], now_us: int) -> None:
        """The key that was used longest ago goes if it is over, or if there are too many."""
        most = min(KEYS_PER_TENANT, (self._keys_total - self._keys + len(mine)) // 2)
        for name in list(islice(mine, 2)):
            if len(mine) >= most or not mine[name].slide(now_us):
                del mine[name]
                self._keys -= 1
