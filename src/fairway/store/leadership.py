"""Who owns which shard, and under which term; and which servers are there to own some.

A row, never a lock: rows survive their holders.

The database's clock decides when a term has run out; unless it was set back after an owner died,
then those who wait find by their own clocks that nobody renews it (`core/overlong_terms.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from fairway.core.ids import ShardId, Term
from fairway.core.ownership.silent_nodes import Miss
from fairway.store.arrays import columns
from fairway.store.connections.connection_cache import Deadline, StoreAway
from fairway.store.connections.database import (
    DISCONNECTED,
    Connection,
    Record,
    fetch,
    fetch_value,
)
from fairway.store.connections.error_classes import is_node_away, is_slow_to_connect
from fairway.store.connections.slow_calls import now
from fairway.store.sql import Statement, load

_SQL = load("leadership.sql")


#: Where servers hear that a shard was taken or let go.
CHANNEL = "fairway_owners"
SERVERS_MAX = 1000  # that are looked at
FAR_SECONDS = 60.0  # a heartbeat that lasts longer was written before the clock went back
DEAD_KEPT_SECONDS = 3600.0  # for people who look
#: For an answer of one node of several. Their own time limit is shorter, but a coordinator that
#: cancels asks the node to stop, and waits for that: one that hangs is left with the connection.
NODE_SECONDS = 1.2
BEAT_SECONDS = 3.0  # longer than a lock is waited for
LOST_KEPT_SECONDS = 86_400.0  # longer than anybody waits for a worker


class Claim(NamedTuple):
    term: Term
    was_handed_over: bool  # the last owner wrote down every lease before it went
    last_owner: str = ""  # its name
    is_early: bool = False  # it died before its term's end: workers may not know of it yet


class Server(NamedTuple):
    """One whose heartbeat has not run out."""

    name: str
    url: str
    owns_shards: bool
    is_leaving: bool
    is_settled: bool
    is_prompt: bool
    process_group: str = ""  # whose processes share one server's part of the work
    busy_per_mille: int = 0  # of a core


class Heartbeat(NamedTuple):
    """What a server says of itself, and since when another counts as settled or late."""

    name: str
    url: str
    owns_shards: bool
    is_leaving: bool
    term_seconds: float
    settle_seconds: float
    late_seconds: float
    process_group: str = ""
    busy_per_mille: int = 0


class ShardRow(NamedTuple):
    shard: ShardId
    term: Term
    owner: str
    owner_url: str
    has_owner: bool
    is_free: bool  # also where somebody stands in for an owner
    is_open: bool
    overlong_until: datetime | None = None  # its end, if nobody would write that now
    ends_at: datetime | None = None  # if it lasts


class Owner(NamedTuple):
    shard: ShardId
    term: Term
    owner: str
    owner_url: str


class RateRow(NamedTuple):
    """What started of late in a shard, as its owner knew when it let go."""

    shard: ShardId
    term: Term  # the owner's
    windows: bytes


class Answers(NamedTuple):
    """Of one statement, or on a distributed store of one for each group of shards."""

    rows: list[Record]
    unheard: frozenset[ShardId]  # on nodes that are away: nothing is known of them


async def _ask(
    connection: Connection,
    statement: Statement,
    of: Collection[ShardId] | None = None,
    **values: Any,
) -> Answers:
    """Of these shards, or of all. A node that is away stops its own, and is not asked once for each
    group that lies there; when none answers, that is an error as ever. What was answered before a
    node used up the connection is an answer: others' terms are renewed by it."""
    placement = getattr(connection, "placement", None)
    if placement is None:
        return Answers(await fetch(connection, statement, **values), frozenset())
    asked = await _shards_there(connection) if of is None else of
    groups: dict[int, list[ShardId]] = {}
    for shard in sorted(asked):
        groups.setdefault(placement.group_of[shard], []).append(shard)
    rows: list[Record] = []
    unheard: set[ShardId] = set()
    away: Exception = StoreAway("no node of the store answers")
    answered, silent, began = 0, placement.nodes.silent, now()
    for group in silent.in_order(groups):
        among = groups[group]
        if connection.is_closed() or not silent.may_ask(group, began):
            unheard.update(among)
            continue
        asked_at = now()
        try:
            async with Deadline(connection, NODE_SECONDS):
                rows += await fetch(connection, statement, among=among, **values)
        except Exception as error:
            if not (isinstance(error, DISCONNECTED) or is_node_away(error)):
                raise
            if connection.is_closed() and not isinstance(error, StoreAway):
                raise  # it is the coordinator that went: no node is to blame
            silent.missed(group, asked_at, now(), miss=_miss(error))
            away = error
            unheard.update(among)
        else:
            answered += 1
            silent.heard(group)
    if unheard and not answered and of is None:
        raise away
    return Answers(rows, frozenset(unheard))


