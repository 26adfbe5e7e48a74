"""How shards are spread over servers: who may hold how many, who takes a free one, who gives some.

Every server reads the same rows, comes to the same plan and does its own part of it; so nobody
has to be asked, and two that read at slightly different moments disagree for a round at most. A
server's quota is its even part of the shards, at most `ceil(shards / servers)`; the uneven rest
stays with those that hold most. So a server that joins or leaves moves no more than it must, and
within the quotas nothing moves. Processes behind one address have their quotas together: as few of
them as the work needs own shards, the others stand by (`core/ownership/consolidation.py`).

Whoever came a moment ago gets nothing yet, and who is late with its heartbeat gets nothing more but
loses nothing either: a server that flaps moves no shard. Decisions alone: rows are read, shards
taken and let go by `services/ownership/ownership.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from fairway.core.ids import ShardId
from fairway.core.ownership.consolidation import owners_needed

SHARDS_PER_MOVE = 16  # of so many shards one is on its way at a time, in all the cluster
GOLDEN = 0x9E3779B1  # the golden ratio in 32 bits: neighbours land far apart


class LiveServer(NamedTuple):
    """A server that owns shards or would, whose heartbeat has not run out."""

    name: str
    is_settled: bool  # it has been there for a while
    is_prompt: bool  # its last heartbeat was not late
    is_leaving: bool = False
    group: str = ""  # of processes that share one server's part of the work; "": it is in none
    busy_per_mille: int = 0  # of a core


class Spread(NamedTuple):
    """Who is there and who owns what, as one server sees it."""

    servers: Collection[LiveServer]
    owned: Mapping[ShardId, str]  # shard → its owner's name, also of one that is not among them
    free: Collection[ShardId]
    moving: int = 0  # shards that were let go or taken a moment ago, and are not open yet
    closed: Collection[ShardId] = ()  # of those owned, from which nothing is granted yet


class SpreadPlan(NamedTuple):
    """What each server does next."""

    take: dict[ShardId, str]  # free shard → who takes it
    give: dict[ShardId, str]  # owned shard → for whom its owner lets it go


def members(spread: Spread) -> list[LiveServer]:
    """Those among whom the shards are shared out.

    One that holds nothing is no member while it is new or late, unless there is nobody else: what
    a dead server held is free a moment before its heartbeat ends.
    """
    there = [one for one in spread.servers if not one.is_leaving]
    owners = set(spread.owned.values())
    sure = [one for one in there if (one.is_settled and one.is_prompt) or one.name in owners]
    return sorted(sure or there)


def is_awaited(spread: Spread, name: str) -> bool:
    """Whether an owner that is to stop should stay for a moment: nobody else owns anything yet.

    No worker knows a server that owns nothing, so nobody would be granted a job while they find it.
    Who is awaited hands over its first shards while it still grants, then lets all others go.
    """
    others = {one.name for one in spread.servers if not one.is_leaving and one.is_prompt} - {name}
    closed = set(spread.closed)
    granting = {owner for shard, owner in spread.owned.items() if shard not in closed}
    is_one = sum(owner == name for owner in spread.owned.values()) < 2  # of which none is given
    return not is_one and bool(others) and not others & granting


def quotas(names: Iterable[str], held: Mapping[str, int], shards: int) -> dict[str, int]:
    """How many shards each of these may hold: all of them, one more or less.

    Where they do not divide evenly, those that hold most keep one more.
    """
    most_first = sorted(set(names), key=lambda name: (-held.get(name, 0), name))
    if not most_first:
        return {}
    each, rest = divmod(shards, len(most_first))
    return {name: each + (place < rest) for place, name in enumerate(most_first)}


def consolidated(
    there: Iterable[LiveServer], held: Mapping[str, int], even: Mapping[str, int]
) -> dict[str, int]:
    """The same quotas, but those of each group's processes are had by as few as its work needs.

    Those that hold most go on, so that nothing moves but from or to one that joins them or stops.
    """
    groups: dict[str, list[LiveServer]] = {}
    for one in there:
        if one.group:
            groups.setdefault(one.group, []).append(one)
    allowed = dict(even)
    for group in groups.values():
        owners = [one for one in group if held.get(one.name, 0)]
        together = sum(even[one.name] for one in group)
        growth = together / max(sum(held[one.name] for one in owners), 1)
        busy = [one.busy_per_mille for one in owners]
        needed = owners_needed(busy, len(group), growth if owners else 1.0)
        most_first = sorted(group, key=lambda one: (-held.get(one.name, 0), not one.is_prompt, one))
        working = [one.name for one in most_first[:needed]]
        allowed |= dict.fromkeys((one.name for one in group), 0) | quotas(working, held, together)
    return allowed


def moves_at_once(shards: int) -> int:
    """How many shards may be on their way at a time: while they are, nothing of them is granted."""
    return max(shards // SHARDS_PER_MOVE, 1)


def scattered(shard: ShardId) -> int:
    """The order in which shards are given, the greatest first: from all over the numbers.

    Tenants fill shards by their numbers, from the lowest on. Were the highest given, a platform
    with fewer tenants than one server has shards would do all of its work at that server.
    """
    return shard * GOLDEN & 0xFFFFFFFF


def plan(spread: Spread) -> SpreadPlan:
    """Who takes which free shard now, and who lets which go for whom."""
    there = members(spread)
    held = Counter(spread.owned.values())
    names = [one.name for one in there]
    known = sum(held[name] for name in names)
    even = quotas(names, held, known + len(spread.free) + _of_leaving(spread, held))
    allowed = consolidated(there, held, even)
    lacking = {
        one.name: allowed[one.name] - held[one.name]
        for one in there
        if one.is_prompt and allowed[one.name] > held[one.name]
    }
    take = _deal(sorted(spread.free), lacking)
    if known + _of_leaving(spread, held) < len(spread.owned):
        return SpreadPlan(take, {})  # one of a build before this would take what is let go
    limit = moves_at_once(len(spread.owned) + len(spread.free))
    awaited = [
        one.name for one in spread.servers if one.is_leaving and is_awaited(spread, one.name)
    ]
    surplus = _surplus(spread, held, allowed | dict.fromkeys(awaited, 0))
    return SpreadPlan(take, _deal(surplus[: max(limit - len(take) - spread.moving, 0)], lacking))


def _of_leaving(spread: Spread, held: Mapping[str, int]) -> int:
    """Shards of servers that are about to stop: they come free by themselves."""
    return sum(held.get(one.name, 0) for one in spread.servers if one.is_leaving)


def _surplus(spread: Spread, held: Mapping[str, int], allowed: Mapping[str, int]) -> list[ShardId]:
    """Of each that holds more than it may, the shards that it gives; in turn."""
    by_owner: dict[str, list[ShardId]] = {}
    for shard in sorted(spread.owned, key=scattered, reverse=True):
        by_owner.setdefault(spread.owned[shard], []).append(shard)
    found = [
        (place, name, shard)
        for name, mine in by_owner.items()
        if name in allowed
        for place, shard in enumerate(mine[: max(held[name] - allowed[name], 0)])
    ]
    return [shard for _, _, shard in sorted(found)]


def _deal(shards: Iterable[ShardId], lacking: dict[str, int]) -> dict[ShardId, str]:
    """Each to whoever lacks most, while somebody lacks any; `lacking` is counted down."""
    dealt: dict[ShardId, str] = {}
    for shard in shards:
        wanting = [name for name, count in lacking.items() if count > 0]
        if not wanting:
            break
        dealt[shard] = taker = max(wanting, key=lambda name: (lacking[name], name))
        lacking[taker] -= 1
    return dealt
