"""The dispatcher as a machine without a store: what goes in, what it grants, what it refuses."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from fairway.core.backlog.streams import WindowLimits
from fairway.core.ids import make_job_id
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.pools import PoolTable
from fairway.core.run.lease import TERM_SHIFT, next_epoch
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.clock import ManualClock
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher, DispatchSettings
from fairway.services.dispatch.ports import Ports, Sorted
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.services.sessions.sessions import End, Holding, Lease, Session

SHORT, MEDIUM = 1, 2
TERM = 3
SECRET = "of this cluster"
TRUST_SECONDS = 10.0


class Machine:
    """A dispatcher that owns shard 0, and what it would have written."""

    def __init__(self, kind: type[Dispatcher] = Dispatcher, metrics: Metrics | None = None) -> None:
        self.clock = ManualClock()
        self.clock.advance(60)
        self.ends: list[End] = []
        self.to_write: list[Lease] = []
        settings = DispatchSettings(
            limits=WindowLimits(jobs_total=1000),
            tokens=lease_tokens(SECRET),
            inline_bytes_max=sys.maxsize,
        )
        ports = Ports(
            write_leases=self.to_write.extend,
            record_ends=self.ends.extend,
            want_reads=lambda: self.want_reads(),
            drop_expired=lambda leases: Sorted(leases, []),
        )
        pools = PoolTable()
        failure_policy = FailurePolicy(
            self.clock, pools, jitter=lambda: 0.5, on_news=lambda tenants: self.on_news(tenants)
        )
        self.dispatcher = kind(
            settings, ports, failure_policy, pools, clock=self.clock, metrics=metrics or Metrics()
        )
        self.own(0)
        self._numbers = itertools.count(1)

    def want_reads(self) -> None:
        """Windows run low."""

    def on_news(self, tenants: set[int]) -> None:
        """Something restrains jobs of these."""

    def own(self, shard: int, term: int = TERM) -> None:
        self.dispatcher.shards.terms[shard] = term
        self.dispatcher.open_shard(shard)
        self.dispatcher.shards.trusted_until_us = self.clock.now_us() + round(TRUST_SECONDS * 1e6)

    def job(self, *, shard: int = 0, **changes: Any) -> QueuedJob:
        job_id = make_job_id(shard, self.clock.unix_ms(), next(self._numbers), 0)
        plain = QueuedJob(job_id, 1, SHORT, 1, 5, 0, 0, 0, 0, None, b"{}")
        return replace(plain, **changes)

    def arrive(self, *jobs: QueuedJob, shard: int = 0) -> None:
        self.dispatcher.arrived(shard, jobs)

    def worker(
        self,
        key: str = "w",
        *,
        tenant: int | None = None,
        types: Sequence[int] = (1,),
        **slots: int,
    ) -> Session:
        session = self.dispatcher.session(key, key, tenant)
        session.types = frozenset(types)
        numbers = {"short": SHORT, "medium": MEDIUM}
        given = {numbers[name]: count for name, count in slots.items()} or {SHORT: 4}
        self.dispatcher.equip(session, given)
        return session

    def take(self, session: Session) -> list[Lease]:
        self.dispatcher.serve(session)
        return self.dispatcher.news(session).leases

    def take_written(self, session: Session) -> list[Lease]:
        """As `take`, of jobs that ran before: their leases are on disk first."""
        assert self.take(session) == []
        for lease in self.to_write:
            self.dispatcher.written(lease)
        self.to_write.clear()
        return self.dispatcher.news(session).leases


@pytest.fixture
def machine() -> Machine:
    return Machine()


def failed(failure: FailureClass = FailureClass.APP_ERROR) -> Outcome:
    return Outcome(OutcomeKind.FAILED, 5, failure=failure, error=b"{}")


# -- granting ------------------------------------------------------------------------------------


def test_from_grant_to_record(machine: Machine) -> None:
    worker, job = machine.worker(), machine.job()
    machine.arrive(job)
    (lease,) = machine.take(worker)
    assert (lease.job, lease.epoch) == (job, next_epoch(0, TERM))
    assert lease.delivered
    machine.dispatcher.succeeded([End(lease, 7, 1500, b"42")])
    assert machine.ends == [End(lease, 7, 1500, b"42")]
    assert worker.recording == {7}
    assert machine.dispatcher.leases == {}
    assert worker.free(SHORT) == 4


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


def test_a_session_that_ends_lets_go_of_its_leases(machine: Machine) -> None:
    """Also of those it never heard of, and of one that reaches the disk too late."""
    worker = machine.worker(short=1, medium=1)
    machine.arrive(machine.job(), machine.job(pool=MEDIUM))
    machine.dispatcher.serve(worker)
    (late,) = machine.to_write
    assert worker.outbox
    machine.dispatcher.end_session(worker)
    ended = len(machine.ends)
    machine.dispatcher.written(late)
    assert (worker.outbox, worker.leases) == ([], {})
    assert len(machine.ends) == ended == 2, "each was lost, once"


def test_a_lazy_lease_is_due_to_be_written_when_it_still_runs(machine: Machine) -> None:
    worker = machine.worker()
    machine.arrive(machine.job(), machine.job())
    brief, lengthy = machine.take(worker)
    machine.dispatcher.succeeded([End(brief, 1, 1, b"1")])
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us() - 1) == []
    machine.clock.advance(0.1)
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us()) == [lengthy]
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us()) == []


def test_no_grant_after_the_trust_ends(machine: Machine) -> None:
    worker = machine.worker()
    machine.clock.advance(TRUST_SECONDS)
    machine.arrive(machine.job())
    assert machine.take(worker) == []
    machine.own(0)
    assert len(machine.take(worker)) == 1


def test_no_grant_of_a_shard_that_is_not_open(machine: Machine) -> None:
    machine.dispatcher.shards.terms[1] = TERM
    machine.arrive(machine.job(shard=1), shard=1)
    assert machine.take(machine.worker()) == []


# -- who may run what ----------------------------------------------------------------------------


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


# -- fencing -------------------------------------------------------------------------------------


def test_only_the_holder_of_the_lease_in_force_is_heard(machine: Machine) -> None:
    worker, stranger = machine.worker("a"), machine.worker("b")
    machine.arrive(machine.job())
    (lease,) = machine.take(worker)
    ask = machine.dispatcher.lease_of
    job, epoch, token = lease.job.id, lease.epoch, lease.token
    assert ask(worker, job, epoch, token) is lease
    assert ask(worker, job, epoch + 1, token) is None
    assert ask(worker, job, epoch - 1, token) is None
    assert ask(worker, job, epoch, "0" * 32) is None
    assert ask(stranger, job, epoch, token) is None
    assert ask(worker, machine.job().id, epoch, token) is None


def test_a_lost_lease_is_void_and_the_next_has_a_greater_epoch(machine: Machine) -> None:
    worker = machine.worker()
    machine.arrive(machine.job())
    (old,) = machine.take(worker)
    machine.dispatcher.lost([old])
    assert machine.dispatcher.lease_of(worker, old.job.id, old.epoch, old.token) is None
    (end,) = machine.ends
    assert end.decision is not None
    assert (end.decision.state, *end.decision.tally[:2]) == (
        State.QUEUED, 0, 1,
    )  # fmt: skip
    assert end.number is None
    assert machine.take(worker) == []  # not before the loss is on disk
    machine.dispatcher.settled(end)
    (again,) = machine.take_written(worker)
    assert again.epoch > old.epoch
    assert again.token != old.token
    assert again.job.deliveries == 1


def test_a_revoked_lease_is_told_to_its_worker(machine: Machine) -> None:
    worker = machine.worker()
    machine.arrive(machine.job())
    (lease,) = machine.take(worker)
    machine.dispatcher.revoke(lease)
    news = machine.dispatcher.news(worker)
    assert (news.revoked, news.revoked_epochs) == ([lease.job.id], [lease.epoch])
    assert machine.dispatcher.lease_of(worker, lease.job.id, lease.epoch, lease.token) is None
    assert machine.ends == []


# -- ends ----------------------------------------------------------------------------------------


def test_a_failure_is_decided_by_policy(machine: Machine) -> None:
    machine.dispatcher.failure_policy.policies.asked(None, {2: {"attempts_max": 1}})
    worker = machine.worker(types=(1, 2))
    machine.arrive(machine.job(type=1), machine.job(type=2))
    for number, lease in enumerate(machine.take(worker)):
        machine.dispatcher.ended(lease, number, failed())
    states = {e.lease.job.type: e.decision.state for e in machine.ends if e.decision}
    assert states == {1: State.SCHEDULED, 2: State.DEAD}


def test_a_job_that_was_handed_back_keeps_its_place(machine: Machine) -> None:
    worker = machine.worker(short=1)
    first, second = machine.job(), machine.job()
    machine.arrive(first, second)
    (lease,) = machine.take(worker)
    machine.dispatcher.ended(lease, 1, Outcome(OutcomeKind.RETURNED, 5))
    machine.dispatcher.settled(machine.ends[0])
    (again,) = machine.take_written(worker)
    assert again.job.id == first.id
    assert (again.job.attempts, again.job.deliveries) == (0, 0)
    assert again.epoch == lease.epoch + 1


def test_a_final_end_frees_nothing_to_run(machine: Machine) -> None:
    worker = machine.worker()
    machine.arrive(machine.job())
    (lease,) = machine.take(worker)
    machine.dispatcher.ended(lease, 1, failed(FailureClass.PERMANENT))
    machine.dispatcher.settled(machine.ends[0])
    assert machine.take(worker) == []


def test_a_session_that_ends_loses_what_it_held(machine: Machine) -> None:
    worker = machine.worker()
    machine.arrive(machine.job(), machine.job())
    leases = machine.take(worker)
    machine.dispatcher.end_session(worker)
    assert [end.lease for end in machine.ends] == leases
    assert machine.dispatcher.sessions == {}
    assert machine.dispatcher.leases == {}


# -- failover ------------------------------------------------------------------------------------


def held(job: QueuedJob, term: int) -> Holding:
    """What a worker says of a lease that a server of this cluster gave it in that term."""
    epoch = next_epoch(job.epoch, term)
    return Holding(job.id, job.tenant, epoch, lease_tokens(SECRET).make(job.id, epoch))


def test_a_lease_of_an_earlier_owner_is_adopted(machine: Machine) -> None:
    worker, job = machine.worker(), machine.job()
    holding = held(job, TERM - 1)
    assert machine.dispatcher.adopt(worker, job, holding)
    lease = machine.dispatcher.lease_of(worker, job.id, holding.epoch, holding.token)
    assert lease is not None
    assert worker.free(SHORT) == 3
    machine.dispatcher.succeeded([End(lease, 1, 10, b"1")])
    assert machine.ends[0].lease.epoch == holding.epoch


def test_what_cannot_be_the_newest_lease_is_not_adopted(machine: Machine) -> None:
    worker, job = machine.worker(), machine.job()
    adopt = machine.dispatcher.adopt
    assert not adopt(worker, job, held(job, TERM))  # this term granted nothing of the kind
    assert not adopt(worker, job, held(job, TERM + 1))
    lost = replace(job, epoch=held(job, TERM - 1).epoch)
    assert not adopt(worker, lost, held(job, TERM - 1))  # its loss was written down
    newer = replace(job, epoch=(TERM - 1 << TERM_SHIFT) + 5)
    assert not adopt(worker, newer, held(job, TERM - 1))  # a later grant was written down
    elsewhere = machine.job(shard=5)
    assert not adopt(worker, elsewhere, held(elsewhere, TERM - 1))
    guest = machine.worker("guest", tenant=9)
    assert not adopt(guest, job, held(job, TERM - 1))
    made_up = held(job, TERM - 1)._replace(token="f" * 32)
    assert not adopt(worker, job, made_up)  # nobody gave it
    of_another = held(machine.job(), TERM - 1)
    assert not adopt(worker, job, of_another._replace(job=job.id))
    assert not adopt(worker, job, held(job, TERM - 2)._replace(epoch=held(job, TERM - 1).epoch))
    assert adopt(worker, job, held(job, TERM - 1))
    assert not adopt(worker, job, held(job, TERM - 1))  # taken already
    assert len(machine.dispatcher.leases) == 1


def test_an_adopted_job_is_not_granted_again(machine: Machine) -> None:
    worker, job = machine.worker(), machine.job()
    machine.arrive(job)
    machine.dispatcher.adopt(worker, job, held(job, TERM - 1))
    assert machine.take(machine.worker("other")) == []
    lease = machine.dispatcher.leases[job.id]
    machine.dispatcher.succeeded([End(lease, 1, 10, b"1")])
    machine.dispatcher.settled(machine.ends[0])
    assert machine.take(worker) == []


def test_a_closed_shard_is_forgotten_and_nothing_of_it_is_written(machine: Machine) -> None:
    machine.own(1)
    worker = machine.worker(short=1)
    machine.arrive(machine.job(), machine.job())
    machine.arrive(machine.job(shard=1, tenant=2), shard=1)
    (lease,) = machine.take(worker)
    assert lease.shard == 0
    machine.dispatcher.close_shard(0)
    assert machine.ends == []
    assert machine.dispatcher.lease_of(worker, lease.job.id, lease.epoch, lease.token) is None
    assert machine.dispatcher.shards.terms == {1: TERM}
    assert [lease.shard for lease in machine.take(worker)] == [1]
    assert machine.take(machine.worker("late")) == []
    machine.arrive(machine.job())
    assert machine.take(machine.worker("later")) == []


def test_jobs_that_no_worker_runs_take_no_memory_and_block_nobody(machine: Machine) -> None:
    """A tenant's million jobs of a type without a worker must not keep its other jobs waiting."""
    worker = machine.worker(types=(1,))
    machine.arrive(*(machine.job(type=2) for _ in range(2000)))  # more than the windows hold
    assert machine.dispatcher.backlog.windows.jobs_held == 0
    job = machine.job(type=1)
    machine.arrive(job)
    assert [lease.job for lease in machine.take(worker)] == [job]
    assert not machine.dispatcher.backlog.reads.are_wanted
    machine.worker("other", types=(2,))
    assert machine.dispatcher.backlog.reads.are_wanted  # now somebody runs them: read them


def test_windows_of_a_type_whose_workers_left_make_room(machine: Machine) -> None:
    leaver = machine.worker("leaver", types=(2,))
    machine.arrive(*(machine.job(type=2) for _ in range(900)))
    assert machine.dispatcher.backlog.windows.jobs_held > 500
    machine.worker("stayer", types=(1,))
    machine.dispatcher.end_session(leaver)
    assert machine.dispatcher.backlog.windows.jobs_held == 0
    assert machine.dispatcher.backlog.counts.depth(1, [SHORT]) == 900


def test_workers_of_a_lost_shard_count_for_nothing_until_they_say_hello_again(
    machine: Machine,
) -> None:
    machine.worker(short=4)
    machine.dispatcher.close_shard(0)
    machine.own(0, TERM + 1)
    machine.arrive(machine.job())
    assert machine.dispatcher.backlog.windows.jobs_held == 0  # nobody is here who could run it
    machine.worker(short=4)
    assert machine.dispatcher.backlog.reads.are_wanted
