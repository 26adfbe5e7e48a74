"""Who is granted what: no more than slots, none twice, none without trust."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_dispatcher import (
    MEDIUM,
    SHORT,
    TERM,
    TRUST_SECONDS,
    Machine,
)

from fairway.core.ids import ShardId
from fairway.services.sessions.sessions import End


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_no_more_leases_than_slots_and_none_twice(machine: Machine) -> None:
    jobs = [machine.job() for _ in range(10)]
    machine.arrive(*jobs)
    one, two = machine.worker("a", short=3), machine.worker("b", short=4)
    leases = machine.take(one) + machine.take(two)
    assert len(leases) == 7
    assert machine.take(one) == machine.take(two) == []
    assert {lease.job.id for lease in leases} == {job.id for job in jobs[:7]}
    assert len({lease.token for lease in leases}) == 7


def test_an_arrival_answers_a_call_that_is_held(machine: Machine) -> None:
    worker = machine.worker(short=1)
    machine.dispatcher.hold_open(worker)
    machine.arrive(machine.job(), machine.job())
    assert len(worker.outbox) == 1
    machine.dispatcher.let_go(worker)
    machine.dispatcher.succeeded([End(worker.outbox[0], 1, 1, b"1")])
    machine.arrive(machine.job())
    assert len(worker.outbox) == 1


def test_a_job_of_anothers_shard_stops_no_grants(machine: Machine) -> None:
    """Wherever it came from: its owner has it on disk, and those beside it start."""
    foreign = [machine.job(shard=7), machine.job(shard=7, epoch=5)]
    mine = [machine.job(), machine.job()]
    machine.arrive(foreign[0], mine[0], foreign[1], mine[1])
    worker = machine.worker(short=4)
    assert [lease.job for lease in machine.take(worker)] == mine
    assert worker.free(SHORT) == 2
    assert set(machine.dispatcher.leases) == {job.id for job in mine}
    machine.arrive(machine.job(), machine.job())
    assert len(machine.take(worker)) == 2, "their slots are free for others"


def test_a_draining_worker_gets_nothing(machine: Machine) -> None:
    worker = machine.worker()
    worker.draining = True
    machine.arrive(machine.job())
    assert machine.take(worker) == []


def test_a_job_that_ran_before_and_is_over_meanwhile_is_never_started(machine: Machine) -> None:
    worker = machine.worker()
    fresh, ran = machine.job(), machine.job(epoch=5)
    machine.arrive(fresh, ran)
    (lease,) = machine.take(worker)
    assert lease.job == fresh, "a first run goes out at once"
    (doubtful,) = machine.to_write
    assert doubtful.job == ran
    machine.dispatcher.not_written(doubtful)
    assert machine.dispatcher.news(worker).leases == []
    assert set(machine.dispatcher.leases) == {fresh.id}


def test_a_durable_lease_is_heard_of_only_when_it_is_written(machine: Machine) -> None:
    worker = machine.worker(medium=2)
    machine.arrive(machine.job(pool=MEDIUM), machine.job(pool=MEDIUM))
    assert machine.take(worker) == []
    kept, lost = machine.to_write
    machine.dispatcher.written(kept)
    machine.dispatcher.not_written(lost)
    assert machine.dispatcher.news(worker).leases == [kept]
    assert set(machine.dispatcher.leases) == {kept.job.id}
    assert worker.free(MEDIUM) == 1


def test_tenants_of_a_shard_that_is_let_go_rest_until_it_stays(machine: Machine) -> None:
    """Else every grant to others would go through all of them first."""
    job, worker, letting_go = machine.job(), machine.worker(), machine.dispatcher.letting_go()
    machine.arrive(job)
    letting_go.suspend({ShardId(0)})
    assert machine.take(worker) == []
    assert not machine.dispatcher.shares[job.pool].has_work
    letting_go.resume({ShardId(0)})
    assert [lease.job for lease in machine.take(worker)] == [job]


def test_no_grant_after_the_trust_ends(machine: Machine) -> None:
    worker = machine.worker()
    machine.clock.advance(TRUST_SECONDS)
    machine.arrive(machine.job())
    assert machine.take(worker) == []
    machine.own(0)
    assert len(machine.take(worker)) == 1


def test_no_grant_of_a_shard_that_is_not_open(machine: Machine) -> None:
    machine.dispatcher.shards.terms[ShardId(1)] = TERM
    machine.arrive(machine.job(shard=1), shard=1)
    assert machine.take(machine.worker()) == []


def test_a_tenants_own_worker_gets_its_jobs_alone(machine: Machine) -> None:
    mine, others = machine.job(tenant=2), machine.job(tenant=3)
    machine.arrive(others, mine)
    worker = machine.worker(tenant=2)
    assert [lease.job for lease in machine.take(worker)] == [mine]
    assert [lease.job for lease in machine.take(machine.worker("any"))] == [others]


def test_types_that_no_worker_runs_do_not_block_the_rest(machine: Machine) -> None:
    strange = [machine.job(type=99) for _ in range(5)]
    known = [machine.job(type=1), machine.job(tenant=2, type=1)]
    machine.arrive(*strange, *known)
    worker = machine.worker(short=10)
    assert {lease.job for lease in machine.take(worker)} == set(known)
    assert machine.take(worker) == []
    able = machine.worker("able", types=(99,), short=10)
    assert [lease.job for lease in machine.take(able)] == strange
