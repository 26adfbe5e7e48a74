"""What must be true of a database before a server serves on it, or `fairway check` calls it well.

It logs nothing: a look at a database does not wait for a log to be set up.
"""

from __future__ import annotations

from fairway.core.errors import Unavailable
from fairway.core.regions.region_map import RegionMap, unfit_store
from fairway.store.connections import row_security_proof
from fairway.store.connections.database import Database
from fairway.store.connections.hosts import identity_of
from fairway.store.postgres.inspection import read_facts
from fairway.store.postgres.tuning import inspect_connections
from fairway.store.regions.regions import region_signs

PROOF_SECONDS = 30.0
#: Its nodes are asked as whoever asks the coordinator, and hear nothing of the tenant.
WITHOUT_ROLES = (
    "On a distributed store there is no second wall between tenants in the database. Set"
    " FAIRWAY_ROW_SECURITY=false, and start as the owner of the tables."
)


async def be_one_database(dsn: str, owner_dsn: str) -> None:
    if owner_dsn != dsn and await identity_of(owner_dsn) != await identity_of(dsn):
        raise Unavailable(
            "FAIRWAY_OWNER_DATABASE_URL and FAIRWAY_DATABASE_URL lead to different databases.",
            code="TWO_DATABASES",
        )


async def prove_row_security(database: Database) -> None:
    """Refuse to go on where a tenant's connection could see another's rows."""
    if database.has_roles and database.placement is not None:
        raise Unavailable(WITHOUT_ROLES, code="NO_ROW_SECURITY")
    if not database.has_roles:
        async with database.hot() as connection:
            await row_security_proof.prove_owner(connection)
        return
    try:
        async with database.people(PROOF_SECONDS) as connection:
            await row_security_proof.prove(connection)
        for use in (database.hot(), database.background()):
            async with use as connection:
                await row_security_proof.prove_server(connection)
    except row_security_proof.CANNOT_ASK as error:
        raise row_security_proof.cannot_ask(error) from error


async def prove_region(database: Database, here: RegionMap | None) -> None:
    """Refuse to begin where this region could own nothing, for its loops would fail for ever; and
    on a region's database as if there were no regions."""
    async with database.background() as connection:
        signs = await region_signs(connection)
    why = unfit_store(here, signs)
    if why is not None:
        raise Unavailable(why, code="WRONG_REGION")


async def prove_connections(database: Database, processes: int) -> None:
    """Refuse to be the first of so many processes where the last would find no connection.

    One process is let in anywhere: it finds out by itself, as it always did.
    """
    if processes <= 1:
        return
    async with database.background() as connection:
        facts = await read_facts(connection)
    for finding in inspect_connections(facts, processes):
        what = finding.what[0].upper() + finding.what[1:]
        raise Unavailable(f"{what}; {finding.remedy}.", code="TOO_FEW_CONNECTIONS")
