"""Usage is what was recorded: once for each run, in the log or in the hours and never in both."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.store.rows import SHARD, add_job, lease_for, look, own, start

from fairway.core.billing.periods import month_of
from fairway.core.billing.usage import Used, total_of
from fairway.core.ids import LOWEST_JOB_ID, Epoch, PoolId, TenantId, Term, TypeId
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.follow_ups import Children
from fairway.store import history
from fairway.store.billing import statements, usage
from fairway.store.billing.usage import UsageQuestion
from fairway.store.connections.database import Connection, Database
from fairway.store.outcomes import (
    Parent,
    Settlement,
    Success,
    record_parents,
    record_successes,
    settle,
)
from fairway.store.registry import type_names

TENANT = TenantId(1)
LONG_AGO, FAR = datetime(2001, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


async def used(connection: Connection, tenant: int = TENANT, **changes: Any) -> Used:
    """All that a tenant ever used."""
    return total_of(await lines(connection, tenant, **changes))


async def lines(connection: Connection, tenant: int = TENANT, **changes: Any) -> list[Used]:
    asked = UsageQuestion(
        SHARD, TenantId(tenant), LONG_AGO, FAR, [LONG_AGO], by_pool=True, by_type=True, limit=100
    )
    return await usage.read_usage(connection, asked._replace(**changes))


async def open_books(connection: Connection) -> int:
    term = await own(connection)
    await usage.begin_billing(connection, [SHARD])
    return term


def success(job: QueuedJob, term: int, ran_us: int) -> Success:
    return Success(SHARD, job.tenant, job.id, lease_for(job, term).epoch, ran_us, None)


def failure(
    job: QueuedJob, epoch: int, ran_us: int, *, billed: bool = True, **more: Any
) -> Settlement:
    plain = Settlement(
        SHARD, job.tenant, job.id, Epoch(epoch), State.QUEUED, 1, 1, None, ran_us, None,
        billed_us=ran_us if billed else 0, is_attempt=billed,
    )  # fmt: skip
    return plain._replace(**more)


async def test_a_batch_that_is_sent_twice_is_billed_once(connection: Connection) -> None:
    term = await open_books(connection)
    done = [success(await add_job(connection), term, 10 + n) for n in range(5)]
    for _ in range(2):
        assert await record_successes(connection, {SHARD: Term(term)}, done) == set()
    assert (await used(connection))[3:] == (5, 5, 60, 0)


async def test_rows_found_in_place_and_rows_that_moved_are_billed_alike(
    connection: Connection,
) -> None:
    term, jobs = await open_books(connection), [await add_job(connection) for _ in range(3)]
    done = []
    for job in jobs:
        place = await connection.fetchval("SELECT ctid::text FROM jobs WHERE id = $1", job.id)
        done.append(success(job, term, 7)._replace(place=place))
    await connection.execute("UPDATE jobs SET priority = 6 WHERE id = $1", jobs[1].id)
    for _ in range(2):
        assert await record_successes(connection, {SHARD: Term(term)}, done) == set()
    assert (await used(connection))[3:] == (3, 3, 21, 0)


async def test_a_refused_end_is_not_billed(connection: Connection) -> None:
    """The lease is another's, or the term is: nothing is written, and nothing is booked."""
    term = await open_books(connection)
    job = await add_job(connection)
    lease = await start(connection, job, term)
    late = Success(SHARD, job.tenant, job.id, Epoch(lease.epoch - 1), 99, None)
    assert await record_successes(connection, {SHARD: Term(term)}, [late]) == {job.id}
    right = late._replace(epoch=lease.epoch)
    assert await record_successes(connection, {SHARD: Term(term - 1)}, [right]) == {job.id}
    assert await connection.fetchval("SELECT count(*) FROM usage_log") == 0


async def test_every_end_of_a_job_is_booked_in_its_own_hour(connection: Connection) -> None:
    """A failure, a run that was cut short, a job that was too late, a success."""
    term = await open_books(connection)
    await connection.execute("UPDATE billing_shards SET closed_until = $1", LONG_AGO)
    job, hour = await add_job(connection), datetime(2026, 1, 31, 12, tzinfo=UTC)
    epoch = lease_for(job, term).epoch
    ends = [
        failure(job, epoch, 100, ended_at=hour),
        failure(job, epoch + 1, 1000, billed=False, ended_at=hour + timedelta(minutes=59)),
        failure(job, epoch + 2, 10, ended_at=hour + timedelta(hours=1)),
    ]
    for end in ends:
        for _ in range(2):
            assert await settle(connection, {SHARD: Term(term)}, [end]) == set()
    cuts = [LONG_AGO, hour, hour + timedelta(hours=1), hour + timedelta(hours=2)]
    for _ in range(2):  # from the log, and from the hours
        found = {one.period: one[3:] for one in await lines(connection, cuts=cuts)}
        assert found == {2: (0, 1, 100, 1000), 3: (0, 1, 10, 0)}
        await usage.roll_up(connection, [SHARD], 100)
    skipped = failure(job, epoch + 3, 0, state=State.EXPIRED, is_attempt=False)
    assert await settle(connection, {SHARD: Term(term)}, [skipped]) == set()
    assert (await used(connection))[3:] == (1, 2, 110, 1000)


