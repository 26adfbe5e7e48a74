"""`fairway_enqueue`: PostgreSQL vouches for a login, and the login stands for one tenant."""

from __future__ import annotations

import asyncio
import json

import asyncpg
import pytest
from tests.logins import login_in, login_of
from tests.postgres import connected

from fairway.core.ids import JobId, ShardId, TenantId, parse_job_id, shard_of, unix_ms_of
from fairway.store import outbox
from fairway.store.connections.database import Connection
from fairway.store.registry import sql_logins, tenants

SHARD = ShardId(2)
REQUEST = json.dumps({"type": "email.send", "payload": {"to": "ada"}})
ENQUEUE = "SELECT fairway_enqueue($1)"


@pytest.fixture
async def acme(owner: Connection) -> TenantId:
    """Of four shards, its own is the third."""
    await tenants.found_cluster(owner, 4, "secret")
    for name in ("other", "acme"):
        made = await tenants.add_tenant(owner, name)
    assert made is not None
    assert made.id % 4 == SHARD
    return made.id


async def waiting(connection: Connection, tenant: TenantId, limit: int = 100) -> list[JobId]:
    rows = await outbox.read_waiting(connection, SHARD, tenant, limit, 1 << 20)
    return [row.id for row in rows]


async def test_a_job_is_there_when_the_transaction_commits(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    await owner.add_listener(outbox.CHANNEL, lambda *notice: heard.put_nowait(notice))
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        transaction = shop.transaction()
        await transaction.start()
        await shop.fetchval(ENQUEUE, REQUEST)
        await transaction.rollback()
        transaction = shop.transaction()
        await transaction.start()
        ids = [await shop.fetchval(ENQUEUE, REQUEST) for _ in range(20)]
        assert await waiting(owner, acme) == []
        assert heard.empty()
        await transaction.commit()
        await asyncio.wait_for(heard.get(), 30)
    assert ids == sorted(ids), "the order in which they were handed in"
    assert await waiting(owner, acme) == ids
    assert {parse_job_id(one) for one in ids} == set(ids)
    assert {shard_of(one) for one in ids} == {SHARD}
    now_ms = await owner.fetchval("SELECT extract(epoch FROM clock_timestamp()) * 1000")
    assert all(0 <= now_ms - unix_ms_of(one) < 60_000 for one in ids)
    assert await outbox.waiting_tenants(owner, SHARD, TenantId(-1), 10) == [acme]
    assert await outbox.waiting_tenants(owner, SHARD, acme, 10) == []


async def test_a_login_that_nobody_named_is_told_what_to_do(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    async with login_of(database_url, None) as dsn, connected(dsn) as shop:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):  # not even this
            await shop.fetchval(ENQUEUE, REQUEST)
        await owner.execute("GRANT EXECUTE ON FUNCTION fairway_enqueue(text) TO PUBLIC")
        try:
            with pytest.raises(asyncpg.InsufficientPrivilegeError) as refused:
                await shop.fetchval(ENQUEUE, REQUEST)
        finally:
            await owner.execute("REVOKE EXECUTE ON FUNCTION fairway_enqueue(text) FROM PUBLIC")
        assert f"fairway sql-login TENANT {login_in(dsn)}" in str(refused.value.hint)
        for table in ("outbox", "sql_logins", "jobs"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await shop.execute(f"SELECT FROM {table}")


async def test_a_login_is_taken_back(database_url: str, owner: Connection, acme: TenantId) -> None:
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        assert not await sql_logins.forbid_login(owner, login_in(dsn), "other")
        await shop.fetchval(ENQUEUE, REQUEST)
        assert await sql_logins.forbid_login(owner, login_in(dsn), "acme")
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="may not hand jobs in"):
            await shop.fetchval(ENQUEUE, REQUEST)
    assert len(await waiting(owner, acme)) == 1


async def test_no_table_of_the_callers_own_stands_in_for_ours(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    """Nor a setting, nor a role: only who logged in counts."""
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        await shop.execute("CREATE TEMP TABLE sql_logins (login text, tenant int, is_full boolean)")
        await shop.execute("INSERT INTO sql_logins VALUES (session_user, 1, false)")
        await shop.execute("CREATE TEMP TABLE cluster (shard_count int)")
        await shop.execute("INSERT INTO cluster VALUES (1)")
        await shop.execute("SET search_path = pg_temp, public")
        await shop.execute("SET fairway.tenant = '1'")
        made = await shop.fetchval("SELECT public.fairway_enqueue($1)", REQUEST)
    assert await waiting(owner, acme) == [made]


async def test_what_can_be_no_job_is_refused_in_the_transaction(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        for wrong in ("[]", "{}", '{"type": 7}', '{"type": "a", "payload": {"a": "\\u0000"}}', "{"):
            with pytest.raises(asyncpg.DataError):
                await shop.fetchval(ENQUEUE, wrong)
        large = json.dumps({"type": "a", "payload": {"a": "x" * 65536}})
        with pytest.raises(asyncpg.ProgramLimitExceededError, match="65"):
            await shop.fetchval(ENQUEUE, large)
        await sql_logins.mark_full(owner, acme, is_full=True)
        with pytest.raises(asyncpg.ConfigurationLimitExceededError, match="Too many"):
            await shop.fetchval(ENQUEUE, REQUEST)
        assert await sql_logins.full_tenants(owner, SHARD) == {acme}
        assert await sql_logins.full_tenants(owner, ShardId(0)) == set()


async def test_of_what_is_set_aside_the_newest_are_kept(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        ids = [JobId(await shop.fetchval(ENQUEUE, REQUEST)) for _ in range(6)]
    await outbox.set_aside(owner, SHARD, acme, dict.fromkeys(ids[:4], "why"), keep=2)
    assert await waiting(owner, acme) == ids[4:]
    kept = await owner.fetch("SELECT id::text, reason FROM outbox WHERE refused_at IS NOT NULL")
    assert {tuple(row) for row in kept} == {(ids[2], "why"), (ids[3], "why")}


async def test_a_page_ends_with_the_bytes(
    database_url: str, owner: Connection, acme: TenantId
) -> None:
    async with login_of(database_url, "acme") as dsn, connected(dsn) as shop:
        ids = [await shop.fetchval(ENQUEUE, REQUEST) for _ in range(6)]
    most = 3 * len(REQUEST)
    rows = await outbox.read_waiting(owner, SHARD, acme, 5, most)
    assert [row.id for row in rows] == ids[:3]
    assert await outbox.measure_waiting(owner, SHARD, acme, 5) == (5, 5 * len(REQUEST))
