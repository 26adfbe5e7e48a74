"""What `fairway check` says of a distributed store: its nodes, and what 202 rests on there."""

from __future__ import annotations

from fairway.services.database_proofs import WITHOUT_ROLES
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.placement import is_distributed
from fairway.store.postgres.tuning import Finding
from fairway.store.schema.distribution import node_settings, prepared_transactions_max


async def inspect_cluster(dsn: str, *, row_security: bool) -> list[Finding]:
    """Nothing, of a store that is one PostgreSQL."""
    connection = await connect_for_once(dsn, "fairway-check")
    try:
        if not await is_distributed(connection):
            return []
        rows = await node_settings(connection)
        prepared = await prepared_transactions_max(connection)
    finally:
        await connection.close()
    found = [
        Finding(level="error", what=f"data node {row['address']} is away.", remedy=row["result"])
        for row in rows
        if not row["success"]
    ] + [
        Finding(
            level="error",
            what=f"data node {row['address']} may lose what it has committed ({row['result']}).",
            remedy="Set fsync, full_page_writes and synchronous_commit on.",
        )
        for row in rows
        if row["success"] and not row["is_durable"]
    ]
    if prepared == 0:
        what = "max_prepared_transactions is 0: nothing can be written on two nodes at once."
        found.append(Finding(level="error", what=what, remedy="Set it to max_connections."))
    if row_security:
        found.append(Finding(level="error", what=WITHOUT_ROLES, remedy=""))
    return found
