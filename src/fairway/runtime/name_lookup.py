"""Names to numbers, by the system's resolver: for names that strangers choose.

The resolver blocks its thread until the name's own servers answer, and those may be a stranger's
who never does. So each lookup has a thread, of which there are so many, few of one owner's at a
time; an owner whose names took long shares a few threads with others like it; and what is known is
answered from memory, while somebody looks whether it still holds. A call goes to the number that
its caller checked, so an answer that is some minutes old can lead nowhere that was not allowed.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

FRESH_SECONDS = 30.0
STALE_SECONDS = 600.0
KNOWN_MAX = 10_000
THREADS_MAX, THREADS_PER_OWNER = 128, 2
SLOW_THREADS_MAX = 16  # of owners whose names took long
SLOW_SECONDS = 2.0
SLOW_FOR_SECONDS = 300.0

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Known(NamedTuple):
    numbers: tuple[str, ...]
    at: float


class _UnderWay(NamedTuple):
    owner: Hashable
    began: float
    is_slow: bool
    numbers: asyncio.Future[tuple[str, ...]]


class NameLookup:
    """Of one event loop."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._threads: Counter[Hashable] = Counter()
        self._slow_threads = 0
        self._slow_until: dict[Hashable, float] = {}

    async def __call__(self, name: str, owner: Hashable) -> Sequence[str]:
        """Raises OSError for a name that has none, or when there is no room to ask."""
        loop = asyncio.get_running_loop()
        known = self._known.get(name)
        age = loop.time() - known.at if known else STALE_SECONDS
        if known and age < FRESH_SECONDS:
            return known.numbers
        if known and age < STALE_SECONDS:
            self._begin(loop, name, owner)
            return known.numbers
        asked = self._begin(loop, name, owner)
        if asked is None:
            raise OSError("too many names are being looked up")
        return await asyncio.shield(asked)

    def _begin(
        self, loop: asyncio.AbstractEventLoop, name: str, owner: Hashable
    ) -> asyncio.Future[tuple[str, ...]] | None:
        if name in self._under_way:
            return self._under_way[name].numbers
        is_slow = self._slow_until.get(owner, 0.0) > loop.time()
        if self._threads[owner] >= THREADS_PER_OWNER or len(self._under_way) >= THREADS_MAX:
            return None
        if is_slow and self._slow_threads >= SLOW_THREADS_MAX:
            return None
        future: asyncio.Future[tuple[str, ...]] = loop.create_future()
        future.add_done_callback(_seen)
        ask = threading.Thread(target=self._ask, args=(loop, name), name="lookup", daemon=True)
        try:
            ask.start()
        except RuntimeError:  # the system has no more threads
            return None
        self._under_way[name] = _UnderWay(owner, loop.time(), is_slow, future)
        self._threads[owner] += 1
        self._slow_threads += is_slow
        return future

    def _ask(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        """In a thread of its own."""
        found: tuple[str, ...] | OSError
        try:
            rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            found = tuple(dict.fromkeys(str(row[4][0]) for row in rows))
        except OSError as error:
            found = error
        except UnicodeError:
            found = OSError("the name cannot be looked up")
        try:
            loop.call_soon_threadsafe(self._answered, loop, name, found)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    def _answered(
        self, loop: asyncio.AbstractEventLoop, name: str, found: tuple[str, ...] | OSError
    ) -> None:
        asked = self._under_way.pop(name)
        self._slow_threads -= asked.is_slow
        self._threads[asked.owner] -= 1
        if not self._threads[asked.owner]:
            del self._threads[asked.owner]
        if loop.time() - asked.began > SLOW_SECONDS:
            _keep(self._slow_until, asked.owner, loop.time() + SLOW_FOR_SECONDS)
        if isinstance(found, OSError):
            asked.numbers.set_exception(found)
            return
        _keep(self._known, name, _Known(found, loop.time()))
        asked.numbers.set_result(found)


def _keep(kept: dict[Key, Value], key: Key, value: Value) -> None:
    """The oldest goes when there are too many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > KNOWN_MAX:
        del kept[next(iter(kept))]


def _seen(future: asyncio.Future[tuple[str, ...]]) -> None:
    """Nobody may wait for it: then its error is nobody's."""
    if not future.cancelled():
        future.exception()
