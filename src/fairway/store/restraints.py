"""What restrains a failing job type, shared by all owners: open circuits and quarantines.

Rows are few: one for each circuit that is not closed and for each type in quarantine.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.circuits import CircuitRecord
from fairway.store.database import Connection, execute, fetch
from fairway.store.sql import load

_SQL = load("restraints.sql")


class CircuitKey(NamedTuple):
    """A dependency as the jobs of one type of one tenant see it."""

    tenant: int
    type: int
    dependency: str


class OpenCircuit(NamedTuple):
    record: CircuitRecord
    opened_at: datetime


async def all_circuits(connection: Connection) -> dict[CircuitKey, OpenCircuit]:
    rows = await fetch(connection, _SQL["all_circuits"])
    return {
        CircuitKey(row["tenant"], row["type"], row["dependency"]): OpenCircuit(
            CircuitRecord(row["rest_us"], row["probe_in_us"]), row["opened_at"]
        )
        for row in rows
    }


async def open_circuit(connection: Connection, key: CircuitKey, record: CircuitRecord) -> None:
    await execute(
        connection,
        _SQL["open_circuit"],
        tenant=key.tenant,
        type=key.type,
        dependency=key.dependency,
        rest_us=record.rest_us,
        probe_in=timedelta(microseconds=record.probe_in_us),
    )


async def close_circuit(connection: Connection, key: CircuitKey) -> bool:
    """Whether it was open."""
    touched = await execute(
        connection,
        _SQL["close_circuit"],
        tenant=key.tenant,
        type=key.type,
        dependency=key.dependency,
    )
    return touched == 1


async def all_quarantines(connection: Connection) -> dict[tuple[int, int], datetime]:
    """(tenant, type) → since when."""
    rows = await fetch(connection, _SQL["all_quarantines"])
    return {(row["tenant"], row["type"]): row["since"] for row in rows}


async def impose_quarantine(connection: Connection, tenant: int, type_: int) -> None:
    await execute(connection, _SQL["impose_quarantine"], tenant=tenant, type=type_)


async def lift_quarantine(connection: Connection, tenant: int, type_: int) -> bool:
    """Whether it was in quarantine."""
    return await execute(connection, _SQL["lift_quarantine"], tenant=tenant, type=type_) == 1
