"""`fairway check`: what is wrong with the settings and the database, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from rich.console import Console

from fairway.cli.up import postgres_folder
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.object_storage.storage_marker import REFUSALS, standing_of
from fairway.runtime.settings import Settings, load
from fairway.services.maintenance.row_security_check import inspect_row_security
from fairway.store.object_storage.storage import Objects
from fairway.store.postgres.data_folder import FolderInUse
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.inspection import UNREACHABLE, inspect_database, read_tie
from fairway.store.postgres.tuning import Finding
from fairway.worker.limits.enforcement_level import EnforcementLevel

screen = Console(highlight=False, soft_wrap=not sys.stdout.isatty())  # a pipe has no width

PROBE = "check/probe"


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
    findings += asyncio.run(_inspect(settings))
    for finding in findings:
        colour = "red" if finding.level == "error" else "yellow"
        screen.print(f"[{colour}]{finding.level}[/]  {finding.what}  {finding.remedy}")
    _say_levels()
    errors = sum(finding.level == "error" for finding in findings)
    if not findings:
        screen.print(
            "[green]ok[/]  The settings, the database, its roles and object storage are as they"
            " should be."
        )
    return 1 if errors else 0


def _say_levels() -> None:
    """How firmly a worker on this machine could hold jobs in processes to their limits."""
    words = EnforcementLevel.find(os.environ.get("FAIRWAY_CGROUP")).words()
    told = "; ".join(f"{limit}: {means}" for limit, means in words.items())
    screen.print(f"[dim]limits of process jobs here[/]  {told}")


async def _inspect(settings: Settings) -> list[Finding]:
    if settings.database_url is not None:
        return await _inspect_both(settings.database_url, settings)
    folder = postgres_folder(settings.data_dir)
    if folder.exists():
        embedded = EmbeddedPostgres(folder, settings.postgres_bin)
        return await _inspect_embedded(embedded, settings)
    screen.print(f"There is no data in {settings.data_dir} yet; `fairway up` makes it.")
    return [] if settings.storage_url is None else await _inspect_storage(None, settings)


async def _inspect_both(dsn: str, settings: Settings) -> list[Finding]:
    owner_dsn = settings.owner_database_url or dsn
    found = await inspect_database(owner_dsn)
    if not any(finding.what.startswith(UNREACHABLE) for finding in found):
        found += await inspect_row_security(dsn, settings)
    return found + await _inspect_storage(await read_tie(owner_dsn), settings)


async def _inspect_storage(tie: tuple[str, str | None] | None, settings: Settings) -> list[Finding]:
    """Is it this database's? Then write an object, read it, remove it: that is what is needed."""
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


async def _inspect_embedded(postgres: EmbeddedPostgres, settings: Settings) -> list[Finding]:
    """Start it for the look; where a Fairway runs already, look at what that one started."""
    try:
        dsn = await postgres.start(screen.print)
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
