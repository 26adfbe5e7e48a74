"""Pulls from the store in degraded mode: bounded walks, and rows that somebody holds."""

from __future__ import annotations

from tests.store.rows import SHARD, add_job, add_jobs, new_job

from fairway.core.backlog.pulls import ROWS_MAX, Ask
from fairway.core.backlog.streams import key_of
from fairway.core.ids import PoolId, TenantId, Term, TypeId
from fairway.core.insight.trace_context import TRACE_BYTES
from fairway.store import backlog, leadership, submissions
from fairway.store.connections.database import Connection
from fairway.store.registry.tenants import found_cluster
from fairway.store.submissions import insert_jobs

SHORT, FIRST = PoolId(1), TenantId(-1)


async def test_heads_are_of_one_pool_and_of_each_tenant_so_many(connection: Connection) -> None:
    each = backlog.PULL_STREAMS_PER_TENANT
    many = [new_job(tenant=TenantId(1), type=TypeId(n)) for n in range(each + 9)]
    other = [new_job(tenant=TenantId(2)), new_job(tenant=TenantId(2)), new_job(tenant=TenantId(3))]
    elsewhere = [new_job(tenant=TenantId(1), pool=PoolId(2))]
    await add_jobs(connection, *many, *other, *elsewhere)
    heads = await backlog.pull_heads(connection, SHARD, SHORT, FIRST)
    assert [key.tenant for key in heads] == [1] * each + [2, 3]
    assert {key.pool for key in heads} == {SHORT}
    after = await backlog.pull_heads(connection, SHARD, SHORT, TenantId(2))
    assert [key.tenant for key in after] == [3]


async def test_every_stream_of_a_look_can_be_read() -> None:
    assert backlog.PULL_STREAMS <= ROWS_MAX


async def test_what_is_pulled_keeps_its_trace(connection: Connection) -> None:
    job = new_job(trace=b"t" * TRACE_BYTES)
    await insert_jobs(connection, SHARD, [job], traced=True)
    (found,) = await backlog.pull_jobs(connection, SHARD, [Ask(key_of(job), 1)])
    assert found == job


async def test_what_somebody_holds_is_passed_by(
    connection: Connection, other_connection: Connection
) -> None:
    first, second = await add_job(connection), await add_job(connection)
    ask = [Ask(key_of(first), 1)]
    async with connection.transaction():
        assert [job.id for job in await backlog.pull_jobs(connection, SHARD, ask)] == [first.id]
        (found,) = await backlog.pull_jobs(other_connection, SHARD, ask)
        assert found == second
    assert [job.id for job in await backlog.pull_jobs(connection, SHARD, ask)] == [first.id]


async def test_a_pulled_job_keeps_its_trace(connection: Connection) -> None:
    job = new_job(trace=b"t" * 25)
    await submissions.insert_jobs(connection, SHARD, [job], traced=True)
    (found,) = await backlog.pull_jobs(connection, SHARD, [Ask(key_of(job), 1)])
    assert found == job


async def test_an_owner_takes_from_whoever_stands_in_and_not_the_other_way(
    connection: Connection,
) -> None:
    await found_cluster(connection, 1, "secret")
    stand_in, claim = leadership.stand_in, leadership.claim_shards
    assert await leadership.unowned_shards(connection) == [SHARD]
    assert await stand_in(connection, "api", "", 60, [SHARD]) == {SHARD: Term(1)}
    assert await leadership.unowned_shards(connection) == [SHARD]  # one stands in, none owns
    assert await stand_in(connection, "api too", "", 60, [SHARD]) == {}
    assert await leadership.renew_shards(connection, {SHARD: Term(1)}, 60) == {SHARD: True}
    taken = await claim(connection, "owner", "", 60)
    assert taken[SHARD].term == 2
    assert await leadership.renew_shards(connection, {SHARD: Term(1)}, 60) == {}
    assert await leadership.unowned_shards(connection) == []
    assert await stand_in(connection, "api", "", 60, [SHARD]) == {}
    assert await claim(connection, "another", "", 60) == {}
