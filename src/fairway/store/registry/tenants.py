"""Tenants, their keys, and the facts that all servers of a database agree on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fairway.core.ids import ShardId, TenantId
from fairway.core.keys import KeyFacts
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import Reserved, Tenant, TenantFilter, TenantSettings
from fairway.store.connections.database import (
    Connection,
    Record,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("tenants.sql")
_PLAIN = TenantSettings()


class Cluster(NamedTuple):
    shard_count: int  # that it was founded with: it tells the homes of tenants by their numbers
    secret: str
    shards: int  # how many there are now

    def tenant_shards(self) -> TenantShards:
        """Where tenants are, as far as that is known before any was read."""
        return TenantShards(self.shard_count, self.shards)


class StoredKey(NamedTuple):
    id: str
    scope: str
    tenant: TenantId | None
    secret_hash: bytes
    permissions: Sequence[str] | None = None  # of those of its scope; None: all
    pools: Sequence[str] | None = None  # of a worker's key: nothing else is run with it; None: any
    types: Sequence[str] | None = None
    name: str = ""  # for people
    only_tenants: Sequence[TenantId] | None = None  # of a shared worker's key


async def found_cluster(connection: Connection, shard_count: int, secret: str) -> Cluster:
    """Read the cluster's row, writing it first if this is the first server ever."""
    await execute(connection, _SQL["found_cluster"], shard_count=shard_count, secret=secret)
    cluster = await read_cluster(connection)
    assert cluster is not None
    if getattr(connection, "placement", None) is None:  # else `init` did: a node may be away now
        await add_shards(connection, cluster.shards)
    return cluster


async def read_cluster(connection: Connection) -> Cluster | None:
    """What all servers agree on; None before the first of them."""
    row = await fetch_row(connection, _SQL["read_cluster"])
    return None if row is None else Cluster(*row)


async def add_shards(connection: Connection, count: int) -> None:
    """Rows for so many shards in all; those that are there stay as they are."""
    await execute(connection, _SQL["add_shards"], shard_count=count)


async def storage_marker(connection: Connection) -> str | None:
    """Of the object storage that belongs to this database; None before one was marked."""
    marker: str | None = await fetch_value(connection, _SQL["storage_marker"])
    return marker


async def lock_storage_marker(connection: Connection) -> str | None:
    """The same, and until the transaction ends nobody else may change it."""
    marker: str | None = await fetch_value(connection, _SQL["lock_storage_marker"])
    return marker


async def know_storage_marker(connection: Connection, marker: str) -> None:
    await execute(connection, _SQL["know_storage_marker"], marker=marker)


async def add_tenant(
    connection: Connection,
    name: str,
    settings: TenantSettings = _PLAIN,
    shard: ShardId | None = None,
    part_of: TenantId | None = None,
) -> Tenant | None:
    """The new tenant, in this shard or where its number leads; None when the name is taken."""
    asked = {"name": name, "shard": shard, "part_of": part_of, **_columns(settings)}
    row = await fetch_row(connection, _SQL["add_tenant"], **asked)
    if row is None:
        return None
    made = await fetch_row(connection, _SQL["read_tenant"], id=row["id"])
    return _tenant(made)


async def set_parts(connection: Connection, parts: Sequence[TenantId]) -> None:
    """These are one tenant, the first of them the one that people know."""
    await execute(connection, _SQL["set_parts"], parts=list(parts))


async def change_tenant(
    connection: Connection, name: str, changes: Mapping[str, Any]
) -> tuple[TenantSettings, TenantSettings] | None:
    """A tenant's settings before and with these of them changed; None: there is no such tenant."""
    async with connection.transaction():
        row = await fetch_row(connection, _SQL["read_settings"], name=name)
        if row is None:
            return None
        kept = TenantSettings._make((*tuple(row)[:-1], _reserved(row["reserved"])))
        settings = kept._replace(**changes)
        await execute(connection, _SQL["change_tenant"], name=name, **_columns(settings))
    return kept, settings


async def set_job_events(connection: Connection, tenant: TenantId, wanted: bool) -> bool:
    """Whether it was otherwise before."""
    return bool(await execute(connection, _SQL["set_job_events"], id=tenant, wanted=wanted))


