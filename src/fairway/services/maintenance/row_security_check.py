"""For `fairway check`: would a server that starts now find its roles, grants and policies sound?

The proof is the server's own. What only the next start would mend is told as well, for servers that
run already have nobody to mend it. Nothing is changed.
"""

from __future__ import annotations

import asyncpg

from fairway.core.errors import Unavailable
from fairway.core.regions.region_map import region_map
from fairway.runtime.settings import Settings
from fairway.services.database_proofs import be_one_database, prove_region, prove_row_security
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.row_security import missing_grants, missing_roles
from fairway.store.postgres.tuning import Finding
from fairway.store.schema.migrate import is_present


async def inspect_row_security(dsn: str, settings: Settings) -> list[Finding]:
    """What is wrong, each with what to run; the address is the servers' one."""
    owner_dsn = settings.owner_database_url or dsn
    found: list[Finding] = []
    try:
        await be_one_database(dsn, owner_dsn)
        connection = await connect_for_once(owner_dsn, "fairway-check")
        try:
            missing = await missing_roles(connection) if settings.row_security else []
            if not await is_present(connection):
                return []  # whoever migrates it makes the rest
            if missing:
                return [_unusable(missing)]  # and nothing can be asked as one of them
            if settings.row_security:
                found += _lacking(await missing_grants(connection))
        finally:
            await connection.close()
        await _prove(dsn, owner_dsn, settings)
    except Unavailable as error:
        found.append(_fault(error.message))
    except (*DISCONNECTED, asyncpg.PostgresError) as error:
        found.append(_fault(f"Roles and policies of the database cannot be looked at: {error!r}."))
    return found


async def _prove(dsn: str, owner_dsn: str, settings: Settings) -> None:
    """On the connections that a server would have."""
    database = await Database.open(
        dsn,
        owner_dsn=owner_dsn,
        row_security=settings.row_security,
        wait_seconds=settings.store_wait_seconds,
    )
    try:
        await prove_row_security(database)
        await prove_region(database, region_map(settings.region, settings.regions))
    finally:
        database.terminate()


def _unusable(roles: list[str]) -> Finding:
    what = f"The owner of the tables cannot use the roles {' and '.join(roles)}."
    return _fault(what, "A server that starts makes them and what they may do: start one.")


def _lacking(grants: list[str]) -> list[Finding]:
    if not grants:
        return []
    what = f"Roles of the database may not do what they must: {', '.join(grants)}."
    steps = " ".join(f"GRANT {one};" for one in grants)
    return [_fault(what, f"Start a server, or run as the owner of the tables: {steps}")]


def _fault(what: str, remedy: str = "") -> Finding:
    return Finding(level="error", what=what, remedy=remedy)
