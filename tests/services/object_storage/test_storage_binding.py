"""Who marks a storage, when two want to, and what is said where it is not the right one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fairway.core.errors import Unavailable
from fairway.core.object_storage.storage_marker import make_marker
from fairway.runtime.telemetry import Metrics
from fairway.services.object_storage.storage_binding import StorageBinding, StorageFailures
from fairway.store.connections.database import Database
from fairway.store.object_storage.storage import MARKER, Storage
from fairway.store.registry.tenants import found_cluster, storage_marker


@pytest.fixture
async def tie_to(database: Database) -> Callable[[Path], StorageBinding]:
    """A server's tie to this folder."""
    async with database.background() as connection:
        cluster = await found_cluster(connection, 1, "secret")

    def make(folder: Path) -> StorageBinding:
        failures = StorageFailures(Metrics())
        storage = Storage.open(None, folder, failures.note)
        return StorageBinding(database, storage, cluster, failures)

    return make


async def known_to(database: Database) -> str | None:
    async with database.background() as connection:
        return await storage_marker(connection)


async def test_of_two_storages_at_once_one_is_the_databases(
    database: Database, tie_to: Callable[[Path], StorageBinding], tmp_path: Path
) -> None:
    ties = [tie_to(tmp_path / name) for name in "abcd"]
    held = await asyncio.gather(*(tie.hold() for tie in ties), return_exceptions=True)
    assert [one for one in held if isinstance(one, str)] == [await known_to(database)]
    assert sum(isinstance(one, Unavailable) for one in held) == 3
    assert len(os.listdir(tmp_path)) == 1


async def test_servers_that_share_a_storage_agree(
    tie_to: Callable[[Path], StorageBinding], tmp_path: Path
) -> None:
    held = await asyncio.gather(*(tie_to(tmp_path).hold() for _ in range(4)))
    assert len(set(held)) == 1
    assert (tmp_path / MARKER).read_text() == held[0]


async def test_a_crash_between_storage_and_database_is_made_good(
    database: Database, tie_to: Callable[[Path], StorageBinding], tmp_path: Path
) -> None:
    begun = make_marker("secret", "nonce")
    (tmp_path / MARKER).write_text(begun)
    assert await tie_to(tmp_path).hold() == begun == await known_to(database)


async def test_a_storage_that_cannot_be_written_to_keeps_no_other_out(
    database: Database, tie_to: Callable[[Path], StorageBinding], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Unavailable) as refused:
        await tie_to(tmp_path / "file").hold()
    assert refused.value.code == "STORAGE_UNAVAILABLE"
    assert await known_to(database) is None
    assert await tie_to(tmp_path / "good").hold() == await known_to(database)


async def test_the_log_says_it_once_at_start(
    tie_to: Callable[[Path], StorageBinding], tmp_path: Path
) -> None:
    await tie_to(tmp_path / "ours").hold()
    astray = tie_to(tmp_path / "another")
    with capture_logs() as lines:
        await astray.begin()
        await astray.begin()
    (line,) = lines
    assert (line["log_level"], line["storage"]) == ("error", str(tmp_path / "another"))
    assert "FAIRWAY_STORAGE_URL" in line["why"]
