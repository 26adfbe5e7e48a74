"""How many shards there are: looked at by operators, and made more of while everything runs.

More shards are rows that nobody owns yet: servers see them with their next round, share them out as
they do any free shard, and tenants that are made from then on are spread over all. Tenants that are
there stay where they are, and so does every job: its id names its shard. Shards never become fewer.
"""

from __future__ import annotations

from fairway.core.audit import Act, Actor
from fairway.core.errors import Conflict
from fairway.core.ownership.shard_sight import MORE_AT_ONCE, ShardSight
from fairway.services.registry.audit_log import AuditLog
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.registry import shards as store


async def list_shards(database: Database) -> list[ShardSight]:
    async with told_if_away, database.people() as connection:
        return await store.list_shards(connection)


async def grow(database: Database, audit_log: AuditLog, count: int, actor: Actor) -> int:
    """Make it so many, and answer how many there were. To ask again for the same is no error."""
    async with told_if_away, database.people() as connection, connection.transaction():
        before = await store.hold_count(connection)
        if count < before:
            raise Conflict(
                f"There are {before} shards already, and they never become fewer: jobs are looked"
                f" up by the shard in their ids. Ask for more than {before}."
            )
        if count > before + MORE_AT_ONCE:
            raise Conflict(
                f"There are {before} shards: at most {MORE_AT_ONCE} more are made at a time, so"
                " that servers that take the new ones over keep those that they have. Ask for"
                f" {before + MORE_AT_ONCE}, and again when all are open."
            )
        if count > before:
            await store.grow(connection, count)
            was, now = {"shards": before}, {"shards": count}
            await audit_log.add(connection, actor, Act("split_shards", "shards", None, was, now))
    return before
