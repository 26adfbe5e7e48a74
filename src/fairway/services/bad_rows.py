"""Reads and moves for many tenants at once, and the one row that spoils them for all.

A statement that fails for its rows (a page that cannot be read, a trigger that says no) is tried
again with half of what was asked for, until what cannot be done stands alone. That is set aside for
a while; all others go on. What an error of the moment is, is the caller's: it is tried again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from fairway.core.ids import ShardId
from fairway.store.connections.error_classes import has_answered, is_about_rows

ASIDE_US = 30_000_000
ALONE_MAX = 8  # refused while nothing was done: more than that are not to blame
ASIDE_MAX = 10_000  # beyond which the oldest is tried again at once

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


async def each_apart(
    items: Sequence[Item],
    act: Callable[[Sequence[Item]], Awaitable[None]],
    refuse: Callable[[Item, Exception], None],
) -> None:
    """Act on all of them at once; `refuse` those that the store will not do, with its reason.

    When it does none of them, it is the store that is at fault: its error is raised.
    """
    parts, refused, is_any_done = deque([items]), 0, False
    while parts:
        some = parts.popleft()
        try:
            await act(some)
            is_any_done = True
        except Exception as error:
            if not (some and has_answered(error) and is_about_rows(error)):
                raise
            if len(some) > 1:
                middle = len(some) // 2
                parts += [some[:middle], some[middle:]]
            elif is_any_done or refused < ALONE_MAX:
                refused += 1
                refuse(some[0], error)
            else:
                raise


async def in_each_shard(
    shards: Iterable[ShardId], act: Callable[[ShardId], Awaitable[Answer]]
) -> list[Answer]:
    """What one shard's trouble is, is raised when all have had their turn."""
    answers: list[Answer] = []
    failure: Exception | None = None
    for shard in list(shards):
        try:
            answers.append(await act(shard))
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return answers


class Aside(Generic[Key]):
    """What could not be done, until it is tried again."""

    def __init__(self) -> None:
        self._until_us: dict[Key, int] = {}

    def put(self, key: Key, now_us: int) -> None:
        self._until_us[key] = now_us + ASIDE_US
        if len(self._until_us) > ASIDE_MAX:
            del self._until_us[next(iter(self._until_us))]

    def holds(self, key: Key, now_us: int) -> bool:
        until_us = self._until_us.get(key)
        if until_us is None:
            return False
        if until_us > now_us:
            return True
        del self._until_us[key]
        return False
