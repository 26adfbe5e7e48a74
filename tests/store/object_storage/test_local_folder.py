"""A folder as object storage: what was put is on disk, whole, whoever else writes beside it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.disk import Disk

from fairway.core.errors import Unavailable
from fairway.store.object_storage.storage import Objects

NAME = "payloads/2026-01-31/7/job-1/payload"


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "objects"


@pytest.fixture
def objects(root: Path) -> Objects:
    return Objects.untied(None, root)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def parts(root: Path) -> list[Path]:
    return list((root / ".parts").iterdir())


async def no_parts(root: Path) -> None:
    """What is given up is removed by a thread, a moment later."""
    async with asyncio.timeout(30):
        while parts(root):  # noqa: ASYNC110  # a thread removes them and tells nobody
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("by_pieces", [False, True])
async def test_an_object_survives_a_power_cut(
    objects: Objects, root: Path, disk: Disk, by_pieces: bool
) -> None:
    await objects.put(NAME, pieces(b"one", b"two") if by_pieces else b"onetwo")
    assert disk.is_safe(root / NAME, root.parents[1])
    assert (root / NAME).read_bytes() == b"onetwo"
    await no_parts(root)


async def test_a_copy_survives_a_power_cut(objects: Objects, root: Path, disk: Disk) -> None:
    await objects.put(NAME, b"body")
    copied = "payloads/2026-02-01/7/job-2/payload"
    await objects.copy(NAME, copied)
    assert disk.is_safe(root / copied, root.parents[1])
    await objects.put(NAME, b"changed")
    assert await objects.get(copied) == b"body"


async def test_a_folder_that_somebody_else_is_making_is_synced_all_the_same(
    objects: Objects, root: Path, disk: Disk
) -> None:
    """The first to make a folder hangs before it is safe; the second must not rely on it."""
    await objects.put("results/2026-01-31/7/job-0/1", b"so that the root is there")
    hanging, go_on = threading.Event(), threading.Event()

    def hang_once(path: str) -> None:
        if path == str(root / "payloads") and not hanging.is_set():
            hanging.set()
            assert go_on.wait(20)

    disk.before_sync = hang_once
    first = asyncio.create_task(objects.put(NAME, b"first"))
    await asyncio.to_thread(hanging.wait, 20)
    second = NAME.replace("job-1", "job-2")
    try:
        await asyncio.wait_for(objects.put(second, b"second"), 20)
        assert disk.is_safe(root / second, root)
        assert not first.done()
    finally:
        go_on.set()
        await first


async def test_what_breaks_on_the_way_leaves_nothing(objects: Objects, root: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"one"
        raise ConnectionResetError("the client went")

    with pytest.raises(Unavailable):
        await objects.put(NAME, broken())
    assert await objects.listing("") == []
    await no_parts(root)


async def test_a_disk_that_cannot_sync_accepts_nothing(
    objects: Objects, root: Path, disk: Disk
) -> None:
    await objects.put(NAME, b"good")

    def fail(path: str) -> None:
        if ".parts/" in path:
            raise OSError(28, "No space left on device")

    disk.before_sync = fail
    with pytest.raises(Unavailable, match="does not answer"):
        await objects.put(NAME, b"bad")
    assert "No space left" in str(objects.failure)
    assert await objects.get(NAME) == b"good"
    await no_parts(root)


async def test_parts_that_a_crash_left_are_swept(objects: Objects, root: Path) -> None:
    await objects.put(NAME, b"x")
    old, fresh = root / ".parts" / "old", root / ".parts" / "fresh"
    now = datetime.now(UTC)
    for path, age in ((old, timedelta(hours=3)), (fresh, timedelta(0))):
        path.write_bytes(b"half")
        os.utime(path, ((now - age).timestamp(),) * 2)
    assert await objects.sweep_parts(now - timedelta(hours=2)) == 1
    assert parts(root) == [fresh]
    assert await objects.names("") == [NAME]


async def test_a_folder_without_its_disk_is_away_not_empty(objects: Objects, root: Path) -> None:
    await objects.put(NAME, b"x")
    assert await objects.size(NAME.replace("job-1", "job-2")) is None
    await objects.check()
    os.rename(root, root.with_name("elsewhere"))
    os.mkdir(root)  # as a mount point looks when nothing is mounted
    assert await objects.size(NAME) is None
    with pytest.raises(Unavailable, match="does not answer"):
        await objects.check()
    assert "is its disk mounted" in str(objects.failure)


async def test_removing_and_writing_side_by_side(objects: Objects) -> None:
    """The folder of a job goes when it is empty, while another object is put there."""

    async def flicker(leaf: int) -> None:
        for _ in range(30):
            await objects.put(f"checkpoints/2026-01-31/7/job/{leaf}", b"x")
            await objects.delete([f"checkpoints/2026-01-31/7/job/{leaf}"])

    await asyncio.gather(*map(flicker, range(4)))
    assert await objects.names("checkpoints") == []


async def test_empty_folders_go_with_their_day(objects: Objects, root: Path) -> None:
    await objects.put(NAME, b"x")
    await objects.delete([NAME])
    await objects.drop_empty("payloads/2026-01-31")
    assert await objects.folders("payloads") == []
    await objects.put(NAME, b"y")
    assert await objects.get(NAME) == b"y"
