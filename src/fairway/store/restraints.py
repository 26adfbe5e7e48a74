"""What restrains a failing job type, shared by all owners: open circuits and quarantines.

One row for each circuit that is not closed and for each type in quarantine: mostly few.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.failure.circuits import CircuitRecord
from fairway.core.ids import TenantId, TypeId
from fairway.store.connections.database import Connection, Record, execute, fetch, fetch_as
from fairway.store.sql import load

PAGE = 1_000

_SQL = load("restraints.sql")


class CircuitKey(NamedTuple):
    """A dependency as the jobs of one type of one tenant see it."""

    tenant: TenantId
    type: TypeId
    dependency: str


class OpenCircuit(NamedTuple):
    record: CircuitRecord
    opened_at: datetime


class AnyRestraints(NamedTuple):
    circuits: bool
    quarantines: bool


async def any_restraints(connection: Connection) -> AnyRestraints:
    """Whether there is something to read at all."""
    (row,) = await fetch_as(AnyRestraints, connection, _SQL["any_restraints"])
    return row


async def all_circuits(connection: Connection) -> dict[CircuitKey, OpenCircuit]:
    """A page at a time: there may be many, and an answer is decoded at a stretch."""
    found: dict[CircuitKey, OpenCircuit] = {}
    after = CircuitKey(TenantId(-1), TypeId(0), "")
    while True:
        rows = await fetch(connection, _SQL["circuits_after"], limit=PAGE, **after._asdict())
        found |= _circuits(rows)
        if len(rows) < PAGE:
            return found
        after = next(reversed(found))


class ParkedType(NamedTuple):
    """A type with open circuits, and where it stands among its tenant's."""

    tenant: TenantId
    type: str
    dependency: str  # one of them
    dependencies: int
    types: int  # of its tenant with such
    rank: int


async def parked_types(connection: Connection, per_tenant: int, limit: int) -> list[ParkedType]:
    """Those parked for longest, so many of each tenant."""
    rows = await fetch(connection, _SQL["parked_types"], per_tenant=per_tenant, limit=limit)
    return [ParkedType(*row) for row in rows]


async def circuits_of(connection: Connection, tenant: TenantId) -> dict[CircuitKey, OpenCircuit]:
    return _circuits(await fetch(connection, _SQL["circuits_of"], tenant=tenant))


def _circuits(rows: Iterable[Record]) -> dict[CircuitKey, OpenCircuit]:
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
        rest_us=record.rest_us,
        probe_in=timedelta(microseconds=record.probe_in_us),
        **key._asdict(),
    )


async def close_circuit(connection: Connection, key: CircuitKey) -> bool:
    """Whether it was open."""
    return await execute(connection, _SQL["close_circuit"], **key._asdict()) == 1


async def all_quarantines(connection: Connection) -> dict[tuple[TenantId, TypeId], datetime]:
    """(tenant, type) → since when. A page at a time, as `all_circuits`."""
    found: dict[tuple[TenantId, TypeId], datetime] = {}
    after = (TenantId(-1), TypeId(0))
    while True:
        rows = await fetch(
            connection, _SQL["quarantines_after"], tenant=after[0], type=after[1], limit=PAGE
        )
        found |= {(row["tenant"], row["type"]): row["since"] for row in rows}
        if len(rows) < PAGE:
            return found
        after = next(reversed(found))


async def quarantines_of(connection: Connection, tenant: TenantId) -> dict[TypeId, datetime]:
    """Of one tenant: type → since when."""
    rows = await fetch(connection, _SQL["quarantines_of"], tenant=tenant)
    return {row["type"]: row["since"] for row in rows}


async def impose_quarantine(connection: Connection, tenant: TenantId, type_: TypeId) -> None:
    await execute(connection, _SQL["impose_quarantine"], tenant=tenant, type=type_)


async def lift_quarantine(connection: Connection, tenant: TenantId, type_: TypeId) -> bool:
    """Whether it was in quarantine."""
    return await execute(connection, _SQL["lift_quarantine"], tenant=tenant, type=type_) == 1