def _miss(error: Exception) -> Miss:
    if isinstance(error, StoreAway):
        return Miss.NOTHING
    is_away = is_node_away(error) and not is_slow_to_connect(error)
    return Miss.AWAY if is_away else Miss.LATE


async def _shards_there(connection: Connection) -> list[ShardId]:
    """On a distributed store a statement must name them; they become more while servers run."""
    async with Deadline(connection, NODE_SECONDS):
        await connection.placement.look_at_nodes(connection, now())
        count: int = await fetch_value(connection, _SQL["count_shards"])
    return [ShardId(shard) for shard in range(count)]


async def _tell(connection: Connection) -> None:
    """Whoever listens hears of it; on a distributed store the statement itself cannot say so."""
    if getattr(connection, "placement", None) is not None:
        await fetch(connection, _SQL["tell_owners"], channel=CHANNEL)


async def claim_shards(
    connection: Connection,
    owner: str,
    owner_url: str,
    term_seconds: float,
    unrenewed: Mapping[ShardId, datetime] = MappingProxyType({}),
    wanted: Collection[ShardId] | None = None,
) -> dict[ShardId, Claim]:
    """Take what is free of `wanted`, or of all: whoever holds some wants none of those.

    `unrenewed` are shards whose terms still end when they did long ago, and when that is.
    """
    rows, _ = await _ask(
        connection,
        _SQL["claim_shards"],
        wanted,
        owner=owner,
        owner_url=owner_url,
        unrenewed=list(unrenewed),
        ends=list(unrenewed.values()),
        wanted=None if wanted is None else list(wanted),
        term_time=timedelta(seconds=term_seconds),
        channel=CHANNEL,
    )
    if rows:
        await _tell(connection)
    return {
        row["shard"]: Claim(row["term"], row["was_handed_over"], row["last_owner"]) for row in rows
    }


async def unowned_shards(connection: Connection) -> list[ShardId]:
    """Shards without an owner, be it that somebody stands in for one."""
    return [row["shard"] for row in (await _ask(connection, _SQL["unowned_shards"])).rows]


async def stand_in(
    connection: Connection,
    owner: str,
    owner_url: str,
    term_seconds: float,
    wanted: Collection[ShardId],
) -> dict[ShardId, Term]:
    """Take those that nobody has, in degraded mode: an owner takes them from us at any time."""
    rows, _ = await _ask(
        connection,
        _SQL["stand_in"],
        wanted,
        owner=owner,
        owner_url=owner_url,
        wanted=list(wanted),
        term_time=timedelta(seconds=term_seconds),
        channel=CHANNEL,
    )
    return {row["shard"]: row["term"] for row in rows}


async def renew_shards(
    connection: Connection,
    held: Mapping[ShardId, Term],
    term_seconds: float,
    opened: Collection[ShardId] = (),
) -> dict[ShardId, bool]:
    """Extend what is still ours; what does not come back is another's.

    Answers whether each was renewed: one whose row somebody holds was not, and is ours still.
    """
    rows, unheard = await _ask(
        connection,
        _SQL["renew_shards"],
        held,
        shards=list(held),
        terms=list(held.values()),
        opened=[shard in opened for shard in held],
        term_time=timedelta(seconds=term_seconds),
    )
    kept = dict.fromkeys(unheard & held.keys(), False)
    return kept | {row["shard"]: row["is_renewed"] for row in rows}


