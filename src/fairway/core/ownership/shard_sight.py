"""A shard as operators see it, and the numbers of many in few words. Facts alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from fairway.core.ids import ShardId, Term

QUEUED_COUNTED_MAX = 1_000  # jobs of a shard; more are not counted

#: Shards that are made at a time. Each is read when it is taken over: 4 000 at once took a server
#: longer than its term lasts, and it lost all that it had, for 20 s.
MORE_AT_ONCE = 256


class ShardSight(NamedTuple):
    """A shard, for people."""

    shard: ShardId
    term: Term
    owner: str | None  # the last, whether it still is or not
    has_owner: bool
    is_open: bool
    tenants: int  # or parts of some
    firsts: int  # of these, all but the second and later parts of one
    queued: int  # jobs; counted up to `QUEUED_COUNTED_MAX`


def told(shards: Collection[ShardId]) -> dict[str, Any]:
    """In a line of the log, where all of them would fill pages: how many, and which."""
    return {"shards": len(shards), "which": ranges(shards)}


def ranges(numbers: Iterable[int]) -> str:
    """`0-3, 7`: what is next to each other is told by its ends."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in found)
