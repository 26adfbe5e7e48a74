"""Makes a tenant in several shards: its parts, in one transaction with their line in the audit.

How many there are is said once: idempotency keys are judged where they lead by that count, so it is
never changed. Whether the platform can have such a tenant is asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.audit import Act, Actor
from fairway.core.errors import Conflict
from fairway.core.ids import ShardId
from fairway.core.ownership.tenant_parts import part_name, shards_of_parts
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import Tenant, TenantSettings
from fairway.services.registry.refusals import refuse_unknown_tier
from fairway.services.registry.tenant_moves import refuse_target
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import tenants as store


class WantedShards(NamedTuple):
    """How many, and the first of them; None: the one that the tenant's number leads to."""

    first: ShardId | None
    number: int


class SpreadTenants:
    def __init__(
        self, database: Database, directory: Directory, tenant_shards: TenantShards
    ) -> None:
        self._database = database
        self._directory = directory
        self._tenant_shards = tenant_shards

    async def add(
        self, name: str, settings: TenantSettings, actor: Actor, wanted: WantedShards
    ) -> Tenant | None:
        """The first part, which people know; None: the name is taken."""
        shard, count = wanted
        async with told_if_away, self._database.people() as connection, connection.transaction():
            await refuse_unknown_tier(connection, settings.tier)
            if shard is not None:
                await refuse_target(connection, shard)
            first = await store.add_tenant(connection, name, settings, shard)
            if first is None:
                return None
            parts = await self._add_others(connection, first, settings, count)
            named = {"shards": [one.shard for one in parts]}
            act = Act("add_tenant", name, first.id, after=named | settings._asdict())
            await self._directory.audit_log.add(connection, actor, act)
        for one in parts:
            self._directory.learn_tenant(one)
        return self._directory.tenants[first.id]

    async def _add_others(
        self, connection: Connection, first: Tenant, settings: TenantSettings, count: int
    ) -> Sequence[Tenant]:
        known = self._tenant_shards
        home = ShardId(first.id % known.founded) if first.shard is None else first.shard
        parts = [first._replace(shard=home)]
        for place, shard in enumerate(shards_of_parts(home, count, known.count)):
            if not place:
                continue
            await refuse_target(connection, shard)
            name = part_name(first.name, place)
            part = await store.add_tenant(connection, name, settings, shard, first.id)
            if part is None:
                raise Conflict(
                    f"A tenant {first.name!r} with several shards was deleted, and not all of it is"
                    " gone yet: choose another name, or try again later.",
                    field="/name",
                )
            parts.append(part)
        ids = tuple(one.id for one in parts)
        await store.set_parts(connection, ids)
        return [one._replace(parts=ids) for one in parts]
