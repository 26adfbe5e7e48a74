"""What is usual for a tenant: its day before, or the same hours of yesterday."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairway.core.ids import TenantId
from fairway.store.connections.database import Connection
from fairway.store.insight.alarm_baselines import BusyTenant, busy_tenants

HOUR = timedelta(hours=1)
RECENT = datetime(2030, 1, 2, 11, tzinfo=UTC)  # the last whole hour, at half past twelve
SINCE = RECENT - 24 * HOUR

STEADY, BURST, NIGHTLY, NEWCOMER, QUIET, SPREAD = map(TenantId, range(1, 7))


async def add(connection: Connection, tenant: int, at: datetime, jobs: int, **more: object) -> None:
    row = {"kind": 3, "server": "a", **more}
    await connection.execute(
        "INSERT INTO insight_hours (kind, tenant, name, at, server, minutes, accepted, started,"
        " succeeded, failed, retried, dead, pickup, run)"
        " VALUES ($1, $2, '', $3, $4, 1, $5, 0, 0, 0, 0, 0, '{}', '{}')",
        row["kind"], tenant, at, row["server"], jobs,
    )  # fmt: skip


async def test_busy_tenants_are_compared_with_their_own_day(connection: Connection) -> None:
    for back in range(26):
        at = RECENT + HOUR - back * HOUR
        await add(connection, STEADY, at, 2000)
        await add(connection, BURST, at, 9000 if back == 0 else 240)
        await add(connection, QUIET, at, 10)
        await add(connection, BURST, at, 10**6, kind=4)  # its types are lines of their own
    await add(connection, NIGHTLY, SINCE + HOUR, 5000)
    await add(connection, NIGHTLY, RECENT + HOUR, 5000)
    await add(connection, NEWCOMER, RECENT, 50_000)
    for server in ("a", "b"):
        await add(connection, SPREAD, RECENT, 800, server=server)
    await add(connection, SPREAD, RECENT - 4 * HOUR, 80)
    await add(connection, SPREAD, SINCE - HOUR, 10**6)  # long ago
    await add(connection, 0, RECENT, 10**6)  # nobody's
    found = await busy_tenants(connection, SINCE, RECENT, 1000, 10)
    assert found == [
        BusyTenant(SPREAD, 1600, 20),  # over the four hours that it is known
        BusyTenant(BURST, 9000, 240),
        BusyTenant(STEADY, 2000, 2000),
        BusyTenant(NIGHTLY, 5000, 5000),
    ]
    assert await busy_tenants(connection, SINCE, RECENT, 1000, 1) == found[:1]
