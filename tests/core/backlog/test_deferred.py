"""More streams than one tenant may have in memory: the rest waits in the store, and takes turns."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.core.backlog.test_backlog import POOL, BacklogMachine, exhaust, make
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried

from fairway.core.backlog import deferred
from fairway.core.backlog.backlog import STREAMS_KEPT
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.lanes import LANES_MAX
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.ids import TenantId, TypeId
from fairway.core.job import QueuedJob

TYPES = frozenset(map(TypeId, range(1, 1000)))


class CrowdMachine(BacklogMachine):
    """As the machine of the backlog, with room for one stream of each tenant."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(deferred, "STREAMS_MAX", 1)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()


CrowdMachine.TestCase.settings = tried(80, stateful_step_count=50)
TestCrowdAgainstAModel = CrowdMachine.TestCase


class Store:
    """What is queued, and the sweep over it, with reads of all that was met."""

    def __init__(self, backlog: TimedBacklog, jobs: Iterable[QueuedJob] = ()) -> None:
        self.backlog = backlog
        self.queued = {job.id: job for job in jobs}

    def submit(self, jobs: list[QueuedJob]) -> None:
        self.queued.update((job.id, job) for job in jobs)
        self.backlog.arrived(jobs)

    def sweep(self) -> None:
        for job in sorted(self.queued.values(), key=lambda job: (job.lane, job.type, job.priority)):
            if not self.backlog.knows(key_of(job), job.id):
                self.backlog.noticed(key_of(job), job.id)
        exhaust(self.backlog.pruning())
        while reads := self.backlog.reads.begin(24):
            for stream, asked in reads:
                found = [job for job in self.queued.values() if key_of(job) == stream.key]
                fresh = [job for job in sorted(found) if job.id > stream.cursor]
                self.backlog.reads.end(stream, fresh[:asked], asked, ())

    def run(self, count: int = 1 << 30) -> list[QueuedJob]:
        ran: list[QueuedJob] = []
        while len(ran) < count and (job := self.backlog.take(POOL, 1, TYPES, ())):
            del self.queued[job.id]
            ran.append(job)
        return ran

    @property
    def streams(self) -> int:
        backlog = self.backlog._tenants.get((POOL, TenantId(1)))
        return 0 if backlog is None else len(backlog.streams)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(deferred, "STREAMS_MAX", 5)
    return Store(TimedBacklog(WindowLimits()))


def test_the_rest_stays_in_the_store_and_runs_in_turn(store: Store) -> None:
    jobs = [make(n, ms=n, type=n) for n in range(1, 13)]
    store.submit(jobs)
    assert store.streams == 5
    assert store.backlog.counts.depth(TenantId(1), [POOL]) == 12
    assert [job.type for job in store.run()] == [1, 2, 3, 4, 5]
    assert store.backlog.counts.depth(TenantId(1), [POOL]) == 7
    ran = []
    for _ in range(8):
        store.sweep()
        assert store.streams <= 5
        ran += [job.type for job in store.run()]
    assert ran == list(range(6, 13))
    assert store.backlog.counts.depth(TenantId(1), [POOL]) == 0
    assert store.backlog.counts.pool_tenants() == []


def test_streams_that_never_run_dry_do_not_keep_the_others_out(store: Store) -> None:
    """The first ones in the store's order are filled again and again; all have their turn."""
    store.submit([make(n, ms=n, type=n) for n in range(1, 31)])
    seen: set[int] = set()
    number = 100
    for _ in range(40):
        seen |= {job.type for job in store.run()}
        again = [make(number + n, ms=number + n, type=n) for n in range(1, 11)]
        store.submit(again)
        number += 100
        store.sweep()
        assert store.streams <= 5
    assert seen == set(range(1, 31))


def test_what_must_not_start_gives_its_place_up(store: Store) -> None:
    store.submit([make(n, ms=n, type=1, priority=n) for n in range(8)])
    store.backlog.runnable.set_holds(Holds([Hold(tenant=TenantId(1), type=TypeId(1))]))
    store.submit([make(20, ms=20, type=2)])
    assert store.run() == []
    for _ in range(3):
        store.sweep()
    assert [job.type for job in store.run()] == [2]
    store.backlog.runnable.set_holds(Holds())
    for _ in range(6):
        store.sweep()
        store.run()
    assert store.queued == {}


def test_a_crowd_that_is_over_leaves_nothing_behind(store: Store) -> None:
    store.submit([make(n, ms=n, type=n) for n in range(1, 9)])
    for _ in range(4):
        store.run()
        store.sweep()
    store.submit([make(50, ms=50, type=500)])
    assert [job.type for job in store.run()] == [500], "it need not wait for the sweep"


def test_empty_streams_go_though_others_of_the_tenant_have_work() -> None:
    """One customer with work at all times must not keep those of all the others."""
    backlog = TimedBacklog(WindowLimits())
    store = Store(backlog)
    lanes = range(1, LANES_MAX + 1)
    store.submit([make(n, ms=n, lane=lane) for n, lane in enumerate(lanes)])
    store.run(LANES_MAX - 1)
    assert store.streams == LANES_MAX
    store.sweep()
    assert store.streams == 1 <= STREAMS_KEPT
