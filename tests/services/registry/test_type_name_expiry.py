"""Names of job types that nobody uses go, in two steps; names that anything refers to stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.services.platform_room import Hand, add_tenant, freeze, new, open_pair, stopped, submit

from fairway.core.audit import PLATFORM
from fairway.core.backlog.holds import Hold
from fairway.core.ids import JobId, PoolId, TenantId
from fairway.core.job_type import TypeFacts
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry import type_name_expiry as module
from fairway.services.registry import type_names as bounds
from fairway.services.registry.type_name_expiry import TypeNameExpiry
from fairway.services.registry.type_names import Namer
from fairway.store.connections.database import Connection

LONG_US = 10**15


@pytest.fixture
async def expiry(platform: Platform) -> TypeNameExpiry:
    await freeze(platform)
    return keeper_of(platform)


def keeper_of(platform: Platform) -> TypeNameExpiry:
    return TypeNameExpiry(
        platform.database, platform.dispatcher, platform.directory.names, platform.metrics,
        platform.tenant_shards,
    )  # fmt: skip


async def tick(platform: Platform, expiry: TypeNameExpiry, days: float = 0) -> None:
    """So many days later: the keeper's round, and every server's refresh."""
    async with platform.database.background() as connection:
        await later(connection, days)
    await expiry.run_once(LONG_US)
    await platform.registry.run_once(0)


async def later(connection: Connection, days: float) -> None:
    """All dates of names lie so many days further back; jobs and partitions stay where they are."""
    for table, columns in {
        "tenant_types": ("named_at", "let_go_at"),
        "job_types": ("created_at", "said_at", "let_go_at"),
    }.items():
        moved = ", ".join(f"{one} = {one} - $1 * interval '1 day'" for one in columns)
        await connection.execute(f"UPDATE {table} SET {moved}", days)


async def rows(platform: Platform, name: str) -> dict[str, Any] | None:
    async with platform.database.background() as connection:
        row = await connection.fetchrow(
            "SELECT id, shared, let_go_at IS NOT NULL AS let_go, (SELECT count(*) FROM tenant_types"
            " WHERE type = job_types.id AND let_go_at IS NULL) AS namers FROM job_types"
            " WHERE name = $1",
            name,
        )
    return dict(row) if row else None


async def is_let_go(platform: Platform, name: str) -> bool:
    found = await rows(platform, name)
    assert found is not None, "it is gone altogether"
    is_gone: bool = found["let_go"]
    assert is_gone == (name not in platform.directory.type_ids)
    return is_gone


async def drop_jobs(platform: Platform, *jobs: JobId) -> None:
    async with platform.database.background() as connection:
        await connection.execute("DELETE FROM jobs WHERE id = ANY($1::uuid[])", list(jobs))


# -- what goes ---------------------------------------------------------------------------------


async def test_a_name_without_jobs_counts_no_more_and_goes_for_good_a_week_later(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    names = platform.directory.names
    (job,) = await submit(platform, tenant, new("used.once"))
    await drop_jobs(platform, job)
    await tick(platform, expiry, days=0.9)
    assert not await is_let_go(platform, "used.once")
    await tick(platform, expiry, days=0.2)  # the tenant lets it go, then nobody has it
    await tick(platform, expiry)
    assert await is_let_go(platform, "used.once")
    assert not names.is_named_by(Namer(tenant.id), "used.once")
    await tick(platform, expiry, days=6.9)
    assert await rows(platform, "used.once") is not None
    await tick(platform, expiry, days=0.2)  # the row of the tenant goes, then the name
    await tick(platform, expiry)
    assert await rows(platform, "used.once") is None


async def test_a_tenant_at_its_bound_has_room_again(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "TENANT_NAMES_MAX", 3)
    jobs = await submit(platform, tenant, *(new(f"full.{n}") for n in range(3)))
    await drop_jobs(platform, *jobs[:2])
    await tick(platform, expiry, days=2)
    await submit(platform, tenant, new("fresh.1"), new("fresh.2"))
    assert (await rows(platform, "full.2") or {})["namers"] == 1


async def test_a_name_that_comes_again_has_its_number(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    (job,) = await submit(platform, tenant, new("again"))
    number = platform.directory.type_ids["again"]
    await drop_jobs(platform, job)
    for _ in range(2):
        await tick(platform, expiry, days=2)
    assert await is_let_go(platform, "again")
    await submit(platform, tenant, new("again"))
    await platform.registry.run_once(0)
    assert platform.directory.type_ids["again"] == number
    assert not await is_let_go(platform, "again")


async def test_a_name_of_the_house_lapses_and_goes_with_the_last_job_of_its_time(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    await Hand(platform, types=["deployed.once"]).say(hello=True)
    await Hand(platform, types=["deployed.once"]).say(goodbye=True)
    platform.dispatcher.sessions.clear()
    await platform.registry.put_type("by.hand", TypeFacts(attempts_max=3), PLATFORM)
    await tick(platform, expiry, days=29)
    assert (await rows(platform, "deployed.once") or {})["shared"]
    await tick(platform, expiry, days=2)
    found = await rows(platform, "deployed.once")
    assert found is not None
    assert (found["shared"], found["let_go"]) == (False, False)
    assert "deployed.once" not in platform.directory.names.shared
    await tick(platform, expiry, days=3)  # and no partition is older than yesterday
    assert await is_let_go(platform, "deployed.once")
    assert (await rows(platform, "by.hand") or {})["shared"]


# -- what stays --------------------------------------------------------------------------------


async def test_a_job_anywhere_in_the_history_keeps_its_name(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOBS_AT_ONCE", 2)
    await submit(platform, tenant, new("old"))
    (gone,) = await submit(platform, tenant, new("gone"))
    for _ in range(7):
        await submit(platform, tenant, new("young"))
    await drop_jobs(platform, gone)
    for _ in range(3):
        await tick(platform, expiry, days=2)
    assert not await is_let_go(platform, "old")
    assert not await is_let_go(platform, "young")
    assert await is_let_go(platform, "gone")


async def test_one_tenants_jobs_keep_no_name_of_another(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    other = await add_tenant(platform, "other")
    await submit(platform, other, new("common"))
    (job,) = await submit(platform, tenant, new("common"))
    await drop_jobs(platform, job)
    await tick(platform, expiry, days=2)
    assert (await rows(platform, "common") or {})["namers"] == 1
    names = platform.directory.names
    await names.know(other.id, ["common"])
    assert not names.is_named_by(Namer(tenant.id), "common")


async def test_schedules_pauses_and_restraints_keep_names(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    kept = ["schedule", "pause", "circuit", "quarantine", "action"]
    ids = await platform.directory.know_types([*kept, "nothing"], tenant.id)
    await platform.pauses.pause(Hold(tenant.id, ids["pause"], PoolId(0)))
    shard = tenant.id % platform.cluster.shard_count
    async with platform.database.background() as connection:
        await connection.execute(
            "INSERT INTO schedules (shard, tenant, name, every_ms, zone, type, pool, priority,"
            " payload, jitter_ms, starts_at, overlap, catch_up, window_ms, paused, source,"
            " handled_at) VALUES ($1, $2, 's', 1000, 'UTC', $3, 1, 5, '{}', 0, now(), 0, 0, 0,"
            " true, '', now())",
            shard, tenant.id, ids["schedule"],
        )  # fmt: skip
        await connection.execute(
            "INSERT INTO circuits (tenant, type, dependency, rest_us, probe_at)"
            " VALUES ($1, $2, 'd', 1, now())",
            tenant.id, ids["circuit"],
        )  # fmt: skip
        await connection.execute(
            "INSERT INTO quarantines (tenant, type) VALUES ($1, $2)", tenant.id, ids["quarantine"]
        )
        await connection.execute(
            "INSERT INTO bulk_actions (shard, tenant, id, act, type, since, before,"
            " per_second, matched, cursor) VALUES ($1, $2, gen_random_uuid(), 'replay', $3,"
            " gen_random_uuid(), gen_random_uuid(), 1, 1, gen_random_uuid())",
            shard, tenant.id, ids["action"],
        )  # fmt: skip
    for _ in range(4):
        await tick(platform, expiry, days=5)
    assert await rows(platform, "nothing") is None
    assert [name for name in kept if await is_let_go(platform, name)] == []


async def test_a_pause_of_everybodys_jobs_keeps_the_name_of_a_type(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    (number,) = (await platform.directory.know_types(["held"], tenant.id)).values()
    await platform.pauses.pause(Hold(TenantId(0), number, PoolId(0)))
    for _ in range(4):
        await tick(platform, expiry, days=9)
    assert not await is_let_go(platform, "held")


async def test_workers_that_are_there_keep_their_names(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    shared, own = Hand(platform, types=["shared"]), Hand(platform, types=["own"])
    own.tenant = tenant.id
    for hand in (shared, own):
        await hand.say(hello=True)
    for _ in range(3):
        expiry._renew_due_us = 0
        await tick(platform, expiry, days=0.9)
    assert (await rows(platform, "own") or {})["namers"] == 1
    for _ in range(3):
        expiry._renew_due_us = 0
        await tick(platform, expiry, days=29)
    assert (await rows(platform, "shared") or {})["shared"]


# -- races -------------------------------------------------------------------------------------


async def test_a_job_on_its_way_with_a_number_that_was_let_go_is_run_and_keeps_it(
    database_url: str,
) -> None:
    """The other server has not heard of it yet, and writes with the number it knows."""
    ours, theirs = await open_pair(database_url)
    try:
        tenant = await add_tenant(ours)
        await theirs.directory.run_once(0)
        (job,) = await submit(theirs, tenant, new("raced"))
        await drop_jobs(ours, job)
        await freeze(theirs)  # as if it were stopped for a while
        expiry = keeper_of(ours)
        for _ in range(2):
            await tick(ours, expiry, days=2)
        assert await is_let_go(ours, "raced")
        (late,) = await submit(theirs, tenant, new("raced"))
        async with ours.database.background() as connection:
            written = await connection.fetchval("SELECT type FROM jobs WHERE id = $1", late)
        assert await ours.directory.type_name(written) == "raced"
        for _ in range(2):
            await tick(ours, expiry, days=8)  # time to go for good, but for that job
        found = await rows(ours, "raced")
        assert found is not None
        assert (found["id"], found["let_go"], found["namers"]) == (written, False, 1)
        (lease,) = await Hand(ours, types=["raced"]).take()
        assert lease.job.id == late
    finally:
        await stopped(theirs)
        await stopped(ours)


async def test_a_worker_that_names_it_just_then_has_it(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    await platform.directory.know_types(["work"], tenant.id)
    number = platform.directory.type_ids["work"]
    for _ in range(2):
        await tick(platform, expiry, days=2)
    assert await is_let_go(platform, "work")
    hand = Hand(platform)
    await hand.say(hello=True)
    assert platform.dispatcher.sessions[hand.key].types == {number}
    await tick(platform, expiry, days=8)
    assert (await rows(platform, "work") or {})["shared"]


async def test_while_a_partition_is_on_its_way_out_nothing_goes(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    await platform.directory.know_types(["work"], tenant.id)
    async with platform.database.upkeep() as connection:
        await connection.execute("CREATE TABLE jobs_20200101 (LIKE jobs)")
    for _ in range(3):
        await tick(platform, expiry, days=9)
    assert not await is_let_go(platform, "work")
    assert (await rows(platform, "work") or {})["namers"] == 1


# -- how full it is ----------------------------------------------------------------------------


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    with capture_logs() as found:
        yield found


async def test_it_says_so_at_four_fifths(
    platform: Platform,
    tenant: Tenant,
    expiry: TypeNameExpiry,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[Any],
) -> None:
    monkeypatch.setattr(bounds, "TENANTS_NAMES_MAX", 5)
    monkeypatch.setattr(bounds, "SHARED_NAMES_MAX", 5)

    def alarms() -> list[tuple[str, int, int]]:
        named = [one for one in lines if one["event"] == "names of job types grow short"]
        return [(one["kind"], one["count"], one["most"]) for one in named]

    def told(name: str, kind: str) -> float | None:
        return platform.metrics.registry.get_sample_value(name, {"kind": kind})

    await platform.directory.know_types(["a", "b", "c"], tenant.id)
    await expiry.run_once(0)
    assert alarms() == []
    await platform.directory.know_types(["d"], tenant.id)
    await platform.directory.know_types(["e", "f", "g", "h"])
    await expiry.run_once(0)
    await expiry.run_once(60_000_000)  # once an hour, not with every look
    assert alarms() == [("shared", 4, 5), ("tenants", 4, 5)]
    await expiry.run_once(3_600_000_000)
    assert len(alarms()) == 4
    for kind in ("shared", "tenants"):
        assert told("fairway_job_types", kind) == 4
        assert told("fairway_job_types_max", kind) == 5
