"""Moves of tenants between shards: the durable row of each, and all rows that go along.

A move leads to a shard that nobody owns until it is over, so no loop sees what is there already.
Every table (`statements/moved_tables.py` has all of them) goes in parts, so no statement grows with
the tenant: first what makes or ends jobs, or is cleared away when its job is not found; then the
jobs and the rest; back it goes in the opposite order. The last step takes what came meanwhile, and
is put off if that is much. Every step is a transaction under the term of the owner of the shard
that it leads away from, which also brings rows back. Before the first, connections of servers that
have not heard of it are ended (`connections/move_fence.py`). What comes next is decided in
`core/ownership/tenant_move.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.ownership.tenant_move import (
    MoveLook,
    MoveSight,
    MoveState,
    why_ended_at_once,
    why_it_returns,
)
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
    fetch_values,
    is_found,
)
from fairway.store.leadership import CHANNEL
from fairway.store.sql import load
from fairway.store.statements import moved_tables

_SQL = load("tenant_moves.sql")

#: Tables in the order in which they go, and where each begins.
IN_PARTS = {table.name: table.start for table in moved_tables.IN_PARTS}
OUTBOX = moved_tables.OUTBOX.name
ALL_PARTS = {**IN_PARTS, OUTBOX: moved_tables.OUTBOX.start}
_PARTS = {table: _SQL[f"move_{table}"] for table in ALL_PARTS}
_MOVE_WHOLE = [_SQL[f"move_whole_{whole_table}"] for whole_table in moved_tables.WHOLE]
_CLEAR = [_SQL[f"clear_{whole_table}"] for whole_table in moved_tables.WHOLE]


class Before(NamedTuple):
    """What has to be known before a move is begun."""

    tenant: TenantId
    state: str
    shard: ShardId
    shards: int
    tenants_there: int
    deleted_there: list[str]  # of these, who may still be restored
    is_another_moving: bool
    has_regions: bool
    has_parts: bool
    has_unstated_month: bool  # in its shard, not in the next


class Way(NamedTuple):
    """Whose rows go from where to where."""

    tenant: TenantId
    from_shard: ShardId
    to_shard: ShardId


class HeldMove(NamedTuple):
    """A move that is not over, for somebody who wants to end it."""

    id: int
    tenant: TenantId
    from_shard: ShardId
    to_shard: ShardId
    state: MoveState


class Part(NamedTuple):
    """Of a table that goes in parts: what was found, and moved, and up to where."""

    found: int
    moved: int
    last: str | None


async def look_before(connection: Connection, name: str, to: ShardId) -> Before | None:
    """The tenant, held until the transaction ends; None: there is none of that name."""
    row = await fetch_row(connection, _SQL["look_before"], name=name, to=to)
    return None if row is None else Before(*row)


async def ask(connection: Connection, way: Way, wait_seconds: int) -> bool:
    """From here on nothing of the tenant is taken or started, and nobody owns its next shard.
    False: another move was asked for at this moment, and nothing is done."""
    asked = {"wait_seconds": wait_seconds, **way._asdict()}
    if not await is_found(connection, _SQL["ask"], **asked):
        return False
    await execute(connection, _SQL["count_move"])
    await execute(connection, _SQL["stop_tenant"], tenant=way.tenant, to_shard=way.to_shard)
    await _take_away(connection, way.to_shard)
    return True


async def list_moves(connection: Connection, limit: int) -> list[MoveSight]:
    return await fetch_as(MoveSight, connection, _SQL["list_moves"], limit=limit)


async def shards_moved_to(connection: Connection) -> list[ShardId]:
    """Those that nobody owns until a tenant has moved there."""
    return await fetch_values(connection, _SQL["shards_moved_to"])


async def is_moved_to(connection: Connection, shard: ShardId) -> bool:
    """Whether a tenant is on its way there."""
    return await is_found(connection, _SQL["is_moved_to"], shard=shard)


async def hold_of_tenant(connection: Connection, name: str) -> HeldMove | None:
    """The move of a tenant that is not over, held until the transaction ends."""
    row = await fetch_row(connection, _SQL["hold_of_tenant"], name=name)
    return None if row is None else HeldMove(*row)


async def cancel(connection: Connection, held: HeldMove, by: str) -> None:
    """At once while nothing has been moved; else its owner brings all back."""
    if held.state == "draining":
        way = Way(held.tenant, held.from_shard, held.to_shard)
        await _end(connection, held.id, way, why_ended_at_once(by))
        return
    await execute(connection, _SQL["cancel"], move=held.id, by=by, note=why_it_returns(by))


async def heard(
    connection: Connection, server: str, process: int, tenants: Collection[TenantId]
) -> None:
    """This process takes and starts nothing of these any more, and writes nothing of them."""
    asked = {"server": server, "process": process, "tenants": list(tenants)}
    await execute(connection, _SQL["heard"], **asked)


async def look(connection: Connection, tenant: TenantId) -> MoveLook | None:
    """How far a move is; None: it is over."""
    row = await fetch_row(connection, _SQL["look_at_move"], tenant=tenant)
    return None if row is None else MoveLook(*row)


async def say(connection: Connection, move: int, note: str) -> None:
    await execute(connection, _SQL["say"], move=move, note=note)


async def end_connections(connection: Connection, look: MoveLook) -> int:
    """Of processes that have not heard: whatever they still send is not done. They connect anew,
    and learn of the move before anything else. As whoever logged in: another may not end them."""
    known = await fetch_values(connection, _SQL["hearers"], move=look.id)
    logins = await fetch_values(connection, _SQL["tenants_logins"])
    async with connection.transaction():
        await connection.execute("SET LOCAL ROLE NONE")
        asked = {"known": known, "logins": logins}
        ended: int = await fetch_value(connection, _SQL["end_connections"], **asked)
    return ended


def parts_of(state: MoveState) -> list[str]:
    """The tables in the order in which they go: there, or back."""
    return list(reversed(IN_PARTS)) if state == "returning" else list(IN_PARTS)


async def begin(connection: Connection, look: MoveLook, term: Term) -> bool:
    """Whether it is begun; from then on it is not called off any more."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return False
        await _clear_the_way(connection, _way(look))
        await execute(connection, _SQL["begin"], move=look.id)
        await _take_away(connection, look.to_shard)  # last: who starts waits for its row
    return True