async def beat(connection: Connection, said: Heartbeat) -> tuple[list[Server], datetime]:
    """Say that we are there; answers who is, and what time it is by the database's clock."""
    async with Deadline(connection, BEAT_SECONDS):
        rows = await fetch(
            connection,
            _SQL["beat"],
            name=said.name,
            url=said.url,
            owns_shards=said.owns_shards,
            is_leaving=said.is_leaving,
            process_group=said.process_group,
            busy_per_mille=said.busy_per_mille,
            term_time=timedelta(seconds=said.term_seconds),
            far_time=timedelta(seconds=FAR_SECONDS + 2 * said.term_seconds),
            settle_time=timedelta(seconds=said.settle_seconds),
            late_time=timedelta(seconds=said.late_seconds),
            servers_max=SERVERS_MAX,
        )
    servers = [Server(*row[: len(Server._fields)]) for row in map(tuple, rows)]
    return servers, rows[0]["now"]


async def leave(connection: Connection, name: str) -> None:
    """Take our row away: nobody counts on us any more."""
    await fetch(connection, _SQL["leave"], name=name)


async def forget_servers(connection: Connection) -> int:
    """Rows of servers that died a while ago; answers 0, for there is never much to remove."""
    await fetch(connection, _SQL["forget_servers"], kept=timedelta(seconds=DEAD_KEPT_SECONDS))
    return 0


async def forget_lost_sessions(connection: Connection) -> int:
    """Rows of workers that nobody has written for long; answers 0, as above."""
    kept = timedelta(seconds=LOST_KEPT_SECONDS)
    await fetch(connection, _SQL["forget_lost_sessions"], kept=kept)
    return 0


async def read_shards(connection: Connection, far_seconds: float = FAR_SECONDS) -> list[ShardRow]:
    """Of a distributed store, those whose nodes answer. A term that lasts longer than
    `far_seconds` is overlong: the clock was ahead when it was written."""
    far_time = timedelta(seconds=far_seconds)
    rows = (await _ask(connection, _SQL["read_shards"], far_time=far_time)).rows
    return [ShardRow(*row) for row in rows]


async def count_open(connection: Connection, here: Collection[ShardId] = ()) -> int:
    """Shards whose owner gives jobs out; those `here` are open at the caller's."""
    known = [row["name"] for row in await fetch(connection, _SQL["known_servers"])]
    rows, _ = await _ask(connection, _SQL["count_open"], here=list(here), known=known)
    return sum(row[0] for row in rows)


async def release_shards(
    connection: Connection, held: Mapping[ShardId, Term], *, written: Collection[ShardId] = ()
) -> set[ShardId]:
    """Of those in `written`, every lease is on disk, and every end that was reported.

    Answers those whose row somebody holds: they are not let go yet.
    """
    rows, unheard = await _ask(
        connection,
        _SQL["release_shards"],
        held,
        shards=list(held),
        terms=list(held.values()),
        all_written=[shard in written for shard in held],
        channel=CHANNEL,
    )
    if rows:
        await _tell(connection)
    return {row["shard"] for row in rows if not row["is_gone"]} | (unheard & held.keys())


async def write_rates(connection: Connection, rows: Sequence[RateRow]) -> None:
    """Of shards that are still owned under these terms, and whose nodes answer."""
    given = columns(sorted(rows), "shards", "terms", "windows")
    await _ask(connection, _SQL["write_rates"], {row.shard for row in rows}, **given)


async def read_rates(
    connection: Connection, shards: Collection[ShardId]
) -> list[tuple[RateRow, int]]:
    """Each with how many microseconds ago it was written, by the database's clock."""
    rows = await fetch(connection, _SQL["read_rates"], shards=list(shards))
    return [(RateRow(*row), ago_us) for *row, ago_us in rows]


async def read_owners(connection: Connection) -> dict[ShardId, Owner]:
    rows, _ = await _ask(connection, _SQL["read_owners"])
    return {row["shard"]: Owner(*row) for row in rows}


async def database_now(connection: Connection) -> datetime:
    now: datetime = await fetch_value(connection, _SQL["database_now"])
    return now
