"""Questions about jobs: one, several, a page; never beyond the tenant that asks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.store.rows import SHARD, add_job, finish, look, new_job, own, start

from fairway.core.ids import LOWEST_JOB_ID, ShardId, TenantId
from fairway.core.job import JobFilter
from fairway.core.lifecycle import State
from fairway.store.connections.database import Connection
from fairway.store.history import (
    PAGE_BYTES,
    count_live,
    is_cut,
    list_jobs,
    live_jobs,
    read_job,
    read_states,
)

HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
EVERYTHING = JobFilter(HIGHEST, LOWEST_JOB_ID, None, None, None, 100)


async def listed(connection: Connection, **narrow: Any) -> list[str]:
    jobs = await list_jobs(connection, SHARD, TenantId(1), EVERYTHING._replace(**narrow))
    return [job.id for job in jobs]


async def test_a_job_is_its_tenants_alone(connection: Connection) -> None:
    job = await add_job(connection)
    assert (await look(connection, job)).payload == b"{}"
    assert await read_job(connection, SHARD, TenantId(job.tenant + 1), job.id) is None
    assert await read_job(connection, ShardId(SHARD + 1), job.tenant, job.id) is None


async def test_where_several_jobs_stand(connection: Connection) -> None:
    term = await own(connection)
    waiting, running = await add_job(connection), await add_job(connection)
    lease = await start(connection, running, term)
    asked = [
        (waiting.tenant, waiting.id),
        (running.tenant, running.id),
        (TenantId(2), waiting.id),
        (TenantId(1), new_job().id),
    ]
    assert await read_states(connection, SHARD, asked) == {
        waiting.id: (State.QUEUED, 0),
        running.id: (State.RUNNING, lease.epoch),
    }


async def test_pages_are_newest_first_and_go_on_from_a_cursor(connection: Connection) -> None:
    ids = [(await add_job(connection)).id for _ in range(5)]
    await add_job(connection, tenant=2)
    newest_first = ids[::-1]
    assert await listed(connection) == newest_first
    first = await listed(connection, limit=2)
    second = await listed(connection, limit=2, before=first[-1])
    third = await listed(connection, limit=2, before=second[-1])
    assert first + second + third == newest_first
    assert await listed(connection, since=ids[2]) == newest_first[:3]


async def test_filters_narrow_together(connection: Connection) -> None:
    done = await add_job(connection, type=2, pool=3)
    await finish(connection, done, datetime.now(UTC))
    waiting = await add_job(connection, type=2)
    other = await add_job(connection, type=3)
    assert await listed(connection, type=2) == [waiting.id, done.id]
    assert await listed(connection, pool=3) == [done.id]
    assert await listed(connection, states=[State.QUEUED]) == [other.id, waiting.id]
    assert await listed(connection, states=[State.QUEUED, State.SUCCEEDED], type=2) == [
        waiting.id,
        done.id,
    ]
    assert await listed(connection, states=[State.DEAD]) == []


async def test_a_page_ends_early_when_it_is_heavy(connection: Connection) -> None:
    ids = [(await add_job(connection)).id for _ in range(6)][::-1]
    result = b'"' + b"r" * (PAGE_BYTES // 4) + b'"'
    await connection.execute("UPDATE jobs SET state = 3, finished_at = now(), result = $1", result)
    page = await list_jobs(connection, SHARD, TenantId(1), EVERYTHING)
    assert [job.id for job in page] == ids[:4]
    assert is_cut(page)
    rest = await list_jobs(connection, SHARD, TenantId(1), EVERYTHING._replace(before=ids[3]))
    assert [job.id for job in rest] == ids[4:]
    assert not is_cut(rest)


async def test_a_page_brings_no_long_payloads(connection: Connection) -> None:
    text = b'{"text":"' + b"x" * 5000 + b'"}'
    await add_job(connection, payload=text)
    (job,) = await list_jobs(connection, SHARD, TenantId(1), EVERYTHING)
    assert job.payload == b"{}"


async def test_live_jobs_are_counted_up_to_a_limit(connection: Connection) -> None:
    for _ in range(5):
        await add_job(connection)
    live = EVERYTHING._replace(states=[State.QUEUED.value])
    assert await count_live(connection, SHARD, TenantId(1), live) == (5, True)
    assert await count_live(connection, SHARD, TenantId(1), live._replace(limit=3)) == (3, False)
    assert await count_live(connection, SHARD, TenantId(1), live, looked_max=5) == (5, True)
    assert await count_live(connection, SHARD, TenantId(1), live, looked_max=4) == (4, False)
    assert await count_live(connection, SHARD, TenantId(2), live) == (0, True)


async def test_a_walk_for_live_jobs_looks_at_so_many_rows_a_part(connection: Connection) -> None:
    """However many have ended: each part says how far it has come, found or not."""
    ids = sorted([(await add_job(connection)).id for _ in range(10)], reverse=True)
    ended = [*ids[1:5], *ids[6:8]]  # newest first: 1 live, 4 ended, 1 live, 2 ended, 2 live
    await connection.execute(
        "UPDATE jobs SET state = 3, finished_at = now() WHERE id = ANY($1::uuid[])", ended
    )
    wanted = EVERYTHING._replace(states=[State.QUEUED.value], limit=2)
    found, cursors = [], list[str | None]()
    cursor: str | None = HIGHEST
    while cursor is not None:
        part = await live_jobs(
            connection, SHARD, TenantId(1), wanted._replace(before=cursor), looked_max=3
        )
        found += [job.id for job in part.jobs]
        cursor = part.cursor
        cursors.append(cursor)
    assert found == [ids[0], ids[5], ids[8], ids[9]]
    assert cursors == [ids[2], ids[5], ids[8], None]