async def changed_tenants(connection: Connection, since: datetime) -> list[Tenant]:
    """Tenants that are new or different since then."""
    rows = await fetch(connection, _SQL["changed_tenants"], since=since)
    return [_tenant(row) for row in rows]


async def moves_asked(connection: Connection) -> int:
    """Moves of tenants to other shards that were asked for so far."""
    found: int | None = await fetch_value(connection, _SQL["moves_asked"])
    return found or 0


async def moved_tenants(connection: Connection) -> list[Tenant]:
    """Those that are on their way to another shard, or were in another before."""
    return [_tenant(row) for row in await fetch(connection, _SQL["moved_tenants"])]


async def list_tenants(
    connection: Connection, after: str, limit: int, wanted: TenantFilter
) -> list[Tenant]:
    """A page of those that match, by name."""
    asked = {"after": after, "limit": limit, **wanted._asdict()}
    return [_tenant(row) for row in await fetch(connection, _SQL["list_tenants"], **asked)]


async def list_keys(
    connection: Connection, after: str, limit: int, scope: str | None, tenant: TenantId | None
) -> list[KeyFacts]:
    """A page of the valid ones, by public part."""
    wanted = {"after": after, "limit": limit, "scope": scope, "tenant": tenant}
    return await fetch_as(KeyFacts, connection, _SQL["list_keys"], **wanted)


def _columns(settings: TenantSettings) -> dict[str, Any]:
    return settings._asdict() | {"reserved": json.dumps(dict(settings.reserved))}


def _tenant(row: Record) -> Tenant:
    reserved, moved_from = _reserved(row["reserved"]), tuple(row["moved_from"])
    parts = tuple(row["parts"])
    return Tenant._make(row)._replace(reserved=reserved, moved_from=moved_from, parts=parts)


def _reserved(text: str) -> Reserved:
    return () if text == "{}" else tuple(sorted(json.loads(text).items()))


async def changed_keys(connection: Connection, since: datetime, limit: int) -> list[StoredKey]:
    """Valid keys that were made since then, the newest of them."""
    return await fetch_as(StoredKey, connection, _SQL["changed_keys"], since=since, limit=limit)


async def store_now(connection: Connection) -> datetime:
    """The moment to ask from next time."""
    now: datetime = await fetch_value(connection, _SQL["store_now"])
    return now


async def add_key(
    connection: Connection, key: StoredKey, expires_at: datetime | None = None
) -> None:
    await execute(connection, _SQL["add_key"], **key._asdict(), expires_at=expires_at)


async def key_facts(connection: Connection, key_id: str) -> KeyFacts | None:
    """A valid key, for whoever changes it in this transaction."""
    row = await fetch_row(connection, _SQL["key_facts"], id=key_id)
    return KeyFacts(*row) if row else None


async def expire_key(connection: Connection, key_id: str, at: datetime) -> None:
    """No later than it would anyway."""
    await execute(connection, _SQL["expire_key"], id=key_id, at=at)


async def lock_operators(connection: Connection) -> None:
    """Until the transaction ends nobody else makes the first operator's key."""
    await fetch(connection, _SQL["lock_operators"])


async def keys_used(connection: Connection, ids: Sequence[str]) -> None:
    """These opened something just now."""
    await execute(connection, _SQL["keys_used"], ids=ids)


async def read_key(connection: Connection, key_id: str) -> StoredKey | None:
    row = await fetch_row(connection, _SQL["read_key"], id=key_id)
    return StoredKey(*row) if row else None


class DirectoryNews(NamedTuple):
    """What is to be read, and the moment up to which nothing else is."""

    now: datetime
    tenants: bool
    keys: bool
    revoked: bool


async def directory_news(connection: Connection, since: datetime) -> DirectoryNews:
    (row,) = await fetch_as(DirectoryNews, connection, _SQL["directory_news"], since=since)
    return row


async def revoked_keys(connection: Connection, since: datetime) -> list[str]:
    """Ids of keys that were revoked or ran out since then."""
    return await fetch_values(connection, _SQL["revoked_keys"], since=since)


async def revoke_key(connection: Connection, key_id: str) -> bool:
    return await execute(connection, _SQL["revoke_key"], id=key_id) == 1
