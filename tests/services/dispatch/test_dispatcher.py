"""The dispatcher as a machine without a store: what goes in, what it grants, what it refuses."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from fairway.core.backlog.streams import WindowLimits
from fairway.core.ids import Epoch, PoolId, ShardId, TenantId, Term, TypeId, make_job_id
from fairway.core.job import QueuedJob
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

SHORT, MEDIUM = PoolId(1), PoolId(2)
TERM = Term(3)
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
            lazy_lease=lambda: None,
            record_ends=self.ends.extend,
            forget_ends=lambda shards: None,
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

    def on_news(self, tenants: set[TenantId]) -> None:
        """Something restrains jobs of these."""

    def own(self, shard: int, term: int = TERM) -> None:
        self.dispatcher.shards.terms[ShardId(shard)] = Term(term)
        self.dispatcher.open_shard(ShardId(shard))
        self.dispatcher.trust_until(self.clock.now_us() + round(TRUST_SECONDS * 1e6))

    def job(self, *, shard: int = 0, **changes: Any) -> QueuedJob:
        job_id = make_job_id(ShardId(shard), self.clock.unix_ms(), next(self._numbers), 0)
        plain = QueuedJob(job_id, TenantId(1), SHORT, TypeId(1), 5, 0, Epoch(0), 0, 0, None, b"{}")
        return replace(plain, **changes)

    def arrive(self, *jobs: QueuedJob, shard: int = 0) -> None:
        self.dispatcher.arrived([ShardId(shard)], jobs)

    def worker(
        self,
        key: str = "w",
        *,
        tenant: int | None = None,
        types: Sequence[int] = (1,),
        **slots: int,
    ) -> Session:
        session = self.dispatcher.session(key, key, None if tenant is None else TenantId(tenant))
        session.types = frozenset(map(TypeId, types))
        session.noted()
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


def test_who_is_not_written_down_yet_hears_of_leases_that_are(machine: Machine) -> None:
    """Should this owner die, the next one waits for no worker that the store does not know."""
    worker, (first, second) = machine.worker(), (machine.job(), machine.job())
    worker.noted(is_noted=False)
    machine.arrive(first)
    assert [lease.job for lease in machine.take_written(worker)] == [first]
    worker.noted()
    machine.arrive(second)
    assert [lease.job for lease in machine.take(worker)] == [second]


def test_from_grant_to_record(machine: Machine) -> None:
    worker, job = machine.worker(), machine.job()
    machine.arrive(job)
    (lease,) = machine.take(worker)
    assert (lease.job, lease.epoch) == (job, next_epoch(Epoch(0), TERM))
    assert lease.delivered
    machine.dispatcher.succeeded([End(lease, 7, 1500, b"42")])
    assert machine.ends == [End(lease, 7, 1500, b"42")]
    assert worker.recording == {7}
    assert machine.dispatcher.leases == {}
    assert worker.free(SHORT) == 4


# -- failover ------------------------------------------------------------------------------------


def held(job: QueuedJob, term: int) -> Holding:
    """What a worker says of a lease that a server of this cluster gave it in that term."""
    epoch = next_epoch(job.epoch, Term(term))
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
    machine.dispatcher.close_shard(ShardId(0))
    assert machine.ends == []
    assert machine.dispatcher.lease_of(worker, lease.job.id, lease.epoch, lease.token) is None
    assert machine.dispatcher.shards.terms == {1: TERM}
    assert [lease.shard for lease in machine.take(worker)] == [1]
    assert machine.take(machine.worker("late")) == []
    machine.arrive(machine.job())
    assert machine.take(machine.worker("later")) == []
