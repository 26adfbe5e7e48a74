"""Tenants, keys, job types, and the cluster's one row."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg
import pytest
from tests.laws.plans import Plan

from fairway.core.tenant import TenantSettings
from fairway.store.connections.database import Connection, Database
from fairway.store.registry.tenants import (
    Cluster,
    StoredKey,
    add_key,
    add_tenant,
    changed_keys,
    changed_tenants,
    found_cluster,
    key_facts,
    keys_used,
    list_keys,
    read_key,
    revoke_key,
    revoked_keys,
    store_now,
)
from fairway.store.sql import load

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def test_the_first_server_founds_the_cluster_and_the_rest_join(
    connection: Connection, other_connection: Connection
) -> None:
    both = await asyncio.gather(
        found_cluster(connection, 3, "ours"), found_cluster(other_connection, 5, "theirs")
    )
    assert both[0] == both[1]
    assert both[0] in (Cluster(3, "ours", 3), Cluster(5, "theirs", 5))
    assert await connection.fetchval("SELECT count(*) FROM shards") == both[0].shard_count


async def test_a_name_is_one_tenants(connection: Connection) -> None:
    tenant = await add_tenant(connection, "acme", TenantSettings("pro", 7, 9))
    assert tenant is not None
    assert tenant[1:12] == ("acme", 7, 9, "pro", "", 10, None, 10_000, 100_000, False, ())
    assert tenant[12:] == ("active", "", False, None, None, None, (), None, ())
    assert await add_tenant(connection, "acme") is None
    with pytest.raises(asyncpg.CheckViolationError):
        await add_tenant(connection, "ACME!")
    with pytest.raises(asyncpg.CheckViolationError):
        await add_tenant(connection, "nil", TenantSettings(weight=0))


async def test_what_changed_is_read_again_and_the_rest_is_not(connection: Connection) -> None:
    await add_tenant(connection, "old")
    await connection.execute("UPDATE tenants SET updated_at = now() - interval '1 hour'")
    everyone = await changed_tenants(connection, LONG_AGO)
    assert [tenant.name for tenant in everyone] == ["old"]
    since = await store_now(connection)
    await add_tenant(connection, "new")
    changed = await changed_tenants(connection, since)
    assert [tenant.name for tenant in changed] == ["new"]


async def test_keys_are_found_until_they_are_revoked_or_expire(connection: Connection) -> None:
    tenant = await add_tenant(connection, "acme")
    assert tenant is not None
    for name in ("k1", "k2"):
        await add_key(connection, StoredKey(name, "tenant", tenant.id, b"hash"))
    assert await read_key(connection, "k1") == StoredKey("k1", "tenant", tenant.id, b"hash")
    assert await revoke_key(connection, "k1")
    assert not await revoke_key(connection, "k1")
    assert await read_key(connection, "k1") is None
    await connection.execute("UPDATE api_keys SET expires_at = now() WHERE id = 'k2'")
    assert await read_key(connection, "k2") is None
    assert set(await revoked_keys(connection, await store_now(connection))) == {"k1", "k2"}
    await connection.execute("UPDATE api_keys SET revoked_at = now() - interval '1 hour'")
    await connection.execute("UPDATE api_keys SET expires_at = now() - interval '1 hour'")
    assert await revoked_keys(connection, await store_now(connection)) == []
    assert set(await revoked_keys(connection, LONG_AGO)) == {"k1", "k2"}


async def test_keys_are_read_ahead_newest_first_and_only_valid_ones(
    connection: Connection,
) -> None:
    for name in ("k1", "k2", "k3"):
        await add_key(connection, StoredKey(name, "worker", None, b"hash"))
    await revoke_key(connection, "k3")
    assert {key.id for key in await changed_keys(connection, LONG_AGO, 10)} == {"k1", "k2"}
    assert len(await changed_keys(connection, LONG_AGO, 1)) == 1


async def test_a_tenant_key_names_its_tenant(connection: Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="a_tenant_key_names_its_tenant"):
        await add_key(connection, StoredKey("k", "tenant", None, b"hash"))
    await add_key(connection, StoredKey("k", "worker", None, b"hash"))


async def test_the_use_of_a_key_is_written_past_whoever_holds_it(
    connection: Connection, database: Database
) -> None:
    for name in ("k1", "k2"):
        await add_key(connection, StoredKey(name, "worker", None, b"hash"))
    async with database.people() as other, other.transaction():
        assert await key_facts(other, "k1") is not None  # held, as while it is rotated
        await keys_used(connection, ["k1", "k2"])
        listed = {
            one.id: one.last_used_at for one in await list_keys(connection, "", 9, None, None)
        }
        assert listed["k1"] is None
        assert listed["k2"] is not None
    await keys_used(connection, ["k1", "k2"])
    again = await _last_uses(connection)
    assert again["k1"] is not None
    assert again["k2"] == listed["k2"], "to a quarter of an hour"


async def _last_uses(connection: Connection) -> dict[str, datetime | None]:
    return {one.id: one.last_used_at for one in await list_keys(connection, "", 9, None, None)}


async def test_which_keys_ended_is_asked_without_reading_all_keys(
    connection: Connection, database: Database
) -> None:
    """Every server asks this every two seconds."""
    await connection.execute(
        "INSERT INTO api_keys (id, scope, secret_hash, created_at, expires_at, revoked_at)"
        " SELECT 'k' || n, 'worker', ''::bytea, now() - interval '1 day',"
        "        CASE WHEN n % 4 = 0 THEN now() + interval '90 days' END,"
        "        CASE WHEN n % 10 = 0 THEN now() - interval '1 hour' END"
        " FROM generate_series(1, 5000) AS n"
    )
    since, statements = await store_now(connection), load("tenants.sql")
    for name in ("directory_news", "revoked_keys"):
        async with database.background() as asking:
            plan = await Plan.of(asking, statements[name], since=since)
        shape = set(plan.shape("api_keys"))
        assert "Seq Scan" not in shape
        assert shape >= {
            "Bitmap Index Scan api_keys_revoked",
            "Bitmap Index Scan api_keys_expires",
        }
        assert plan.pages <= 16, "the keys have about fifty"
