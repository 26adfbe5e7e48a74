"""`fairway check`: what is wrong with the settings and the database, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from fairway.cli.terminal.output import painted, say, screen_width
from fairway.cli.terminal.tables import folded, visible
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.settings import Settings, load
from fairway.store.postgres.tuning import Finding

# What talks to PostgreSQL and to object storage is imported where it is needed: most of the time of
# a look at the settings alone would be reading it.

COLOURS = {"error": "red", "warning": "yellow", "ok": "green"}
WIDE, NARROW = 100_000, 30  # a pipe's lines are whole; a screen that is no screen is not obeyed
PROBE = "check/probe"
ALL_WELL = "The settings, the database, its roles and object storage are as they should be."
NO_DATABASE_YET = "The settings are as they should be. There is no database yet to look at."
NOT_LOOKED_AT = (
    "Without a connection to the database (see above) not all could be looked at, and no server"
    " starts. Mend that, then check again."
)


def check(*, database_url: str | None = None, data_dir: Path | None = None) -> int:
    """Say what is wrong with the settings and the database, and what to do. Exit 1 on errors.

    Parameters
    ----------
    database_url
        postgresql://… of the database to look at (default FAIRWAY_DATABASE_URL).
    data_dir
        The data folder, when it brings its own PostgreSQL (default .fairway).
    """
    settings = load(os.environ, database_url=database_url, data_dir=data_dir)
    findings = [Finding(level="error", what=sentence, remedy="") for sentence in settings.check()]
    has_database = _has_database(settings)
    findings += _inspect(settings, has_database=has_database)
    for finding in findings:
        _say(finding.level, f"{finding.what}  {finding.remedy}".rstrip())
    _say_limits()
    errors = sum(finding.level == "error" for finding in findings)
    if has_database and _is_unreachable(findings):
        _say("error", NOT_LOOKED_AT)
    elif not findings:
        _say("ok", ALL_WELL if has_database else NO_DATABASE_YET)
    return 1 if errors else 0


def _is_unreachable(findings: list[Finding]) -> bool:
    from fairway.store.connections.hosts import UNREACHABLE

    return any(finding.what.startswith(UNREACHABLE) for finding in findings)


def _has_database(settings: Settings) -> bool:
    from fairway.cli.processes.data_folder import postgres_folder

    return settings.database_url is not None or postgres_folder(settings.data_dir).exists()


def _say(level: str, text: str) -> None:
    """The level, and what there is to say beside it, also where that takes several lines."""
    indent = " " * (len(level) + 2)
    wide = max((screen_width() or WIDE) - len(indent), NARROW)
    first, *rest = folded(visible(text), wide)
    say(f"{painted(level, COLOURS[level])}  {first}")
    for line in rest:
        say(indent + line)


def _say_limits() -> None:
    """How firmly a worker on this machine could hold jobs in processes to their limits."""
    from fairway.worker.limits.enforcement_level import EnforcementLevel

    words = EnforcementLevel.find(os.environ.get("FAIRWAY_CGROUP")).words()
    say(painted("limits of process jobs here", "dim"))
    wide = max(map(len, words), default=0)
    for limit, means in words.items():
        say(f"  {limit:<{wide}}  {means}")


def _inspect(settings: Settings, *, has_database: bool) -> list[Finding]:
    if settings.database_url is not None:
        return _waited_for(_inspect_both(settings.database_url, settings))
    if has_database:
        return _waited_for(_inspect_embedded(settings))
    say(f"There is no data in {settings.data_dir} yet; `fairway up` makes it.")
    if settings.storage_url is None:
        return []
    return _waited_for(_inspect_storage(None, settings))


def _waited_for(look: Coroutine[Any, Any, list[Finding]]) -> list[Finding]:
    import asyncio

    return asyncio.run(look)


async def _inspect_both(dsn: str, settings: Settings) -> list[Finding]:
    from fairway.cli.processes.process_part import processes_wanted
    from fairway.cli.processes.shards_asked_for import shards_asked_for
    from fairway.services.maintenance.cluster_check import inspect_cluster
    from fairway.services.maintenance.row_security_check import inspect_row_security
    from fairway.services.maintenance.shard_count_check import inspect_shard_count
    from fairway.store.postgres.inspection import inspect_database, inspect_schema, read_tie

    owner_dsn = settings.owner_database_url or dsn
    found = await inspect_database(owner_dsn, processes_wanted(settings))
    if _is_unreachable(found):  # asked again, it would take as long not to answer
        return found + await _inspect_storage(None, settings)
    found += await inspect_schema(owner_dsn)
    found += await inspect_row_security(dsn, settings)
    found += await inspect_cluster(owner_dsn, row_security=settings.row_security)
    found += await inspect_shard_count(owner_dsn, shards_asked_for(settings, os.environ))
    return found + await _inspect_storage(await read_tie(owner_dsn), settings)


async def _inspect_storage(tie: tuple[str, str | None] | None, settings: Settings) -> list[Finding]:
    """Is it this database's? Then write an object, read it, remove it: that is what is needed."""
    from fairway.core.object_storage.storage_marker import REFUSALS, standing_of
    from fairway.store.object_storage.storage import Objects

    remedy = "Checkpoints and large payloads need it: see FAIRWAY_STORAGE_URL in OPERATING."
    try:
        objects = Objects.untied(settings.storage_url, settings.data_dir / "objects")
    except InvalidRequest as error:
        return [Finding(level="error", what=error.message, remedy=remedy)]
    try:
        if tie is not None:
            standing = standing_of(tie[1], await objects.read_marker(), tie[0])
            if standing in REFUSALS:
                what = f"{objects.address}: {REFUSALS[standing]}"
                return [Finding(level="error", what=what, remedy="")]
        await objects.put(PROBE, b"probe")
        is_same = await objects.get(PROBE) == b"probe"
        await objects.delete([PROBE])
    except Unavailable:
        what = f"Object storage does not answer: {objects.failure}"
        return [Finding(level="error", what=what, remedy=remedy)]
    if not is_same:
        what = f"{objects.address} gave back something else than was written."
        return [Finding(level="error", what=what, remedy=remedy)]
    return []


async def _inspect_embedded(settings: Settings) -> list[Finding]:
    """Start it for the look; where a Fairway runs already, look at what that one started."""
    from fairway.cli.processes.postgres import embedded
    from fairway.store.postgres.data_folder import FolderInUse

    postgres = embedded(settings)
    try:
        dsn = await postgres.start(say)
    except FolderInUse as in_use:
        running = postgres.address_in_use()
        if running is not None:
            return await _inspect_both(running, settings)
        remedy = "Its PostgreSQL does not take connections; look at its log, then check again."
        return [Finding(level="error", what=in_use.message, remedy=remedy)]
    except Unavailable as error:
        return [Finding(level="error", what=error.message, remedy="")]
    try:
        return await _inspect_both(dsn, settings)
    finally:
        await postgres.stop()
