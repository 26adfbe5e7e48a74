"""`fairway migrate`: bring a database to the schema of this version; `--plan`: only say how.

A server does the same when it starts. By itself it is for whoever changes the database first, as
its owner, and starts servers afterwards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairway.cli.terminal.output import Column, Output, Record
from fairway.core.errors import InvalidRequest
from fairway.runtime.settings import Settings, load

if TYPE_CHECKING:
    from fairway.store.schema.plan import Plan, PlannedMigration

MEANS = {
    "ROW EXCLUSIVE": "rows are written; nobody waits",
    "SHARE UPDATE EXCLUSIVE": "jobs go on",
    "SHARE": "nobody writes meanwhile",
    "SHARE ROW EXCLUSIVE": "nobody writes for a moment",
    "ACCESS EXCLUSIVE": "nobody reads or writes for a moment",
}
PATIENCE = (
    "Each lock is asked for during 0.2 s, then others go first; after 120 tries it ends, names"
    " itself, and can be started again."
)
PLAIN = Output()
UNKNOWN = "unknown"  # what a DO block locks is decided as it runs
OLD_SERVERS = {
    True: "Servers of the version before go on, and may be started again on the new schema.",
    False: "Servers of the version before go on; one that is started again on the new schema is"
    " refused, so start new ones in their place.",
}


def migrate(
    *,
    plan: bool = False,
    database_url: str | None = None,
    data_dir: Path | None = None,
    output: Output = PLAIN,
) -> None:
    """Bring the database to the schema of this version, as the owner of its tables.

    A server does so itself when it starts; this is for those who change the database first.

    Parameters
    ----------
    plan
        Change nothing: say what would run, which locks it takes, and about how long.
    database_url
        postgresql://… as the owner of the tables (default FAIRWAY_OWNER_DATABASE_URL, else
        FAIRWAY_DATABASE_URL).
    data_dir
        The data folder, when it brings its own PostgreSQL (default .fairway).
    """
    import asyncio

    settings = load(os.environ, database_url=database_url, data_dir=data_dir)
    if plan:
        _show(asyncio.run(_plan(settings)), output)
        return
    for name in (applied := asyncio.run(_migrate(settings))):
        sys.stdout.write(f"applied {name}\n")
    if not applied:
        sys.stdout.write("The schema is that of this version; nothing was to be done.\n")


async def _plan(settings: Settings) -> Plan:
    from fairway.cli.processes.postgres import owner_address
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.schema.plan import plan

    _there_is_a_database(settings)
    async with owner_address(settings) as dsn:
        connection = await connect_for_once(dsn, "fairway-plan")
        try:
            return await plan(connection)
        finally:
            await connection.close()


async def _migrate(settings: Settings) -> list[str]:
    from fairway.cli.processes.postgres import owner_address
    from fairway.store.schema.migrate import migrate_at

    _there_is_a_database(settings)
    async with owner_address(settings) as dsn:
        applied = await migrate_at(dsn, _tell, roles=settings.row_security)
        return [one.name for one in applied]


def _there_is_a_database(settings: Settings) -> None:
    from fairway.cli.processes.data_folder import postgres_folder

    if settings.database_url is None and not postgres_folder(settings.data_dir).exists():
        raise InvalidRequest(
            f"There is no database in {settings.data_dir}: set FAIRWAY_DATABASE_URL or --data-dir."
        )


def _show(plan: Plan, output: Output) -> None:
    records = [_record(one) for one in plan.migrations]
    whole = {
        "applied": plan.applied,
        "migrations": records,
        "old_servers_start": plan.old_servers_start,
    }
    nothing = "The schema is that of this version; nothing is to be done."
    output.rows(whole, records, COLUMNS, nothing)
    if records and output.form == "table":
        sys.stdout.write(f"{PATIENCE}\n{OLD_SERVERS[plan.old_servers_start]}\n")


def _record(one: PlannedMigration) -> dict[str, Any]:
    return {
        "migration": one.name,
        "kind": one.kind,
        "locks": one.locks,
        "is_online": one.is_online,
        "seconds": round(one.seconds, 1),
        "serves_from": one.serves_from,
    }


def _locks(one: Record) -> str:
    said = [
        "decided as it runs" if table == UNKNOWN else f"{table}: {mode} ({MEANS[mode]})"
        for table, mode in one["locks"].items()
    ]
    return "; ".join(said) or "none on what is there"


def _time(one: Record) -> str:
    about = f"about {one['seconds']:.0f} s" if one["seconds"] >= 1 else "under 1 s"
    return f"{about}, beside the work" if one["is_online"] else about


COLUMNS = (
    Column("migration", "migration"),
    Column("kind", "kind"),
    Column("takes", _time),
    Column("locks", _locks, "fold"),
)


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