async def test_parents_are_billed_once(connection: Connection) -> None:
    term, job = await open_books(connection), await add_job(connection)
    parent = Parent(success(job, term, 5), Children(1, [], frozenset(), None))
    for _ in range(2):
        assert await record_parents(connection, {SHARD: Term(term)}, [parent]) == set()
    assert (await used(connection))[3:] == (1, 1, 5, 0)


async def test_a_roll_up_moves_everything_and_changes_nothing(connection: Connection) -> None:
    """Jobs of several tenants, pools and types; rolled up between batches, in parts of any size."""
    term, dice = await open_books(connection), random.Random(5)
    expected: dict[tuple[int, int, int], list[int]] = {}
    for _ in range(12):
        batch = []
        for _ in range(dice.randint(1, 4)):
            key = dice.randint(1, 2), dice.randint(1, 2), dice.randint(1, 2)
            tenant, pool, kind = key
            job = await add_job(
                connection, tenant=TenantId(tenant), pool=PoolId(pool), type=TypeId(kind)
            )
            batch.append(success(job, term, dice.randint(0, 10**9)))
            sums = expected.setdefault(key, [0, 0, 0])
            sums[:] = sums[0] + 1, sums[1] + 1, sums[2] + batch[-1].ran_us
        assert await record_successes(connection, {SHARD: Term(term)}, batch) == set()
        await usage.roll_up(connection, [SHARD], dice.randint(0, 3))
        found = {
            (tenant, one.pool, one.type): [*one[3:6]]
            for tenant in (1, 2)
            for one in await lines(connection, tenant)
        }
        assert found == expected
    while await usage.roll_up(connection, [SHARD], 5):
        pass
    assert await connection.fetchval("SELECT count(*) FROM usage_log") == 0
    assert await connection.fetchval("SELECT sum(jobs_ended) FROM usage_hours") == sum(
        sums[0] for sums in expected.values()
    )


async def test_a_roll_up_that_is_cut_short_was_never_there(
    connection: Connection, other_connection: Connection
) -> None:
    """By a crash between the statement and its end; and others go past it meanwhile."""
    term = await open_books(connection)
    done = [success(await add_job(connection), term, 10) for _ in range(3)]
    for one in done:
        assert await record_successes(connection, {SHARD: Term(term)}, [one]) == set()
    cut_short = other_connection.transaction()
    await cut_short.start()
    assert await usage.roll_up(other_connection, [SHARD], 2) == 2
    assert await usage.roll_up(connection, [SHARD], 100) == 0, "somebody else holds the books"
    assert (await used(connection))[3:] == (3, 3, 30, 0)
    await cut_short.rollback()
    assert (await used(connection))[3:] == (3, 3, 30, 0)
    assert await usage.roll_up(connection, [SHARD], 100) == 3
    assert await usage.roll_up(other_connection, [SHARD], 100) == 0
    assert (await used(connection))[3:] == (3, 3, 30, 0)


async def test_what_comes_too_late_for_a_month_is_booked_after_it(connection: Connection) -> None:
    term, now = await open_books(connection), datetime.now(UTC)
    month = month_of(now)
    job = await add_job(connection)
    epoch = lease_for(job, term).epoch
    late = failure(job, epoch, 100, ended_at=month.begins - timedelta(days=3))
    assert await settle(connection, {SHARD: Term(term)}, [late]) == set()
    cuts = [LONG_AGO, month.begins, month.begins + timedelta(hours=1)]
    for _ in range(2):
        assert {one.period for one in await lines(connection, cuts=cuts)} == {2}
        await usage.roll_up(connection, [SHARD], 100)


async def test_a_month_is_not_closed_before_its_log_is_rolled_up(connection: Connection) -> None:
    term = await open_books(connection)
    (books,) = await statements.read_books(connection, [SHARD])
    begins, ends = books.closed_until, month_of(books.closed_until).ends
    done = success(await add_job(connection), term, 10)
    assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
    assert not await statements.close_until(connection, SHARD, begins, ends)
    await usage.roll_up(connection, [SHARD], 100)
    assert await statements.close_until(connection, SHARD, begins, ends)
    assert not await statements.close_until(connection, SHARD, begins, ends), "once"


