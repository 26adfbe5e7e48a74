"""What `fairway check` says of a distributed store: its nodes, and what 202 rests on there."""

from __future__ import annotations

from fairway.services.database_proofs import WITHOUT_ROLES
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.placement import is_distributed
from fairway.store.postgres.tuning import Finding

_NODES = """
SELECT nodename || ':' || nodeport AS address, success,
       result = 'on on on' AS is_durable, result
FROM run_command_on_workers(
    $$SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'),
                       CASE current_setting('synchronous_commit')
                       WHEN 'off' THEN 'off' ELSE 'on' END)$$
)
"""


async def inspect_cluster(dsn: str, *, row_security: bool) -> list[Finding]:
    """Nothing, of a store that is one PostgreSQL."""
    connection = await connect_for_once(dsn, "fairway-check")
    try:
        if not await is_distributed(connection):
            return []
        rows = await connection.fetch(_NODES)
        prepared = await connection.fetchval(
            "SELECT current_setting('max_prepared_transactions')::int"
        )
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
