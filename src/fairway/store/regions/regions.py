"""Whose home is where, who is the directory, and what changed there: rows of one region's store.

What another region says comes and goes as JSON of rows: both have the same schema, and PostgreSQL
reads what it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.errors import Conflict
from fairway.core.ids import TenantId
from fairway.core.regions.homes import DirectoryClaim, DirectoryTerm, Home, HomeTerm, Meant
from fairway.core.regions.region_map import StoreSigns
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_row,
    fetch_value,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("regions.sql")

Kind: TypeAlias = Literal["homes", "tenants", "keys"]
#: Below every key of the kind.
FIRST_KEYS: dict[Kind, str] = {"homes": "-1", "tenants": "-1", "keys": ""}


class RegionRow(NamedTuple):
    """What a region's store knows of itself and of the directory."""

    region: str
    directory: str
    directory_term: DirectoryTerm
    known_until: datetime  # by the directory's clock
    conflicts: int
    now: datetime

    @property
    def claim(self) -> DirectoryClaim:
        return DirectoryClaim(self.directory_term, self.directory)

    @property
    def was_told(self) -> bool:
        """Whether what the present directory has was ever brought here, to its end."""
        return self.known_until.year >= 2000


class ChangesPage(NamedTuple):
    rows: list[str]  # JSON, one a row
    last: tuple[datetime, str] | None  # where the next page goes on; None: there is no more


async def found_region(connection: Connection, region: str, directory: str) -> RegionRow:
    """The store's row, written first if this is the first server that knows its region."""
    await execute(connection, _SQL["found_region"], region=region, directory=directory)
    return await read_region(connection)


async def region_signs(connection: Connection) -> StoreSigns:
    row = await fetch_row(connection, _SQL["region_signs"])
    return StoreSigns(None) if row is None else StoreSigns(*row)


async def read_region(connection: Connection) -> RegionRow:
    row = await fetch_row(connection, _SQL["read_region"])
    if row is None:
        raise Conflict(
            "A tenant of this platform has several shards, so it cannot have regions: start servers"
            " without FAIRWAY_REGION."
        )
    return RegionRow(*row)


async def follow(connection: Connection, claim: DirectoryClaim) -> None:
    """If it stands above the one that is followed."""
    async with connection.transaction():
        await lock_homes(connection)
        await execute(connection, _SQL["follow_directory"], directory=claim.region, term=claim.term)


async def hold_directory(connection: Connection, claim: DirectoryClaim) -> bool:
    """Whether it is the one that is followed; it stays so for this transaction."""
    asked = {"directory": claim.region, "term": claim.term}
    return await is_found(connection, _SQL["hold_directory"], **asked)


async def begin_pull(connection: Connection, pause_seconds: float) -> bool:
    """Whether no other server of the region asks the directory at this moment."""
    return await is_found(connection, _SQL["begin_pull"], pause_seconds=pause_seconds)


async def pulled(
    connection: Connection, claim: DirectoryClaim, known_until: datetime, conflicts: int
) -> None:
    await execute(
        connection,
        _SQL["directory_pulled"],
        directory=claim.region,
        term=claim.term,
        known_until=known_until,
        conflicts=conflicts,
    )


async def homes(connection: Connection, since: datetime) -> dict[TenantId, Home]:
    """Those that changed in this store since then."""
    rows = await fetch(connection, _SQL["all_homes"], since=since)
    return {row["tenant"]: Home(*tuple(row)[1:]) for row in rows}


async def count_homes(connection: Connection, directory: str) -> dict[str, int]:
    rows = await fetch(connection, _SQL["count_homes"], directory=directory)
    return {row["region"]: row["tenants"] for row in rows}


# -- moves -------------------------------------------------------------------------------------


async def lock_homes(connection: Connection) -> RegionRow:
    """Until this transaction ends nobody else moves a home, nor takes what other regions send."""
    await execute(connection, _SQL["lock_homes"])
    await _move_homes(connection)
    return await read_region(connection)


async def _move_homes(connection: Connection) -> None:
    await execute(connection, _SQL["move_homes"])


async def stay_at_home(connection: Connection, meant: Mapping[TenantId, Meant]) -> set[TenantId]:
    """Those of these tenants that are at home here, under no newer home than their senders know:
    until this transaction ends nothing changes that."""
    await execute(connection, _SQL["stay_at_home"])
    found: set[TenantId] = set()
    for tenant, sent in meant.items():
        row = await fetch_row(connection, _SQL["home_here"], tenant=tenant)
        if row is None or not row["is_here"]:
            continue
        known = None if row["region"] is None else Home(*tuple(row)[1:])
        if not sent.is_outdated(known):
            found.add(tenant)
    return found


