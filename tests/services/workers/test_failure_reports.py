"""Many failures said in one call: others go on meanwhile, and each is judged in its turn."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.services.dispatch.test_dispatcher import SHORT, Machine
from tests.services.platform_room import Hand, Word, new, submit

from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.streams import WindowLimits
from fairway.core.failure.circuit_book import CIRCUITS_MAX, NAMED_MAX, OTHER
from fairway.core.failure.circuits import CircuitSettings
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.runtime import loops
from fairway.services.platform import Platform
from fairway.services.restraints.probes import holds_of
from fairway.services.sessions.sessions import Lease, Session
from fairway.services.workers.failure_reports import receive_failures

AWAY = b'{"dependency":"stripe","message":"503"}'
FAR_US = 7_200_000_000  # past every window
LONG = b'{"type":"E","message":"' + b"m 123 abc-def 0x7f " * 100 + b'"}'


def failed(failure: FailureClass, error: bytes = b"{}") -> Outcome:
    return Outcome(OutcomeKind.FAILED, 10, failure=failure, error=error)


def said(leases: Sequence[Lease], outcome: Outcome) -> list[tuple[Word, Outcome]]:
    return [
        (Word(number, lease.job.id, "acme", lease.epoch, lease.token, outcome), outcome)
        for number, lease in enumerate(leases, 1)
    ]


class Crowd(Machine):
    """A machine with one worker that runs many jobs of many types; its holds are told of."""

    def __init__(self) -> None:
        super().__init__()
        self.tellings = 0
        self.dispatcher.backlog.windows.limits = WindowLimits()

    def on_news(self, tenants: set[TenantId]) -> None:
        self.tellings += 1
        assert tenants == {1}
        self.dispatcher.set_holds(self.open_now())

    def open_now(self) -> Holds:
        return Holds(holds_of(self.dispatcher.failure_policy, TenantId(1)))

    def run(self, types: int, each: int) -> tuple[Session, list[Lease]]:
        count = types * each
        worker = self.worker(types=range(1, types + 1), short=count)
        self.arrive(*[self.job(type=1 + number // each) for number in range(count)])
        leases: list[Lease] = []
        while len(leases) < count:
            leases += self.take(worker)
        return worker, sorted(leases, key=lambda lease: lease.job.id)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


@pytest.fixture
def rests_after_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PART_SECONDS", -1.0)


@asynccontextmanager
async def longest_stretch() -> AsyncIterator[list[float]]:
    """How long this thread computed at most without letting others have their turn."""
    stretches = [0.0]

    async def beat() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            stretches[0] = max(stretches[0], time.thread_time() - before)

    gc.disable()  # the memory of a whole test run is collected in as long as this is about
    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.01)
    try:
        yield stretches
    finally:
        await asyncio.sleep(0)
        beating.cancel()
        gc.enable()


# -- others go on --------------------------------------------------------------------------------


async def test_ten_thousand_failures_hold_nobody_up(crowd: Crowd) -> None:
    worker, leases = crowd.run(types=1000, each=10)
    reports = said(leases, failed(FailureClass.DEPENDENCY, AWAY))
    async with longest_stretch() as stretch:
        assert await receive_failures(crowd.dispatcher, worker, reports) == []
    assert stretch[0] < 0.1  # a hundredth; it was seconds
    assert crowd.tellings < 900, "not once for each of a thousand circuits"
    assert [end.number for end in crowd.ends] == [report.n for report, _ in reports]
    assert worker.recording == {report.n for report, _ in reports}


async def test_very_many_dependencies_make_no_more_circuits_than_a_tenant_may_have(
    crowd: Crowd,
) -> None:
    failure_policy = crowd.dispatcher.failure_policy
    failure_policy.circuit_settings = CircuitSettings(calls_min=1)
    worker, leases = crowd.run(types=2 * CIRCUITS_MAX, each=1)
    reports = [
        (report, failed(FailureClass.DEPENDENCY, b'{"dependency":"d%d"}' % number))
        for number, (report, _) in enumerate(said(leases, failed(FailureClass.DEPENDENCY)))
    ]
    await receive_failures(crowd.dispatcher, worker, reports)
    assert failure_policy.circuits.count(TenantId(1)) == CIRCUITS_MAX
    assert len(holds_of(failure_policy, TenantId(1))) == CIRCUITS_MAX
    names = [
        name for _, by_name in failure_policy.circuits.of_tenant(TenantId(1)) for name in by_name
    ]
    assert len([name for name in names if name != OTHER]) == NAMED_MAX
    states = [end.decision.state for end in crowd.ends if end.decision is not None]
    parked, tried_again = states[:CIRCUITS_MAX], states[CIRCUITS_MAX:]
    assert {*parked} == {State.QUEUED}
    assert {*tried_again} == {State.SCHEDULED}, "without a circuit: as any other failure"


async def test_who_fails_while_idle_ones_are_forgotten_is_not(crowd: Crowd) -> None:
    failure_policy = crowd.dispatcher.failure_policy
    worker, leases = crowd.run(types=3, each=2)
    broken, away = failed(FailureClass.APP_ERROR), failed(FailureClass.DEPENDENCY, AWAY)
    reports = said(leases[:3], broken) + said(leases[3:5], away)
    await receive_failures(crowd.dispatcher, worker, reports)
    assert failure_policy.watched == {1}
    forgetting = failure_policy.forgetting(crowd.clock.now_us() + FAR_US)
    next(forgetting)
    assert failure_policy.circuits.count(TenantId(1)) == 0
    crowd.clock.advance(FAR_US / 1e6)
    crowd.own(0)
    # parked at once: needs no budget
    failure_policy.circuit_settings = CircuitSettings(calls_min=1)
    await receive_failures(crowd.dispatcher, worker, said(leases[5:], away))
    for _ in forgetting:
        assert failure_policy.watched == {1}
    assert failure_policy.watched == {1}
    assert (failure_policy.circuits.count(TenantId(1)), len(failure_policy.quarantines)) == (1, 0)
    failure_policy.circuits.of_type(TenantId(1), TypeId(3))["stripe"].close()
    for _ in failure_policy.forgetting(crowd.clock.now_us() + FAR_US):
        pass
    assert (failure_policy.circuits.count(TenantId(1)), failure_policy.watched) == (0, set())


async def test_failures_with_long_errors_hold_nobody_up(crowd: Crowd) -> None:
    worker, leases = crowd.run(types=1, each=2000)
    async with longest_stretch() as stretch:
        await receive_failures(
            crowd.dispatcher, worker, said(leases, failed(FailureClass.PERMANENT, LONG))
        )
    assert stretch[0] < 0.1
    assert len(crowd.ends) == 2000


async def test_every_hold_is_in_force_when_the_last_was_heard(crowd: Crowd) -> None:
    worker, leases = crowd.run(types=30, each=10)
    await receive_failures(
        crowd.dispatcher, worker, said(leases, failed(FailureClass.DEPENDENCY, AWAY))
    )
    held = Holds(
        Hold(TenantId(1), TypeId(type_), PoolId(0), "circuit_open") for type_ in range(1, 31)
    )
    assert crowd.dispatcher.backlog.runnable.holds.says_the_same(held)


async def test_holds_are_in_force_whenever_others_have_their_turn(
    crowd: Crowd, rests_after_each: None
) -> None:
    """Nothing of a type whose circuit is open can be granted in between."""
    worker, leases = crowd.run(types=5, each=10)
    hearing = asyncio.create_task(
        receive_failures(
            crowd.dispatcher, worker, said(leases, failed(FailureClass.DEPENDENCY, AWAY))
        )
    )
    turns = 0
    while not hearing.done():
        await asyncio.sleep(0)
        turns += 1
        assert crowd.dispatcher.backlog.runnable.holds.says_the_same(crowd.open_now())
    assert turns > 50
    assert crowd.tellings == 5


async def test_successes_that_close_many_circuits_are_told_once(crowd: Crowd) -> None:
    worker, leases = crowd.run(types=20, each=10)
    await receive_failures(
        crowd.dispatcher, worker, said(leases, failed(FailureClass.DEPENDENCY, AWAY))
    )
    failure_policy = crowd.dispatcher.failure_policy
    for _, by_name in failure_policy.circuits.of_tenant(TenantId(1)):
        for circuit in by_name.values():
            circuit.tick(circuit.probe_at_us)
    crowd.tellings = 0
    failure_policy.succeeded(crowd.job(type=type_) for type_ in range(1, 21) for _ in range(3))
    assert crowd.tellings == 1
    assert not crowd.dispatcher.backlog.runnable.holds


async def test_who_opens_a_circuit_is_given_no_more_of_it(
    platform: Platform, tenant: Tenant
) -> None:
    """Its call is answered at once after its reports were heard."""
    await submit(platform, tenant, *[new("pay")] * 60)
    hand = Hand(platform, types=("pay",), short=20)
    leases = await hand.take(20)
    away = failed(FailureClass.DEPENDENCY, AWAY)
    news = await hand.say(reports=[hand.done(lease, away) for lease in leases])
    assert news is not None
    assert news.leases == []


# -- what changes between two parts --------------------------------------------------------------


async def test_a_session_that_ends_meanwhile_does_no_harm(
    crowd: Crowd, rests_after_each: None
) -> None:
    worker, leases = crowd.run(types=1, each=20)
    reports = said(leases, failed(FailureClass.APP_ERROR))
    hearing = asyncio.create_task(receive_failures(crowd.dispatcher, worker, reports))
    await asyncio.sleep(0)
    crowd.dispatcher.end_session(worker)
    again = crowd.worker()  # the same process says hello again
    assert await hearing == [], "nobody hears of it: its worker says hello first"
    assert [end.number for end in crowd.ends] == [1] + [None] * 19
    assert {end.lease.job.id for end in crowd.ends} == {lease.job.id for lease in leases}
    assert (again.recording, again.recorded, again.refused) == (set(), [], [])


async def test_a_lease_that_was_lost_meanwhile_is_not_ended_twice(
    crowd: Crowd, rests_after_each: None
) -> None:
    worker, leases = crowd.run(types=1, each=5)
    reports = said(leases, failed(FailureClass.APP_ERROR))
    hearing = asyncio.create_task(receive_failures(crowd.dispatcher, worker, reports))
    await asyncio.sleep(0)
    crowd.dispatcher.lost([leases[3]])
    assert await hearing == [reports[3][0]], "the store judges it"
    assert [end.number for end in crowd.ends] == [1, None, 2, 3, 5]


async def test_what_two_calls_say_counts_once(crowd: Crowd, rests_after_each: None) -> None:
    """A hello may bring the same reports while the call that it overtook is still heard."""
    worker, leases = crowd.run(types=1, each=10)
    reports = said(leases, failed(FailureClass.APP_ERROR))
    answers = await asyncio.gather(
        receive_failures(crowd.dispatcher, worker, reports),
        receive_failures(crowd.dispatcher, worker, reports),
    )
    assert not any(answers)
    assert sorted(end.number or 0 for end in crowd.ends) == list(range(1, 11))


async def test_a_worker_that_hangs_up_is_blamed_for_what_it_said(
    crowd: Crowd, rests_after_each: None
) -> None:
    worker, leases = crowd.run(types=1, each=20)
    reports = said(leases, failed(FailureClass.WORKER_CRASH))
    hearing = asyncio.create_task(receive_failures(crowd.dispatcher, worker, reports))
    await asyncio.sleep(0)
    hearing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hearing
    assert len(crowd.ends) == 1
    assert (1, SHORT) in crowd.dispatcher.failure_policy.crash_throttles
