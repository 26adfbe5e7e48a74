"""Uploads are looked at and counted few at a time, however many jobs name them at once."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from tests.services.object_storage.test_upload_checks import INLINE, SECONDS, Eye, body_of
from tests.services.platform_room import new, until

from fairway.core.errors import Forbidden, LimitReached, NotFound
from fairway.core.ids import TenantId
from fairway.core.object_storage.object_names import Seen, day_of
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory
from fairway.runtime.settings import Settings, replaced
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.object_storage import upload_checks
from fairway.services.object_storage.large_payloads import TENANT_TRANSFERS_MAX, LargePayloads
from fairway.services.object_storage.upload_accounts import COUNTS_MAX, UploadLimits
from fairway.services.object_storage.upload_checks import LOOK_BYTES_MAX, TENANT_GLANCES_MAX
from fairway.services.object_storage.uploads import Address, Uploads
from fairway.services.store_clock import StoreClock
from fairway.services.submit.submission_group import NewJob
from fairway.store.object_storage.local_folder import ObjectFolder
from fairway.store.object_storage.storage import Objects, Storage
from fairway.store.registry.tenants import Cluster

R = TypeVar("R")
BATCH = 300


class WatchedFolder(ObjectFolder):
    """Knows how many are at work in it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.looking = self.looking_most = self.tasks_most = self.gets = 0
        self.counting = self.counting_most = 0
        self.lock = threading.Lock()
        self.count_may_end = threading.Event()
        self.count_may_end.set()
        self.counted_in: set[threading.Thread] = set()

    async def seen(self, name: str) -> Seen:
        self.looking += 1
        self.looking_most = max(self.looking_most, self.looking)
        self.tasks_most = max(self.tasks_most, len(asyncio.all_tasks()))
        try:
            return await super().seen(name)
        finally:
            self.looking -= 1

    async def get(self, name: str) -> bytes:
        try:
            return await super().get(name)
        finally:
            self.gets += 1

    async def tally(self, prefix: str, tally: Callable[[Iterable[tuple[str, int]]], R]) -> R:
        def watched(found: Iterable[tuple[str, int]]) -> R:
            self.counted_in.add(threading.current_thread())
            with self.lock:
                self.counting += 1
                self.counting_most = max(self.counting_most, self.counting)
            self.count_may_end.wait(SECONDS)
            try:
                return tally(found)
            finally:
                with self.lock:
                    self.counting -= 1

        return await super().tally(prefix, watched)


class Room:
    def __init__(self, root: Path, settings: Settings | None = None) -> None:
        self.clock = StoreClock(SystemClock())
        self.folder = WatchedFolder(root)
        self.objects = Objects(Storage(self.folder, str(root), lambda why, is_news: None), None)
        cluster = Cluster(1, "secret", 1)
        limits = UploadLimits.of(settings or Settings())
        self.uploads = Uploads(self.objects, cluster, self.clock, limits)
        ids = JobIdFactory(self.clock)
        self.large_payloads = LargePayloads(
            self.objects, TenantShards(1), self.clock, ids, self.uploads, DiskReserve(None, 0)
        )

    def id(self, number: int) -> str:
        return f"{day_of(self.clock.now())}.{number:032x}"

    async def uploaded(self, tenant: int, number: int, body: bytes = b"{}") -> str:
        await self.objects.put(body_of(tenant, self.id(number)), body)
        return self.id(number)

    async def offload_large_payloads(self, eye: Eye, *uploads: str) -> list[object]:
        jobs = [new(upload=upload) for upload in uploads]
        return list(
            await self.large_payloads.offload_large_payloads(
                TenantId(eye.tenant), jobs, INLINE, eye.look
            )
        )


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


async def later(monkeypatch: pytest.MonkeyPatch, passed: timedelta) -> None:
    """So much time is over for all who wait on this event loop."""
    loop = asyncio.get_running_loop()
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + passed.total_seconds())
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_batch_of_uploads_takes_few_tasks_and_no_thread_of_others(room: Room) -> None:
    """It was a task for each job, and a line of all of them before everybody's payloads."""
    threads, tasks = set(threading.enumerate()), len(asyncio.all_tasks())
    batches = [[room.id(batch * BATCH + number) for number in range(BATCH)] for batch in range(3)]
    asked = (room.offload_large_payloads(Eye(7), *batch) for batch in batches)
    answers = [answer for batch in await asyncio.gather(*asked) for answer in batch]
    assert {type(answer) for answer in answers} == {NotFound}
    assert len(answers) == 3 * BATCH
    assert room.folder.tasks_most <= tasks + 3 + 3 * TENANT_TRANSFERS_MAX
    assert room.folder.looking_most <= TENANT_GLANCES_MAX
    began = [one.name for one in set(threading.enumerate()) - threads]
    assert [name for name in began if name.startswith("objects")] == []


