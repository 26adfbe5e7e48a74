"""Ends of several shards in one book: each is billed once, in the month in which it may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.store.rows import lease_for, new_job

from fairway.core.billing.periods import month_of
from fairway.core.billing.usage import total_of
from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_move import MoveLook
from fairway.store import leadership, submissions
from fairway.store.billing import statements, usage
from fairway.store.billing.usage import UsageQuestion
from fairway.store.connections.database import Connection
from fairway.store.outcomes import Settlement, Success, record_successes, settle
from fairway.store.registry import tenant_moves
from fairway.store.registry.tenant_moves import Way
from fairway.store.registry.tenant_states import forget_tenant
from fairway.store.registry.tenants import found_cluster

COUNT = 16
FIRST, SECOND = ShardId(3), ShardId(11)  # the book of both is that of the first
OF_FIRST, OF_SECOND = TenantId(3), TenantId(11)
LONG_AGO, FAR = datetime(2001, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
Terms = dict[ShardId, Term]


@pytest.fixture
async def terms(connection: Connection) -> Terms:
    await found_cluster(connection, COUNT, "secret")
    taken = await leadership.claim_shards(connection, "me", "http://me", 60)
    await usage.begin_billing(connection, [*taken])
    return {shard: claim.term for shard, claim in taken.items()}


async def add(connection: Connection, shard: ShardId, tenant: TenantId) -> QueuedJob:
    job = new_job(shard=shard, tenant=tenant)
    await submissions.insert_jobs(connection, shard, [job])
    return job


async def end_one_each(connection: Connection, terms: Terms) -> None:
    """In one statement, of 10 µs and of 100."""
    done = []
    for shard, tenant, ran_us in ((FIRST, OF_FIRST, 10), (SECOND, OF_SECOND, 100)):
        job = await add(connection, shard, tenant)
        epoch = lease_for(job, terms[shard]).epoch
        done.append(Success(shard, tenant, job.id, epoch, ran_us, None))
    for _ in range(2):  # an answer that was lost is asked for again
        assert await record_successes(connection, terms, done) == set()


async def billed_us(
    connection: Connection, shard: ShardId, tenant: TenantId, since: datetime = LONG_AGO
) -> int:
    asked = UsageQuestion(shard, tenant, since, FAR, [since], by_pool=True, by_type=True, limit=9)
    return total_of(await usage.read_usage(connection, asked)).billed_us


async def logged_under(connection: Connection) -> list[int]:
    return [row["shard"] for row in await connection.fetch("SELECT shard FROM usage_log")]


async def test_ends_of_two_shards_of_a_book_are_one_row_and_billed_once(
    connection: Connection, terms: Terms
) -> None:
    await end_one_each(connection, terms)
    assert await logged_under(connection) == [FIRST]
    for _ in range(2):  # from the log, and from the hours
        assert await billed_us(connection, FIRST, OF_FIRST) == 10
        assert await billed_us(connection, SECOND, OF_SECOND) == 100
        await usage.roll_up(connection, [*terms], 100)
    assert await logged_under(connection) == []


async def test_a_shard_is_closed_behind_the_one_with_its_book(
    connection: Connection, terms: Terms
) -> None:
    await end_one_each(connection, terms)
    (books,) = await statements.read_books(connection, [SECOND])
    begins, ends = books.closed_until, month_of(books.closed_until).ends
    assert not await statements.close_until(connection, SECOND, begins, ends)
    assert not await statements.close_until(connection, FIRST, begins, ends), "it is in the log"
    await usage.roll_up(connection, [*terms], 100)
    assert not await statements.close_until(connection, SECOND, begins, ends), "its book is open"
    assert await statements.close_until(connection, FIRST, begins, ends)
    assert await statements.close_until(connection, SECOND, begins, ends)


async def test_what_comes_too_late_for_the_book_is_billed_in_the_next_month(
    connection: Connection, terms: Terms
) -> None:
    """Also of a shard that is not closed yet: nothing is booked behind its back when it is."""
    (books,) = await statements.read_books(connection, [FIRST])
    begins, ends = books.closed_until, month_of(books.closed_until).ends
    assert await statements.close_until(connection, FIRST, begins, ends)
    job = await add(connection, SECOND, OF_SECOND)
    epoch, late = lease_for(job, terms[SECOND]).epoch, ends - timedelta(minutes=1)
    end = Settlement(
        SECOND, OF_SECOND, job.id, epoch, State.DEAD, 1, 1, None, 70, None,
        billed_us=70, is_attempt=True, ended_at=late,
    )  # fmt: skip
    assert await settle(connection, terms, [end]) == set()
    for _ in range(2):
        assert await billed_us(connection, SECOND, OF_SECOND) == 70
        assert await billed_us(connection, SECOND, OF_SECOND, ends) == 70
        await usage.roll_up(connection, [*terms], 100)
    assert await statements.close_until(connection, SECOND, begins, ends)


async def test_a_new_shard_begins_with_a_month_that_its_book_has_not_closed(
    connection: Connection, terms: Terms
) -> None:
    """What ended in that month is booked into it, so it must be stated: a shard that was made when
    the month turned, or the hour after."""
    (book,) = await statements.read_books(connection, [FIRST])
    last = month_of(book.closed_until - timedelta(days=1))
    await connection.execute(
        "UPDATE billing_shards SET closed_until = $1, stated_until = $1 WHERE shard = $2",
        last.begins, FIRST,
    )  # fmt: skip
    await connection.execute("DELETE FROM billing_shards WHERE shard = ANY($1)", [SECOND, 12])
    await usage.begin_billing(connection, [SECOND, ShardId(12)])
    found = await statements.read_books(connection, [SECOND, ShardId(12)])
    began = {one.shard: (one.closed_until, one.stated_until) for one in found}
    assert began == {SECOND: (last.begins,) * 2, 12: (book.closed_until,) * 2}


async def test_a_book_begins_no_later_than_a_shard_behind_it(
    connection: Connection, terms: Terms
) -> None:
    """Shards became more just before a month's end, and the owner of the one with the book came to
    it just after: what ended before is billed in the month in which it did."""
    first, behind = ShardId(4), ShardId(12)
    await connection.execute("DELETE FROM billing_shards")
    await usage.begin_billing(connection, [behind])
    (books,) = await statements.read_books(connection, [behind])
    last = month_of(books.closed_until - timedelta(days=1))
    await connection.execute(  # that was in the month before
        "UPDATE billing_shards SET closed_until = $1, stated_until = $1", last.begins
    )
    job = await add(connection, behind, TenantId(12))
    end = Settlement(
        behind, TenantId(12), job.id, lease_for(job, terms[behind]).epoch, State.DEAD, 1, 1, None,
        70, None, billed_us=70, is_attempt=True, ended_at=last.ends - timedelta(seconds=1),
    )  # fmt: skip
    assert await settle(connection, terms, [end]) == set()
    await usage.begin_billing(connection, [first])
    await usage.roll_up(connection, [*terms], 100)
    assert await billed_us(connection, behind, TenantId(12)) == 70
    assert await billed_us(connection, behind, TenantId(12), last.ends) == 0


async def test_what_a_server_of_the_build_before_logs_by_shard_is_billed_as_ever(
    connection: Connection, terms: Terms
) -> None:
    await end_one_each(connection, terms)
    (books,) = await statements.read_books(connection, [FIRST])
    begins, ends = books.closed_until, month_of(books.closed_until).ends
    await usage.roll_up(connection, [*terms], 100)
    await connection.execute(
        "INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us)"
        " VALUES ($1, $2, '{1}', '{1}', '{1000}')", SECOND, [OF_SECOND],
    )  # fmt: skip
    assert await billed_us(connection, SECOND, OF_SECOND) == 1100
    assert await statements.close_until(connection, FIRST, begins, ends)
    assert not await statements.close_until(connection, SECOND, begins, ends)
    await usage.roll_up(connection, [*terms], 100)
    assert await billed_us(connection, SECOND, OF_SECOND) == 1100
    assert await statements.close_until(connection, SECOND, begins, ends)


async def test_rows_of_a_book_without_the_tenant_are_not_taken_apart(
    connection: Connection, terms: Terms
) -> None:
    """A book has the ends of many others: each line of theirs cost whoever asks some 3 µs."""
    log = (
        "INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us)"
        " SELECT $1, ARRAY[$2::int], '{1}', '{1}', '{7}' FROM generate_series(1, $3::int)"
    )
    await connection.execute(log, FIRST, OF_FIRST, 50)
    await connection.execute(log, FIRST, OF_SECOND, 2)
    asked = UsageQuestion(SECOND, OF_SECOND, LONG_AGO, FAR, [LONG_AGO], True, True, 9)
    statement = usage._SQL["read_usage"]
    rows = await connection.fetch(
        f"EXPLAIN (ANALYZE, TIMING OFF) {statement.text}", *statement.bind(**asked._asdict())
    )
    (taken_apart,) = [row[0] for row in rows if "Function Scan on" in row[0]]
    assert "loops=2)" in taken_apart
    assert await billed_us(connection, SECOND, OF_SECOND) == 14


async def looked_at(connection: Connection) -> MoveLook:
    look = await tenant_moves.look(connection, OF_SECOND)
    assert look is not None
    return look


async def test_a_tenant_does_not_move_while_its_usage_is_in_the_book(
    connection: Connection, terms: Terms
) -> None:
    await end_one_each(connection, terms)
    await connection.execute(
        "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE VALUES ($1, 'moving')", OF_SECOND
    )
    assert await tenant_moves.ask(connection, Way(OF_SECOND, SECOND, ShardId(4)), 0)
    assert (await looked_at(connection)).has_usage
    await usage.roll_up(connection, [*terms], 100)
    assert not (await looked_at(connection)).has_usage


async def test_a_tenant_that_moves_when_a_month_is_stated_is_stated_by_one_shard(
    connection: Connection, terms: Terms
) -> None:
    """Each states its own: whoever left one before it did, and came to one that had, by neither."""
    to = ShardId(4)
    (books,) = await statements.read_books(connection, [to])
    last = month_of(books.closed_until - timedelta(days=1))
    back = "UPDATE billing_shards SET stated_until = $1 WHERE shard = ANY($2)"
    await connection.execute(
        "INSERT INTO tenants (id, name, created_at) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, 'moving', $2)", OF_SECOND, LONG_AGO,
    )  # fmt: skip
    for behind, is_unstated in (([], False), ([SECOND], True), ([SECOND, to], False)):
        await connection.execute(back, last.begins, behind)
        before = await tenant_moves.look_before(connection, "moving", to)
        assert before is not None
        assert before.has_unstated_month == is_unstated
    assert await tenant_moves.ask(connection, Way(OF_SECOND, SECOND, to), 0)
    assert not (await looked_at(connection)).has_unstated_month
    month = (to, last.begins, last.ends)
    assert not await statements.stated_until(connection, *month, books.now)
    for ended, stood_still, is_stated in (
        ("0 s", "0 s", False),
        ("2 min", "3 min", False),  # it ended after the tenants were looked up
        ("2 min", "0 s", True),
    ):
        await connection.execute(
            "UPDATE tenant_moves SET state = 'done', finished_at = now() - $1::text::interval",
            ended,
        )
        looked = await connection.fetchval("SELECT now() - $1::text::interval", stood_still)
        assert is_stated == await statements.stated_until(connection, *month, looked)


async def test_a_deleted_tenant_stays_while_its_usage_is_in_the_book(
    connection: Connection, terms: Terms
) -> None:
    await connection.execute(
        "INSERT INTO tenants (id, name, state, state_since) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, 'gone', 'deleted', $2)", OF_SECOND, LONG_AGO,
    )  # fmt: skip
    await end_one_each(connection, terms)
    await connection.execute("UPDATE billing_shards SET stated_until = $1", FAR)
    assert not await forget_tenant(connection, SECOND, OF_SECOND, timedelta(0))
    await usage.roll_up(connection, [*terms], 100)
    assert await forget_tenant(connection, SECOND, OF_SECOND, timedelta(0))
