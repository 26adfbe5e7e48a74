"""Holds that change for very many streams: who waits meanwhile is served in the end."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_dispatcher import SHORT, Machine

from fairway.core.backlog import runnable
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.ids import TenantId, TypeId

STREAMS = 20


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Looks at one stream at a time; a job waits in each of many."""
    monkeypatch.setattr(runnable, "REVIEWED_AT_ONCE", 1)
    machine = Machine()
    machine.arrive(*[machine.job(lane=lane) for lane in range(1, STREAMS + 1)])
    return machine


def review_all(machine: Machine) -> None:
    while machine.dispatcher.backlog.runnable.is_reviewing:
        machine.dispatcher.windows().review()


def test_a_call_that_is_held_is_answered_once_all_know_their_holds(machine: Machine) -> None:
    machine.arrive(free := machine.job(type=2, lane=STREAMS + 1))
    machine.dispatcher.set_holds(Holds([Hold(tenant=TenantId(1), type=TypeId(1))]))
    worker = machine.worker(types=(1, 2))
    assert machine.take(worker) == []
    machine.dispatcher.hold_open(worker)
    review_all(machine)
    assert [lease.job for lease in worker.outbox] == [free]


def test_a_tenant_whose_streams_are_all_held_is_asleep_when_all_know_it(machine: Machine) -> None:
    machine.dispatcher.set_holds(Holds([Hold(tenant=TenantId(1))]))
    assert machine.dispatcher.shares[SHORT].has_work
    review_all(machine)
    assert not machine.dispatcher.shares[SHORT].has_work


def test_whoever_reads_the_store_is_told_to_go_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    backlog = machine.dispatcher.backlog
    monkeypatch.setattr(machine, "want_reads", lambda: told.append(backlog.runnable.is_reviewing))
    machine.dispatcher.set_holds(Holds([Hold(tenant=TenantId(1))]))
    assert told == [True]
