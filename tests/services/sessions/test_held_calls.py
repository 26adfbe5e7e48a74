"""Held calls: an arrival finds its worker without a look at everybody, and the same one as before.

Who goes first: sessions that are warm for a job, then all; among each, whose call is held longest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.services.dispatch.test_dispatcher import MEDIUM, SHORT, Machine
from tests.steps import lines_of

from fairway.core.fair_share.entitlements import FREE
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.session_table import TENANTS_SESSIONS_MAX
from fairway.services.sessions.sessions import End, Session

METRICS = Metrics()


@pytest.fixture
def machine() -> Machine:
    return Machine()


# -- how much is looked at -------------------------------------------------------------------------


def hold(machine: Machine, count: int, **worker: Any) -> list[Session]:
    held = [machine.worker(f"{worker}{number}", **worker) for number in range(count)]
    for session in held:
        machine.dispatcher.hold_open(session)
    return held


def idle(machine: Machine, count: int) -> None:
    hold(machine, count, short=2)


def of_other_types(machine: Machine, count: int) -> None:
    hold(machine, count, types=(2, 3), short=2)
    hold(machine, 1, short=2)


def busy(machine: Machine, count: int) -> None:
    held = hold(machine, count, short=1)
    for session in held:
        machine.arrive(machine.job())
        assert machine.dispatcher.news(session).leases
    hold(machine, 1, short=2)


def of_other_tenants(machine: Machine, count: int) -> None:
    for number in range(count):
        hold(machine, 1, tenant=10 + number, short=2)
    hold(machine, 1, short=2)


def of_another_pool(machine: Machine, count: int) -> None:
    hold(machine, count, medium=2)
    hold(machine, 1, short=2)


@pytest.mark.parametrize("others", [idle, of_other_types, busy, of_other_tenants, of_another_pool])
def test_an_arrival_costs_the_same_whoever_else_waits(
    others: Callable[[Machine, int], None],
) -> None:
    def cost(count: int) -> int:
        machine = Machine()
        others(machine, count)
        machine.clock.advance(1)
        machine.arrive(machine.job())  # what those who came have caused is done with this one
        machine.clock.advance(0.01)
        job = machine.job()
        lines = lines_of(lambda: machine.arrive(job))
        assert machine.dispatcher.leases[job.id].session.outbox
        return lines

    assert TENANTS_SESSIONS_MAX == 5_000
    assert cost(5_000) <= 1.5 * cost(10)


def test_calls_that_come_and_go_leave_nothing_behind() -> None:
    machine = Machine()
    sessions = [machine.worker("a"), machine.worker("b"), machine.worker("own", tenant=TenantId(7))]
    machine.dispatcher.hold_open(sessions[0])
    for _ in range(1_000):
        for session in sessions[1:]:
            machine.dispatcher.hold_open(session)
            machine.dispatcher.let_go(session)
    held = machine.dispatcher.sessions.held
    lines = held.lines(SHORT)
    assert len(lines) == 2
    assert max(len(line._calls) for line in lines) < 50
    for session in sessions:
        machine.dispatcher.end_session(session)
    assert held.lines(SHORT) == []
    assert held.own == {}
    assert not held._calls


def test_a_call_of_a_session_that_has_ended_stands_in_no_line() -> None:
    """It ended while its call was heard: nobody would take it out of its line again."""
    machine = Machine()
    session = machine.worker("a")
    machine.dispatcher.end_session(session)
    machine.dispatcher.hold_open(session)
    held = machine.dispatcher.sessions.held
    assert held.lines(SHORT) == []
    assert not held._calls


# -- the same as a walk over everybody -------------------------------------------------------------


class PlainWalk(Dispatcher):
    """The model: every session whose call is held, one after the other."""

    def __init__(self, *given: Any, **parts: Any) -> None:
        super().__init__(*given, **parts)
        self.waiting: dict[str, Session] = {}
        self._granting.__dict__["_serve_waiting"] = self._serve_waiting

    def hold_open(self, session: Session) -> None:
        self.waiting[session.key] = session

    def let_go(self, session: Session) -> None:
        self.waiting.pop(session.key, None)

    def drop_session(self, session: Session) -> None:
        self.waiting.pop(session.key, None)
        super().drop_session(session)

    def _serve_waiting(self, pool: int, now_us: int) -> None:
        waiting = list(self.waiting.values())
        for session in waiting:
            if session.warm_types and session.free(PoolId(pool)) > 0:
                self._granting._serve(session, PoolId(pool), now_us, session.warm_types)
        for session in waiting:
            if session.free(PoolId(pool)) > 0:
                self._granting._serve(session, PoolId(pool), now_us)


@dataclass
class World:
    """One dispatcher, and what happens to it; two of them must stay alike."""

    kind: type[Dispatcher]
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine(self.kind, METRICS)

    def session(self, number: int) -> Session | None:
        return self.machine.dispatcher.sessions.get(str(number))

    def greet(
        self, number: int, tenant: TenantId | None, types: frozenset[TypeId], warm: int, slots: int
    ) -> None:
        session = self.machine.dispatcher.session(str(number), "w", tenant)
        session.noted()
        session.types, session.warm_types = types, types & {warm}
        self.machine.dispatcher.equip(session, {SHORT: slots, MEDIUM: number % 2})
        self.call(number, held=True, draining=False)

    def call(self, number: int, *, held: bool, draining: bool) -> None:
        if (session := self.session(number)) is not None:
            session.draining = draining
            self.machine.dispatcher.serve(session)
            self.machine.dispatcher.news(session)
            if held:
                session.poll = asyncio.get_running_loop().create_future()
                self.machine.dispatcher.hold_open(session)

    def over(self, number: int) -> None:
        if (session := self.session(number)) is not None:
            self.machine.dispatcher.let_go(session)

    def goodbye(self, number: int) -> None:
        if (session := self.session(number)) is not None:
            self.machine.dispatcher.end_session(session)

    def arrive(self, tenants: Sequence[int], type_id: int, pool: int, timeout_ms: int) -> None:
        make = self.machine.job
        limit_ms = timeout_ms or None
        self.machine.arrive(
            *[make(tenant=one, type=type_id, pool=pool, timeout_ms=limit_ms) for one in tenants]
        )

    def end(self, place: int) -> None:
        if leases := list(self.machine.dispatcher.leases.values()):
            self.machine.dispatcher.succeeded([End(leases[place % len(leases)], 1, 1, b"1")])

    def report(self, place: int) -> None:
        if leases := list(self.machine.dispatcher.leases.values()):
            self.machine.dispatcher.reported(leases[place % len(leases)])

    def write(self, *, is_free: bool) -> None:
        dispatcher = self.machine.dispatcher
        for lease in self.machine.to_write:
            (dispatcher.written if is_free else dispatcher.not_written)(lease)
        self.machine.to_write.clear()

    def agree(self, tenant: Tenant) -> None:
        self.machine.dispatcher.set_entitlement(tenant)

    def trust(self, *, is_given: bool) -> None:
        later_us = round(1e9) if is_given else 0
        self.machine.dispatcher.trust_until(self.machine.clock.now_us() + later_us)

    def pass_time(self, seconds: float) -> None:
        self.machine.clock.advance(seconds)

    def picture(self) -> dict[str, tuple[list[str], list[str]]]:
        return {
            key: ([one.job.id for one in session.outbox], list(session.leases))
            for key, session in self.machine.dispatcher.sessions.items()
        }


NUMBERS = st.integers(0, 7)
TENANTS = st.sampled_from([1, 1, 2, 3, 4])
TYPES = st.sampled_from([1, 1, 2, 3])
TERMS = st.builds(
    Tenant,
    TENANTS,
    st.just("t"),
    st.sampled_from([1, 10]),
    st.just(1000),
    fair_group=st.sampled_from([FREE, ""]),
    floor_share=st.sampled_from([0, 200]),
    cap=st.sampled_from([None, 1, 3]),
    reserved=st.sampled_from([(), (), (("short", 2),)]),
    shard=st.none(),
    moving_to=st.none(),
    moved_from=st.just(()),
)


def step(name: str, *values: Any, **named: Any) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(name), st.tuples(*values), st.fixed_dictionaries(named))


GREET = step(
    "greet", NUMBERS, st.sampled_from([None, None, None, 1, 1, 2]),
    st.sampled_from([frozenset({1}), frozenset({1, 2})]), st.sampled_from([0, 0, 1, 2]),
    st.sampled_from([0, 1, 1, 2, 2, 5]),
)  # fmt: skip
ARRIVE = step(
    "arrive", st.lists(TENANTS, min_size=1, max_size=6), TYPES, st.sampled_from([SHORT, MEDIUM]),
    st.sampled_from([0, 1000]),
)  # fmt: skip
STEPS = st.one_of(
    GREET,
    GREET,
    ARRIVE,
    ARRIVE,
    ARRIVE,
    step("call", NUMBERS, held=st.booleans(), draining=st.sampled_from([False, False, True])),
    step("over", NUMBERS),
    step("goodbye", NUMBERS),
    step("end", st.integers(0, 20)),
    step("end", st.integers(0, 20)),
    step("report", st.integers(0, 20)),
    step("write", is_free=st.booleans()),
    step("agree", TERMS),
    step("trust", is_given=st.sampled_from([True, True, False])),
    step("pass_time", st.sampled_from([0.1, 2.0, 70.0])),
)


@settings(max_examples=100)
@given(st.lists(GREET, min_size=8, max_size=8), st.lists(STEPS, min_size=30, max_size=60))
def test_each_job_goes_where_a_walk_over_everybody_would_take_it(
    first: list[Any], steps: list[Any]
) -> None:
    async def both() -> None:  # in a loop, for calls are answered a moment later
        held, plain = World(Dispatcher), World(PlainWalk)
        for name, values, named in first + steps:
            for world in (held, plain):
                getattr(world, name)(*values, **named)
                world.pass_time(0.01)
            assert held.picture() == plain.picture(), name
            _assert_rung(held)

    asyncio.run(both())


def _assert_rung(world: World) -> None:
    """Whoever was given something while its call is held is about to hear of it."""
    for session in world.machine.dispatcher.sessions.values():
        if session.held is not None and session.held.is_held and session.outbox:
            assert session.poll is not None
            assert session.poll.done() or session.wake_due


def test_of_two_that_wait_alike_the_longer_held_call_is_answered() -> None:
    machine = Machine()
    late, early = machine.worker("a", short=1), machine.worker("b", short=1)
    for session in (early, late):
        machine.dispatcher.hold_open(session)
    machine.arrive(machine.job())
    assert (len(early.outbox), len(late.outbox)) == (1, 0)


def test_a_slot_that_comes_free_keeps_the_place_of_its_call() -> None:
    machine = Machine()
    first, second = machine.worker("a", short=1), machine.worker("b", short=1)
    for session in (first, second):
        machine.dispatcher.hold_open(session)
    machine.arrive(machine.job())
    (lease,) = machine.dispatcher.news(first).leases
    machine.dispatcher.succeeded([End(lease, 1, 1, b"1")])
    machine.clock.advance(1)
    machine.arrive(machine.job())
    assert (len(first.outbox), len(second.outbox)) == (1, 0)


# -- a tenant's own worker is looked at again, whoever the next job is of ------------------------


def capped(tenant: int, cap: int) -> Tenant:
    return Tenant(TenantId(tenant), "t", 10, 1000, cap=cap)


def at_its_cap(machine: Machine) -> tuple[Session, Session]:
    """A shared worker that runs a job of tenant 7, and one of its own that may run no other."""
    machine.dispatcher.set_entitlement(capped(7, 1))
    shared, own = (
        machine.worker("shared", short=1),
        machine.worker("own", tenant=TenantId(7), short=1),
    )
    for session in (shared, own):
        machine.dispatcher.hold_open(session)
    machine.arrive(machine.job(tenant=7), machine.job(tenant=7))
    machine.dispatcher.let_go(shared)
    assert (len(shared.outbox), own.outbox) == (1, [])
    return shared, own


def test_when_a_run_of_its_tenant_ends_elsewhere(machine: Machine) -> None:
    shared, own = at_its_cap(machine)
    machine.dispatcher.succeeded([End(shared.outbox[0], 1, 1, b"1")])
    machine.arrive(machine.job(tenant=8))
    assert len(own.outbox) == 1


def test_when_its_tenant_may_run_more(machine: Machine) -> None:
    _, own = at_its_cap(machine)
    machine.dispatcher.set_entitlement(capped(7, 2))
    machine.arrive(machine.job(tenant=8))
    assert len(own.outbox) == 1


def test_when_it_came_while_the_term_was_in_doubt(machine: Machine) -> None:
    machine.worker("shared", short=0)  # somebody runs what the other tenant brings
    machine.dispatcher.trust_until(0)
    machine.arrive(machine.job(tenant=7))
    own = machine.worker("own", tenant=TenantId(7))
    assert machine.take(own) == []
    machine.dispatcher.hold_open(own)
    machine.own(0)
    machine.arrive(machine.job(tenant=8))
    assert len(own.outbox) == 1


def test_when_a_worker_takes_jobs_again(machine: Machine) -> None:
    worker = machine.worker(short=2)
    machine.dispatcher.hold_open(worker)
    worker.draining = True
    machine.arrive(machine.job())
    worker.draining = False
    assert len(machine.take(worker)) == 1
    machine.arrive(machine.job())
    assert len(worker.outbox) == 1


def test_when_its_job_came_while_the_term_was_in_doubt(machine: Machine) -> None:
    machine.worker("shared", short=0)  # somebody runs what the other tenant brings
    own = machine.worker("own", tenant=TenantId(7))
    machine.dispatcher.hold_open(own)
    machine.arrive(machine.job(tenant=8))
    machine.dispatcher.trust_until(0)
    machine.arrive(machine.job(tenant=7))
    machine.own(0)
    machine.arrive(machine.job(tenant=8))
    assert len(own.outbox) == 1


def test_beside_a_dead_workers_jobs_one_with_more_slots_is_asked_as_well(machine: Machine) -> None:
    """What the first lacks is then not what the second would: it depends on what it offers."""
    dead = machine.worker("dead", short=3)
    machine.arrive(*[machine.job() for _ in range(3)])
    assert len(machine.take(dead)) == 3
    machine.dispatcher.set_entitlement(Tenant(TenantId(9), "t", 10, 1000, reserved=(("short", 1),)))
    narrow, wide = machine.worker("narrow", short=1), machine.worker("wide", short=2)
    for session in (narrow, wide):
        machine.dispatcher.hold_open(session)
    machine.dispatcher.sessions.headcount.forget(dead.key)
    machine.dispatcher.recount()
    machine.arrive(machine.job())
    assert (len(narrow.outbox), len(wide.outbox)) == (0, 1)