async def call_off(connection: Connection, look: MoveLook, term: Term, note: str) -> bool:
    """All is as it was before."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return False
        await _end(connection, look.id, _way_of(look), note)
    return True


async def turn_back(connection: Connection, look: MoveLook, term: Term) -> bool:
    """From here on rows go back to where they were."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return False
        note = why_it_returns(look.cancelled_by or "")
        await execute(connection, _SQL["turn_back"], move=look.id, note=note)
    return True


async def finish_return(
    connection: Connection, look: MoveLook, term: Term, note: str, limit: int
) -> bool:
    """All that is left goes back, and all is as it was before; not if too much is left."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return False
        if not await _move_rest(connection, look, term, limit):
            return False
        await _end(connection, look.id, _way_of(look), note)
    return True


async def move_some(
    connection: Connection, look: MoveLook, term: Term, table: str, after: str, limit: int
) -> Part | None:
    """The next rows of a table; None: the move, or the shard, is another's by now."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return None
        part = await _move_part(connection, table, after, limit, {**_way(look), "term": term})
        await _count(connection, look, part.moved)
    return part


async def switch(connection: Connection, look: MoveLook, term: Term, limit: int) -> bool:
    """All that is left goes along, and from here on the tenant is in its new shard. Not if more
    than `limit` rows are left of a table: what was taken of them is kept, and it is tried again."""
    async with connection.transaction():
        if not await _hold(connection, look, term):
            return False
        if not await _move_rest(connection, look, term, limit):
            return False
        await execute(connection, _SQL["finish"], move=look.id)
        await execute(connection, _SQL["switch"], **_way(look))
        await _give_away(connection, _way_of(look))
    return True


