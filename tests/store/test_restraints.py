"""Rows of circuits and quarantines: read in pages by owners, and its own by a tenant."""

from __future__ import annotations

import json

import pytest

from fairway.core.failure.circuits import CircuitRecord
from fairway.core.ids import TenantId, TypeId
from fairway.store import restraints as store
from fairway.store.connections.database import Connection
from fairway.store.restraints import CircuitKey
from fairway.store.sql import load


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


MANY, FEW = TenantId(1), TenantId(2)


async def lay(connection: Connection, count: int) -> None:
    """So many of each kind of one tenant, and one of another."""
    await connection.execute(
        "INSERT INTO circuits (tenant, type, dependency, rest_us, probe_at)"
        " SELECT $1, n, 'd' || n % 3, 5, now() FROM generate_series(1, $2::int) AS n",
        MANY,
        count,
    )
    await connection.execute(
        "INSERT INTO quarantines (tenant, type) SELECT $1, n FROM generate_series(1, $2::int) AS n",
        MANY,
        count,
    )
    await store.open_circuit(connection, CircuitKey(FEW, TypeId(7), "smtp"), CircuitRecord(5, 6))
    await store.impose_quarantine(connection, FEW, TypeId(7))


@pytest.mark.parametrize("count", [0, 5, 6, 7, 20])
async def test_all_are_found_page_by_page(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(store, "PAGE", 7)
    await lay(connection, count)
    circuits = await store.all_circuits(connection)
    mine = [CircuitKey(MANY, TypeId(n), f"d{n % 3}") for n in range(1, count + 1)]
    assert [*circuits] == [*mine, CircuitKey(FEW, TypeId(7), "smtp")]
    assert circuits[CircuitKey(FEW, TypeId(7), "smtp")].record.rest_us == 5
    quarantines = await store.all_quarantines(connection)
    assert [*quarantines] == [*((MANY, n) for n in range(1, count + 1)), (FEW, 7)]


async def test_a_tenant_reads_its_own(connection: Connection) -> None:
    await lay(connection, 3000)
    assert [*await store.circuits_of(connection, FEW)] == [CircuitKey(FEW, TypeId(7), "smtp")]
    assert [*await store.quarantines_of(connection, FEW)] == [7]
    assert len(await store.circuits_of(connection, MANY)) == 3000
    await connection.execute("ANALYZE circuits, quarantines")
    for name in ("circuits_of", "quarantines_of"):
        text = load("restraints.sql")[name].text
        explained = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", FEW)
        assert not [n for n in _removed(json.loads(explained)[0]["Plan"]) if n], name


def _removed(plan: dict[str, object]) -> list[object]:
    """Rows that were read of others."""
    parts = plan.get("Plans", [])
    assert isinstance(parts, list)
    return [plan.get("Rows Removed by Filter"), *(row for part in parts for row in _removed(part))]


async def test_of_every_tenant_the_types_that_were_parked_first_are_told(
    connection: Connection,
) -> None:
    await lay(connection, 5)
    await connection.execute(
        "INSERT INTO job_types (id, name) SELECT n, 'type-' || n FROM generate_series(1, 7) AS n"
    )
    await connection.execute("UPDATE circuits SET opened_at = now() - type * interval '1 s'")
    await store.open_circuit(connection, CircuitKey(MANY, TypeId(5), "aws"), CircuitRecord(5, 6))
    found = await store.parked_types(connection, 2, 10)
    assert found == [
        (FEW, "type-7", "smtp", 1, 1, 1),
        (MANY, "type-5", "aws", 2, 5, 1),
        (MANY, "type-4", "d1", 1, 5, 2),
    ]
    assert await store.parked_types(connection, 2, 1) == found[:1]
