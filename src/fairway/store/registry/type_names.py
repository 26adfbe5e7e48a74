"""Names of job types: who named which, how many, and those that nobody names any more.

A type's number stands in every row of its jobs, so a name that is not used any more goes in two
steps with days in between. Until the second it can be had back, with the same number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId, TypeId
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("type_names.sql")

HOUSE = TenantId(0)  # in the place of a tenant: shared workers and operators


class StoredName(NamedTuple):
    id: TypeId
    name: str
    is_shared: bool
    by_worker: bool | None = None  # of the tenant that is asked for; None: it has not named it
    is_let_go: bool = False


class Stale(NamedTuple):
    """A name that may go: for now, or for good when it was let go before."""

    type: TypeId
    is_let_go: bool


class Ages(NamedTuple):
    """How long a name is not used before it is let go, and how long it is kept after that."""

    unused: timedelta
    kept: timedelta


# -- who names what ----------------------------------------------------------------------------


async def all_names(connection: Connection) -> list[StoredName]:
    return await fetch_as(StoredName, connection, _SQL["all_names"])


async def all_namers(connection: Connection) -> list[tuple[str, TenantId, bool]]:
    """Name, tenant, and whether its own worker runs it."""
    rows = await fetch(connection, _SQL["all_namers"])
    return [(name, tenant, by_worker) for name, tenant, by_worker in rows]


async def read_names(connection: Connection, names: Sequence[str]) -> list[StoredName]:
    """Those of these names that there are, also let go."""
    return await fetch_as(StoredName, connection, _SQL["read_names"], names=names)


async def names_of(connection: Connection, types: Collection[TypeId]) -> dict[TypeId, str]:
    """Those of these types that there still are."""
    return dict(await fetch(connection, _SQL["names_of"], ids=list(types)))


async def take_turns(connection: Connection, tenant: TenantId) -> None:
    """Inside a transaction: nobody else counts this tenant's names until it ends."""
    if tenant == HOUSE:
        await fetch_row(connection, _SQL["take_turns_of_house"])
    else:
        await fetch_row(connection, _SQL["take_turns"], tenant=tenant)


async def names_for(
    connection: Connection, tenant: TenantId, names: Sequence[str]
) -> dict[str, StoredName]:
    rows = await fetch(connection, _SQL["names_for"], tenant=tenant, names=names)
    return {row["name"]: StoredName(*row) for row in rows}


async def count_shared(connection: Connection) -> int:
    count: int = await fetch_value(connection, _SQL["count_shared"])
    return count


async def count_of_tenant(connection: Connection, tenant: TenantId, *, by_worker: bool) -> int:
    count: int = await fetch_value(
        connection, _SQL["count_of_tenant"], tenant=tenant, by_worker=by_worker
    )
    return count


async def name_for_all(connection: Connection, names: Iterable[str]) -> dict[str, TypeId]:
    """The numbers of these names, which are the house's from now on."""
    rows = await fetch(connection, _SQL["name_for_all"], names=sorted(names))
    return {row["name"]: row["id"] for row in rows}


async def name_for_tenant(
    connection: Connection, tenant: TenantId, names: Iterable[str], *, by_worker: bool
) -> dict[str, TypeId]:
    """The numbers of these names, which the tenant uses from now on."""
    rows = await fetch(
        connection,
        _SQL["name_for_tenant"],
        tenant=tenant,
        names=sorted(names),  # whoever adds the same ones waits for us, and nobody for each other
        by_worker=by_worker,
    )
    return {row["name"]: row["id"] for row in rows}


# -- what is used ------------------------------------------------------------------------------


async def renew_shared(connection: Connection, types: Collection[TypeId]) -> None:
    await execute(connection, _SQL["renew_shared"], types=list(types))


async def renew_own(connection: Connection, said: Collection[tuple[TenantId, TypeId]]) -> None:
    """(tenant, type) of tenants' own workers that are there."""
    await execute(connection, _SQL["renew_own"], **columns([*said], "tenants", "types"))


async def lapse_shared(connection: Connection, unsaid: timedelta) -> list[str]:
    return await fetch_values(connection, _SQL["lapse_shared"], unsaid=unsaid)


# -- what is not -------------------------------------------------------------------------------


async def stale_tenants(
    connection: Connection, after: TenantId, ages: Ages, limit: int
) -> list[TenantId]:
    return await fetch_values(
        connection, _SQL["stale_tenants"], after=after, limit=limit, **ages._asdict()
    )


async def stale_names(
    connection: Connection, shard: ShardId, tenant: TenantId, ages: Ages, limit: int
) -> list[Stale]:
    asked = {"shard": shard, "tenant": tenant, "limit": limit, **ages._asdict()}
    return await fetch_as(Stale, connection, _SQL["stale_names"], **asked)


async def keep_names(connection: Connection, tenant: TenantId, types: Collection[TypeId]) -> None:
    await execute(connection, _SQL["keep_names"], tenant=tenant, types=list(types))


async def let_go_names(
    connection: Connection, tenant: TenantId, types: Collection[TypeId], unused: timedelta
) -> int:
    return await execute(
        connection, _SQL["let_go_names"], tenant=tenant, types=list(types), unused=unused
    )


async def drop_names(
    connection: Connection, tenant: TenantId, types: Collection[TypeId], kept: timedelta
) -> int:
    return await execute(
        connection, _SQL["drop_names"], tenant=tenant, types=list(types), kept=kept
    )


async def loose_types(
    connection: Connection, after: TypeId, kept_since: datetime, ages: Ages, limit: int
) -> list[Stale]:
    """Types that nobody names. Jobs since then may be of any type that the house had said."""
    asked = {"after": after, "kept_since": kept_since, "limit": limit, **ages._asdict()}
    return await fetch_as(Stale, connection, _SQL["loose_types"], **asked)


async def referred_types(connection: Connection, types: Collection[TypeId]) -> set[TypeId]:
    return set(await fetch_values(connection, _SQL["referred_types"], types=list(types)))


async def let_go_types(
    connection: Connection, types: Collection[TypeId], kept_since: datetime
) -> list[str]:
    """Those that nobody names. Held first: a statement sees nothing of those it waited for."""
    async with connection.transaction():
        held = await fetch_values(connection, _SQL["hold_types"], types=list(types))
        return await fetch_values(
            connection, _SQL["let_go_types"], types=held, kept_since=kept_since
        )


async def drop_types(
    connection: Connection, types: Collection[TypeId], kept: timedelta
) -> list[str]:
    return await fetch_values(connection, _SQL["drop_types"], types=list(types), kept=kept)
