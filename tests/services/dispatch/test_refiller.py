"""Windows are bounded in bytes: whatever jobs weigh, and however many streams are read at once."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast

import asyncpg
import pytest
from tests.services.dispatch.test_dispatcher import Machine
from tests.services.platform_room import QUICK, add_tenant, freeze, owner_on

from fairway.core.backlog.reading import READ_BYTES_MAX, Found
from fairway.core.backlog.runnable import REVIEWED_AT_ONCE
from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId, make_job_ids
from fairway.services.dispatch.refiller import IDLE_SECONDS, STREAMS_PER_READ, Refiller
from fairway.store import backlog as store
from fairway.store.connections.database import Connection, Database

NO_DATABASE = cast(Database, None)  # nothing is read
HEAVY_BYTES = 60_000
LANES, EACH = 24, 30  # 43 MB in all, and in one answer if count alone decided
BOUND_BYTES = 12 << 20


async def fill(connection: Connection, tenant: int, kind: int) -> None:
    payload = b'"' + os.urandom(HEAVY_BYTES // 2).hex().encode() + b'"'
    columns = ("shard", "id", "tenant", "type", "pool", "priority", "lane", "state", "payload")
    for lane in range(1, LANES + 1):
        ids = make_job_ids(ShardId(0), 1_700_000_000_000, 0, lane, EACH)
        rows = [(0, job, tenant, kind, 1, 5, lane, 1, payload) for job in ids]
        await connection.copy_records_to_table("jobs", columns=columns, records=rows)


Read = Callable[[Connection, Sequence[store.StreamRead], int], Awaitable[list[Found]]]


class Answers:
    """Notes how many bytes of payload each answer of the store brought."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        for name in ("read_streams", "read_streams_by_bytes"):
            monkeypatch.setattr(store, name, self._weighed(getattr(store, name)))

    def _weighed(self, read: Read) -> Read:
        async def weighed(
            connection: Connection, reads: Sequence[store.StreamRead], most_bytes: int
        ) -> list[Found]:
            found = await read(connection, reads, most_bytes)
            self.sizes.append(sum(len(job.payload) for part in found for job in part.jobs))
            return found

        return weighed


async def test_heavy_jobs_of_many_streams_stay_within_the_bounds_and_all_come(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(monkeypatch)
    async with owner_on(database_url, replace(QUICK, window_bytes=BOUND_BYTES)) as platform:
        tenant = await add_tenant(platform)
        await platform.directory.know_types(["work"])
        kind = platform.directory.type_ids["work"]
        await freeze(platform)
        backlog = platform.dispatcher.backlog
        async with platform.database.background() as connection:
            await fill(connection, tenant.id, kind)
        for lane in range(1, LANES + 1):
            first = make_job_ids(ShardId(0), 1_700_000_000_000, 0, lane, 1)[0]
            backlog.hinted(StreamKey(tenant.id, PoolId(1), kind, 5, lane), first)
        refiller = Refiller(platform.database, platform.dispatcher)
        most, taken = 0, 0
        while taken < LANES * EACH:
            while not await refiller.run_once(0):  # until there is no room, or nothing to read
                most = max(most, backlog.windows.bytes_held)
            while backlog.take(PoolId(1), tenant.id, {kind}, (), 0) is not None:
                taken += 1
    assert most > BOUND_BYTES // 2, "the room there is gets used"
    over_bytes = STREAMS_PER_READ * HEAVY_BYTES  # of each stream one job comes, whatever it weighs
    assert most <= BOUND_BYTES + over_bytes
    assert max(answers.sizes) <= READ_BYTES_MAX + over_bytes


async def test_streams_whose_type_went_learn_of_it_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, count = Machine(), 3 * REVIEWED_AT_ONCE
    worker, wakes = machine.worker(types=(1, 2)), list[bool]()
    machine.arrive(*[machine.job(type=2, lane=lane) for lane in range(count)])
    monkeypatch.setattr(machine, "want_reads", lambda: wakes.append(True))
    worker.types = frozenset({TypeId(1)})
    machine.dispatcher.equip(worker, dict(worker.slots))
    backlog = machine.dispatcher.backlog
    assert (backlog.runnable.is_reviewing, wakes) == (True, [True])
    refiller = Refiller(NO_DATABASE, machine.dispatcher)
    assert await refiller.run_once(0) == 0, "there is more to do"
    assert await refiller.run_once(0) == IDLE_SECONDS
    assert all(stream.blocked for stream in backlog.counts.streams_of(TenantId(1), [PoolId(1)]))


async def test_a_stream_that_cannot_be_read_holds_up_no_other(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a page of the table that is damaged; every read has streams of many tenants in it."""
    read, tries = store.read_streams, 0

    async def damaged(
        connection: Connection, reads: Sequence[store.StreamRead], most_bytes: int
    ) -> list[Found]:
        nonlocal tries
        if any(one.key.lane == 3 for one in reads):
            tries += 1
            raise asyncpg.DataCorruptedError("invalid page in block 7")
        return await read(connection, reads, most_bytes)

    monkeypatch.setattr(store, "read_streams", damaged)
    async with owner_on(database_url, QUICK) as platform:
        tenant = await add_tenant(platform)
        await platform.directory.know_types(["work"])
        kind = platform.directory.type_ids["work"]
        await freeze(platform)
        async with platform.database.background() as connection:
            await fill(connection, tenant.id, kind)
        backlog = platform.dispatcher.backlog
        for lane in range(1, LANES + 1):
            first = make_job_ids(ShardId(0), 1_700_000_000_000, 0, lane, 1)[0]
            backlog.hinted(StreamKey(tenant.id, PoolId(1), kind, 5, lane), first)
        refiller = Refiller(platform.database, platform.dispatcher)
        for _ in range(5):
            await refiller.run_once(0)
        assert 1 <= tries <= 10, "and it is not tried again in every round"
        lanes = {
            one.lane
            for one in iter(lambda: backlog.take(PoolId(1), tenant.id, {kind}, (), 0), None)
        }
        assert lanes == set(range(1, LANES + 1)) - {3}
