"""What holds for every connection from its first statement on, and how one is left for the next."""

from __future__ import annotations

from typing import Any


async def vouch(connection: Any) -> None:
    """202 means on disk, whatever a role or a database says: `off` would make it a lie.

    Any other value waits for our own disk at least; how much more is the operator's choice.
    """
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )


async def leave_clean(connection: Any) -> None:
    """Nothing here leaves state on a connection, except a transaction that was cut short."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")
