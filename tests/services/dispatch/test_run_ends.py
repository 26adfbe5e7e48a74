"""Runs end: well, otherwise, or without a word; and what of the job goes on."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_dispatcher import (
    Machine,
    failed,
)

from fairway.core.ids import TypeId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind


@pytest.fixture
def machine() -> Machine:
    return Machine()


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


def test_a_failure_is_decided_by_policy(machine: Machine) -> None:
    machine.dispatcher.failure_policy.policies.asked(None, {TypeId(2): {"attempts_max": 1}})
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
    assert (again.job.attempts, again.job.deliveries) == (0, 1)
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
