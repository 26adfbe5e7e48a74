"""Operators ask for the move of a tenant to another shard, and look how far it is.

What is asked for is written down, with its line in the audit; who carries it out is
`maintenance/tenant_mover.py`, at the owner of the shard that the tenant is in.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.audit import Act, Actor
from fairway.core.errors import Conflict, NotFound
from fairway.core.ids import FIRST_SHARD, ShardId
from fairway.core.ownership.tenant_move import WAIT_SECONDS, MoveSight, why_it_is_unstated
from fairway.services.registry.audit_log import AuditLog
from fairway.services.transient_errors import again, told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import tenant_moves as store
from fairway.store.registry.tenant_moves import Before, Way

LISTED_MAX = 20
ASK_SECONDS = 10.0  # for a move to be written down, while others ask for one, too
ONE_AT_A_TIME = "Another move is under way: one tenant moves at a time. See `fairway shards ls`."


async def list_moves(database: Database) -> list[MoveSight]:
    """Those under way first, then the last that are over."""
    async with told_if_away, database.people() as connection:
        return await store.list_moves(connection, LISTED_MAX)


class Wanted(NamedTuple):
    """Who is to be moved where, and how long its runs are waited for."""

    name: str
    to: ShardId
    wait_seconds: int = WAIT_SECONDS


async def ask(database: Database, audit_log: AuditLog, wanted: Wanted, actor: Actor) -> MoveSight:
    """Begin a move. Nothing of the tenant is taken or started from now on, until it is over."""
    if database.placement is not None or database.by_shard:
        raise Conflict("On a distributed PostgreSQL tenants cannot be moved between shards yet.")

    async def ask_once(left_seconds: float) -> None:
        async with database.people() as connection, connection.transaction():
            await _ask(connection, audit_log, wanted, actor)

    async with told_if_away:  # who waited too long for another who asks is told of that one's move
        await again(ask_once, ASK_SECONDS)
    return (await list_moves(database))[0]


async def _ask(connection: Connection, audit_log: AuditLog, wanted: Wanted, actor: Actor) -> None:
    name, to, wait_seconds = wanted
    found = await store.look_before(connection, name, to)
    if found is None:
        raise NotFound(f"There is no tenant {name[:64]!r}.")
    if (flaw := _flaw(found, to)) is not None:
        raise Conflict(flaw)
    way = Way(found.tenant, found.shard, to)
    if not await store.ask(connection, way, wait_seconds):  # another did, since we looked
        raise Conflict(ONE_AT_A_TIME)
    act = Act("move_tenant", name, found.tenant, {"shard": found.shard}, {"shard": to})
    await audit_log.add(connection, actor, act)


async def cancel(database: Database, audit_log: AuditLog, name: str, actor: Actor) -> MoveSight:
    """End a move: at once while it drains; what was moved goes back, and then all is as before."""
    async with told_if_away, database.people() as connection, connection.transaction():
        held = await store.hold_of_tenant(connection, name)
        if held is None:
            raise Conflict(f"The tenant {name[:64]!r} is not being moved.")
        await store.cancel(connection, held, actor.name or actor.id)
        sides = {"shard": held.from_shard}, {"shard": held.from_shard}
        await audit_log.add(connection, actor, Act("cancel_move", name, held.tenant, *sides))
        held_id = held.id
    return next(one for one in await list_moves(database) if one.id == held_id)


async def refuse_target(connection: Connection, shard: ShardId) -> None:
    """Nobody owns a shard that a tenant is moved to, and it is to have no other tenant."""
    if await store.is_moved_to(connection, shard):
        raise Conflict(
            f"Another tenant is being moved to shard {shard}: name another one, or wait until that"
            " is over (`fairway shards ls`)."
        )


def _flaw(found: Before, to: ShardId) -> str | None:
    if found.state == "deleted":
        return "The tenant is deleted."
    if found.has_regions:
        return "Where there are regions tenants cannot be moved between shards yet."
    if found.has_parts:
        return (
            "A tenant with several shards cannot be moved: ids of its jobs tell its shards apart."
        )
    if found.is_another_moving:
        return ONE_AT_A_TIME
    if to >= found.shards:
        return f"There are {found.shards} shards, from 0 on: make more with `fairway shards split`."
    if to == found.shard:
        return f"The tenant is in shard {to} already."
    if to == FIRST_SHARD:
        return (
            f"No tenant is moved to shard {to}: its owner does what the whole platform needs, and"
            " nobody owns a shard that a tenant is moved to. Name another without tenants"
            " (`fairway shards ls`)."
        )
    if found.tenants_there and found.tenants_there == len(found.deleted_there):
        return (  # `fairway shards ls` counts none of them: that alone would send people in circles
            f"Shard {to} keeps what is left of {found.deleted_there[0]}, which was deleted and may"
            " be restored until its name is free. Name another without tenants."
        )
    if found.tenants_there:
        return (
            f"Shard {to} is in use. A tenant is moved to a shard without tenants: nobody owns it"
            " meanwhile, so jobs of others there would stand still. `fairway shards ls` shows which"
            " have none, `fairway shards split` makes more."
        )
    return why_it_is_unstated(found.shard, to) if found.has_unstated_month else None