async def home_of(connection: Connection, tenant: TenantId) -> Home | None:
    """None: it never moved."""
    row = await fetch_row(connection, _SQL["home_of"], tenant=tenant)
    return None if row is None else Home(*row)


async def set_home(
    connection: Connection, tenant: TenantId, region: str, directory_term: DirectoryTerm
) -> HomeTerm | None:
    """The new home term; None: there is no such tenant."""
    term: HomeTerm | None = await fetch_value(
        connection, _SQL["set_home"], tenant=tenant, region=region, directory_term=directory_term
    )
    return term


async def fail_over(
    connection: Connection, source: str, target: str, directory: str, directory_term: DirectoryTerm
) -> int:
    """How many tenants moved."""
    return await execute(
        connection,
        _SQL["fail_over"],
        source=source,
        target=target,
        directory=directory,
        directory_term=directory_term,
    )


async def taken_from(connection: Connection, region: str) -> dict[TenantId, Home]:
    """The tenants that a failover took from it, and where they are at home now."""
    rows = await fetch(connection, _SQL["taken_from"], region=region)
    return {row["tenant"]: Home(*tuple(row)[1:]) for row in rows}


async def note_handed_over(connection: Connection, homes: Mapping[TenantId, Home]) -> None:
    """What waited here of these tenants is gone, or held to be handed over."""
    await execute(connection, _SQL["note_handed_over"], **_asked(homes))


async def not_handed_over(connection: Connection, homes: Mapping[TenantId, Home]) -> list[TenantId]:
    """Those of these tenants of which it is not known."""
    return await fetch_values(connection, _SQL["not_handed_over"], **_asked(homes))


def _asked(homes: Mapping[TenantId, Home]) -> dict[str, list[int]]:
    return {
        "tenants": list(homes),
        "terms": [home.term for home in homes.values()],
        "directory_terms": [home.directory_term for home in homes.values()],
    }


async def fail_back(
    connection: Connection,
    region: str,
    homes: Mapping[TenantId, Home],
    directory_term: DirectoryTerm,
) -> int:
    """How many of these went back: those whose home is still the one that is given."""
    asked = {"region": region, "directory_term": directory_term, **_asked(homes)}
    return await execute(connection, _SQL["fail_back"], **asked)


async def be_directory(connection: Connection, heard: int) -> DirectoryTerm:
    """The new directory term, above `heard` and all that this store knows."""
    await fetch_value(connection, _SQL["pass_over"])
    term: DirectoryTerm = await fetch_value(connection, _SQL["be_directory"], heard=heard)
    await _restate_homes(connection, term)
    return term


async def raise_term(connection: Connection, directory: str) -> DirectoryTerm:
    """The next term of the region that is the directory, under which it says where all are."""
    term: DirectoryTerm = await fetch_value(connection, _SQL["raise_term"])
    await _restate_homes(connection, term)
    await execute(connection, _SQL["state_homes"], directory=directory, directory_term=term)
    return term


async def _restate_homes(connection: Connection, term: DirectoryTerm) -> None:
    await execute(connection, _SQL["restate_homes"], directory_term=term)


# -- what changed, for other regions and from the directory --------------------------------------


async def tiers(connection: Connection) -> str:
    """All of them, as a JSON array."""
    rows: str = await fetch_value(connection, _SQL["changed_tiers"])
    return rows


async def changes(
    connection: Connection, kind: Kind, since: datetime, after: str, limit: int
) -> ChangesPage:
    asked = {"since": since, "after": after, "limit": limit}
    if kind == "homes":
        rows = await fetch(connection, _SQL["changed_homes_page"], **asked)
    elif kind == "tenants":
        rows = await fetch(connection, _SQL["changed_tenants_page"], **asked)
    else:
        rows = await fetch(connection, _SQL["changed_keys_page"], **asked)
    is_full = len(rows) == limit
    last = (rows[-1]["changed_at"], rows[-1]["key"]) if is_full else None
    return ChangesPage([row["row"] for row in rows], last)


async def store_tiers(connection: Connection, rows: str) -> None:
    changed = await fetch_values(connection, _SQL["store_tiers"], rows=rows)
    if changed:
        await execute(connection, _SQL["touch_tenants_of_tiers"], names=changed)


async def store_changes(connection: Connection, kind: Kind, rows: Sequence[str]) -> int:
    """Answers how many could not be stored, for their number or name is another's here."""
    text = f"[{','.join(rows)}]"
    if kind == "homes":
        async with connection.transaction():
            await _move_homes(connection)
            await execute(connection, _SQL["store_homes"], rows=text)
        return 0
    if kind == "keys":
        await execute(connection, _SQL["store_keys"], rows=text)
        return 0
    conflicts: int = await fetch_value(connection, _SQL["count_conflicts"], rows=text)
    await execute(connection, _SQL["store_tenants"], rows=text)
    return conflicts