async def test_usage_outlives_its_jobs_and_goes_when_its_month_is_stated(
    connection: Connection,
) -> None:
    term = await open_books(connection)
    done = success(await add_job(connection), term, 10)
    assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
    await connection.execute("DELETE FROM jobs")
    await usage.roll_up(connection, [SHARD], 100)
    assert await usage.forget_usage(connection, FAR, 10) == 0, "the month is open"
    assert (await used(connection)).billed_us == 10
    await connection.execute("UPDATE billing_shards SET stated_until = $1", FAR)
    assert await usage.forget_usage(connection, FAR, 10) == 1


async def test_sums_stop_at_the_largest_number(connection: Connection) -> None:
    """No claim of a worker's makes an end that cannot be recorded, or a row that stays."""
    term, most = await open_books(connection), 2**63 - 1
    done = [success(await add_job(connection), term, most) for _ in range(2)]
    assert await record_successes(connection, {SHARD: Term(term)}, done) == set()
    assert (await used(connection)).billed_us == most
    await usage.roll_up(connection, [SHARD], 100)
    more = success(await add_job(connection), term, most)
    assert await record_successes(connection, {SHARD: Term(term)}, [more]) == set()
    await usage.roll_up(connection, [SHARD], 100)
    assert (await used(connection)).billed_us == most


async def test_a_tenant_sees_its_own_hours_and_nothing_of_the_log(
    database: Database,
) -> None:
    async with database.hot() as connection:
        term = await open_books(connection)
        for tenant in (1, 2):
            job = await add_job(connection, tenant=TenantId(tenant))
            done = success(job, term, 10)
            assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
        await usage.roll_up(connection, [SHARD], 100)
    async with database.quick(TenantId(2)) as connection:
        assert await connection.fetchval("SELECT array_agg(tenant) FROM usage_hours") == [2]
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT * FROM usage_log")


async def test_the_runs_of_a_job_are_found_in_its_row(connection: Connection) -> None:
    term, job = await open_books(connection), await add_job(connection)
    epoch = lease_for(job, term).epoch
    assert (
        await settle(connection, {SHARD: Term(term)}, [failure(job, epoch, 3, entry=b"{}")])
        == set()
    )
    last = Success(SHARD, job.tenant, job.id, Epoch(epoch + 1), 4, None)
    assert await record_successes(connection, {SHARD: Term(term)}, [last]) == set()
    ids = history.IdRange(LOWEST_JOB_ID, "ffffffff-ffff-ffff-ffff-ffffffffffff")
    (found,) = await usage.jobs_of_attempts(connection, SHARD, TENANT, ids, 10)
    record = await look(connection, job)
    assert (found.id, found.ran_us, found.history) == (job.id, 4, [b"{}"])
    assert found.finished_at == record.finished_at
    assert await usage.jobs_of_attempts(connection, SHARD, TenantId(2), ids, 10) == []


async def test_a_type_is_referred_to_until_its_month_is_stated(connection: Connection) -> None:
    term = await open_books(connection)
    job = await add_job(connection)
    done = success(job, term, 10)
    assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
    await usage.roll_up(connection, [SHARD], 100)
    assert await type_names.referred_types(connection, [job.type, TypeId(4711)]) == {job.type}
    await connection.execute("UPDATE billing_shards SET stated_until = $1", FAR)
    assert await type_names.referred_types(connection, [job.type]) == set()


async def test_a_row_that_is_set_aside_is_neither_read_nor_rolled_up(
    connection: Connection,
) -> None:
    term = await open_books(connection)
    for ran_us in (1, 10, 100):
        done = success(await add_job(connection), term, ran_us)
        assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
    _, second, third = await usage.next_to_book(connection, SHARD, 9)
    reasons = {second: "no", third: "neither"}
    assert await usage.set_aside(connection, SHARD, reasons, most=1) == 0, "too many"
    assert await usage.set_aside(connection, SHARD, {second: "no"}, most=1) == 1
    assert (await used(connection)).billed_us == 101
    assert await usage.roll_up(connection, [SHARD], 9, [second]) == 0
    assert await usage.roll_up(connection, [SHARD], 9, [third]) == 1
    assert await usage.roll_up(connection, [SHARD], 9) == 1
    assert (await used(connection)).billed_us == 101
    assert await usage.try_again(connection, [SHARD]) == 1
    assert await usage.roll_up(connection, [SHARD], 9) == 1
    assert (await used(connection)).billed_us == 111
