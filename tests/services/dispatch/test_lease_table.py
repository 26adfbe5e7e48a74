"""Leases in force: whose they are, when they are due to be written, and when they are over."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_dispatcher import (
    MEDIUM,
    Machine,
)

from fairway.core.ids import Epoch
from fairway.services.sessions.sessions import End


@pytest.fixture
def machine() -> Machine:
    return Machine()


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
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us() - 1).leases == []
    machine.clock.advance(0.1)
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us()).leases == [lengthy]
    assert machine.dispatcher.take_stale_leases(machine.clock.now_us()).leases == []


def test_only_the_holder_of_the_lease_in_force_is_heard(machine: Machine) -> None:
    worker, stranger = machine.worker("a"), machine.worker("b")
    machine.arrive(machine.job())
    (lease,) = machine.take(worker)
    ask = machine.dispatcher.lease_of
    job, epoch, token = lease.job.id, lease.epoch, lease.token
    assert ask(worker, job, epoch, token) is lease
    assert ask(worker, job, Epoch(epoch + 1), token) is None
    assert ask(worker, job, Epoch(epoch - 1), token) is None
    assert ask(worker, job, epoch, "0" * 32) is None
    assert ask(stranger, job, epoch, token) is None
    assert ask(worker, machine.job().id, epoch, token) is None
