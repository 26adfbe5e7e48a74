"""`fairway check`: what is wrong with the settings and the database, and what to do about it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from rich.console import Console

from fairway.cli.up import postgres_folder
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.settings import load
from fairway.store.embedded import EmbeddedPostgres
from fairway.store.inspection import inspect_database
from fairway.store.objects import Objects
from fairway.store.tuning import Finding
from fairway.worker.levels import Levels

screen = Console(highlight=False)

PROBE = "check/probe"


def run(*, database_url: str | None, data_dir: Path | None) -> int:
    settings = load(os.environ, database_url=database_url, data_dir=data_dir)
    findings = [Finding(level="error", what=sentence, remedy="") for sentence in settings.check()]
    findings += asyncio.run(_inspect(settings.database_url, settings.data_dir))
    if settings.storage_url is not None:
        findings += asyncio.run(_inspect_storage(settings.storage_url, settings.data_dir))
    for finding in findings:
        colour = "red" if finding.level == "error" else "yellow"
        screen.print(f"[{colour}]{finding.level}[/]  {finding.what}  {finding.remedy}")
    _say_levels()
    errors = sum(finding.level == "error" for finding in findings)
    if not findings:
        screen.print("[green]ok[/]  The settings and the database are as they should be.")
    return 1 if errors else 0


def _say_levels() -> None:
    """How firmly a worker on this machine could hold jobs in processes to their limits."""
    words = Levels.find(os.environ.get("FAIRWAY_CGROUP")).words()
    told = "; ".join(f"{limit}: {means}" for limit, means in words.items())
    screen.print(f"[dim]limits of process jobs here[/]  {told}", soft_wrap=True)


async def _inspect(database_url: str | None, data_dir: Path) -> list[Finding]:
    if database_url is not None:
        return await inspect_database(database_url)
    folder = postgres_folder(data_dir)
    if not folder.exists():
        screen.print(f"There is no data in {data_dir} yet; `fairway up` makes it.")
        return []
    return await _inspect_embedded(EmbeddedPostgres(folder))


async def _inspect_storage(url: str, data_dir: Path) -> list[Finding]:
    """Write an object, read it, remove it: checkpoints need all three."""
    remedy = "Checkpoints and large payloads need it: see FAIRWAY_STORAGE_URL in OPERATING."
    try:
        objects = Objects.open(url, data_dir)
        await objects.put(PROBE, b"probe")
        is_same = await objects.get(PROBE) == b"probe"
        await objects.delete([PROBE])
    except (InvalidRequest, Unavailable) as error:
        return [Finding(level="error", what=error.message, remedy=remedy)]
    if not is_same:
        what = f"{objects.address} gave back something else than was written."
        return [Finding(level="error", what=what, remedy=remedy)]
    return []


async def _inspect_embedded(postgres: EmbeddedPostgres) -> list[Finding]:
    try:
        dsn = await postgres.start(screen.print)
    except Unavailable as error:
        return [Finding(level="error", what=error.message, remedy="")]
    try:
        return await inspect_database(dsn)
    finally:
        await postgres.stop()
