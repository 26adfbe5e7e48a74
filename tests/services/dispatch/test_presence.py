"""Which workers are there, and what that changes of what may wait in memory."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_dispatcher import (
    SHORT,
    TERM,
    Machine,
)

from fairway.core.ids import ShardId, TenantId


@pytest.fixture
def machine() -> Machine:
    return Machine()


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
    assert machine.dispatcher.backlog.counts.depth(TenantId(1), [SHORT]) == 900


def test_workers_of_a_lost_shard_count_for_nothing_until_they_say_hello_again(
    machine: Machine,
) -> None:
    machine.worker(short=4)
    machine.dispatcher.close_shard(ShardId(0))
    machine.own(0, TERM + 1)
    machine.arrive(machine.job())
    assert machine.dispatcher.backlog.windows.jobs_held == 0  # nobody is here who could run it
    machine.worker(short=4)
    assert machine.dispatcher.backlog.reads.are_wanted