async def strays(
    connection: Connection, places: Sequence[tuple[TenantId, ShardId]]
) -> list[tuple[TenantId, ShardId]]:
    """Those of the places in which tenants were, that have rows of theirs again."""
    tenants, shards = [one for one, _ in places], [one for _, one in places]
    rows = await fetch(connection, _SQL["late_rows"], tenants=tenants, shards=shards)
    return [(row["tenant"], row["shard"]) for row in rows]


async def collect(
    connection: Connection, way: Way, term: Term, table: str, after: str, limit: int
) -> Part | None:
    """Bring rows along that came too late; `term` is of the shard that they go to. None: the tenant
    moves on. What is in both places stays behind, but for keys: of those the older one counts."""
    async with connection.transaction():
        if not await is_found(
            connection, _SQL["hold_home"], tenant=way.tenant, to_shard=way.to_shard
        ):
            return None
        asked = {**way._asdict(), "held": way.to_shard, "term": term}
        if table in ("idempotency", "unique_jobs"):
            await _drop_doubles(connection, asked)
        return await _move_part(connection, table, after, limit, asked)


def _way_of(look: MoveLook) -> Way:
    return Way(look.tenant, look.from_shard, look.to_shard)


def _way(look: MoveLook) -> dict[str, Any]:
    """From where to where rows go now, and the shard whose owner sees to it."""
    ends = {"from_shard": look.from_shard, "to_shard": look.to_shard}
    if look.state == "returning":
        ends = {"from_shard": look.to_shard, "to_shard": look.from_shard}
    return {"tenant": look.tenant, "held": look.from_shard, **ends}


async def _end(connection: Connection, move: int, way: Way, note: str) -> None:
    """Without a switch."""
    await execute(connection, _SQL["call_off"], move=move, note=note)
    await execute(connection, _SQL["go_on_as_before"], tenant=way.tenant)
    await _give_away(connection, way)


async def _clear_the_way(connection: Connection, way: dict[str, Any]) -> None:
    for statement in _CLEAR:
        await execute(connection, statement, tenant=way["tenant"], to_shard=way["to_shard"])


async def _move_rest(connection: Connection, look: MoveLook, term: Term, limit: int) -> bool:
    """Whether nothing is left: as a rule a few rows that were written meanwhile go along."""
    asked = {**_way(look), "term": term}
    await _drop_doubles(connection, asked)
    for table in [*parts_of(look.state), OUTBOX]:
        part = await _move_part(connection, table, ALL_PARTS[table], limit, asked)
        await _count(connection, look, part.moved)
        if part.found >= limit and table != OUTBOX:
            return False
    for statement in _MOVE_WHOLE:
        await _count(connection, look, await fetch_value(connection, statement, **asked))
    return True


async def _move_part(
    connection: Connection, table: str, after: str, limit: int, way: dict[str, Any]
) -> Part:
    asked = {**way, "after": after, "limit": limit}
    (part,) = await fetch_as(Part, connection, _PARTS[table], **asked)
    return part


async def _hold(connection: Connection, look: MoveLook, term: Term) -> bool:
    asked = {"move": look.id, "state": look.state, "term": term}
    return await is_found(connection, _SQL["hold"], **asked)


async def _drop_doubles(connection: Connection, way: dict[str, Any]) -> None:
    """What somebody who had not heard took again; one such row must not keep all from going."""
    await execute(connection, _SQL["drop_double_keys"], **way)
    await execute(connection, _SQL["drop_double_unique_jobs"], **way)


async def _count(connection: Connection, look: MoveLook, moved: int) -> None:
    if moved:
        await execute(connection, _SQL["count_rows"], move=look.id, rows=moved)


async def _take_away(connection: Connection, shard: ShardId) -> None:
    await execute(connection, _SQL["take_away"], shard=shard)


async def _give_away(connection: Connection, way: Way) -> None:
    """Whoever shares the shards out looks now."""
    asked = {"from_shard": way.from_shard, "to_shard": way.to_shard}
    await execute(connection, _SQL["give_away"], **asked)
    await fetch(connection, _SQL["tell_owners"], channel=CHANNEL)