async def test_answers_come_in_the_order_of_the_jobs(room: Room) -> None:
    there = await room.uploaded(7, 1)
    jobs = [new(upload=there), new(payload=b"[1]"), new(upload=room.id(2)), new(payload=b"[2]")]
    found = await room.large_payloads.offload_large_payloads(TenantId(7), jobs, INLINE, Eye(7).look)
    assert [type(one) for one in found] == [NewJob, NewJob, NotFound, NewJob]
    assert (found[1], found[3]) == (jobs[1], jobs[3])


async def test_who_names_what_is_being_looked_at_waits_as_long_as_that_takes(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    eye = Eye(7)
    eye.is_open.clear()
    upload = await room.uploaded(7, 1)
    batch = asyncio.create_task(room.offload_large_payloads(eye, upload, upload))
    await until(lambda: room.folder.gets == 3 and len(eye.looked_at) == 1, SECONDS)
    await later(monkeypatch, timedelta(hours=1))
    eye.is_open.set()
    assert [type(answer) for answer in await batch] == [NewJob, NewJob]
    assert len(eye.looked_at) == 1


async def test_small_looks_do_not_wait_for_long_ones(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_checks, "LOOK_BYTES_MAX", 8)
    eyes = [Eye(tenant) for tenant in range(1, 5)]
    long = b'{"x":"long"}'
    looks = []
    for eye in eyes:
        eye.is_open.clear()
        uploads = [await room.uploaded(eye.tenant, number, long) for number in range(3)]
        looks.append(asyncio.create_task(room.offload_large_payloads(eye, *uploads)))
    await until(lambda: [len(eye.looked_at) for eye in eyes] == [2] * 4, SECONDS)
    async with asyncio.timeout(SECONDS):
        small = await room.offload_large_payloads(Eye(7), await room.uploaded(7, 1))
    assert isinstance(small[0], NewJob)
    await later(monkeypatch, timedelta(seconds=60))
    for eye in eyes:
        eye.is_open.set()
    answers = [answer for look in looks for answer in await look]
    assert [type(answer) for answer in answers] == [NewJob] * 12, "the third waited for the first"


async def test_a_look_holds_a_text_once(room: Room) -> None:
    """The ceiling counts it once more for what is made of it: pieces beside it have no place."""
    upload = await room.uploaded(7, 1, b"x" * LOOK_BYTES_MAX)
    tracemalloc.start()
    try:
        (answer,) = await room.offload_large_payloads(Eye(7), upload)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(answer, NewJob)
    assert LOOK_BYTES_MAX <= peak_bytes < 1.5 * LOOK_BYTES_MAX


async def test_few_tenants_are_counted_at_a_time_and_never_on_the_loop(room: Room) -> None:
    room.folder.count_may_end.clear()
    asked = [
        asyncio.create_task(room.uploads.new(TenantId(tenant), "key", "http://here"))
        for tenant in [1, 1, 2, 2, 3, 4, 5]
    ]
    await until(lambda: room.folder.counting == COUNTS_MAX, SECONDS)
    await asyncio.sleep(0.05)  # a third would have begun by now, or begins later
    room.folder.count_may_end.set()
    await asyncio.gather(*asked)
    assert room.folder.counting_most == COUNTS_MAX
    assert threading.main_thread() not in room.folder.counted_in


async def test_how_many_uploads_are_kept_is_bounded(tmp_path: Path) -> None:
    room = Room(tmp_path, replaced(Settings(), uploads_kept_max=2))
    eye = Eye(7)
    await room.uploads.new(TenantId(7), "key", "http://here")
    await room.offload_large_payloads(eye, await room.uploaded(7, 1), await room.uploaded(7, 2))
    room = Room(tmp_path, replaced(Settings(), uploads_kept_max=2))  # what it knows is in storage
    with pytest.raises(LimitReached, match=r"2 of your uploads are kept.* there may be 2") as told:
        await room.uploads.new(TenantId(7), "key", "http://here")
    assert told.value.code == "UPLOAD_QUOTA_EXCEEDED"
    await room.uploads.new(TenantId(8), "key", "http://here")


def test_who_has_an_address_that_is_not_ours_hears_what_to_do(room: Room) -> None:
    """Such as one that another version gave out, signed over other words."""
    address = Address(TenantId(7), "key", room.id(1), 1 << 40, "0" * 64)
    with pytest.raises(Forbidden, match="ask for another with POST /v1/uploads"):
        room.uploads.check(address)
