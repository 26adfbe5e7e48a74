"""The autoscaler's policy: its laws as properties, and the rules of the pools as examples."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.autoscale.facts import (
    Override,
    PoolFacts,
    ScaleDecision,
    ScaleMemory,
    ScaleSettings,
    WorkerLoad,
)
from fairway.core.autoscale.policy import decide
from fairway.core.autoscale.rules import ScaleRules, rules_of
from fairway.core.pools import LONG, MEDIUM, SHORT

NOW_MS = 1_800_000_000_000
RULES = {pool.name: rules_of(pool) for pool in (SHORT, MEDIUM, LONG)}
ON = ScaleSettings(mode="on", minimum_workers=1, maximum_workers=20)

rules = st.sampled_from(sorted(RULES)).map(RULES.__getitem__)
counts = st.integers(0, 60)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[PoolFacts, ScaleSettings, ScaleMemory]:
    """A pool as it may be found, whatever came before."""
    loads = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 4_000_000), st.booleans()), max_size=12
        )
    )
    spare = tuple(
        WorkerLoad(f"w{number}", busy, 0 if busy else idle_ms, is_closed)
        for number, (busy, idle_ms, is_closed) in enumerate(loads)
    )
    slots = 2 * len(spare)
    facts = PoolFacts(
        workers=len(spare),
        slots=slots,
        busy_slots=sum(one.busy for one in spare),
        backlog_jobs=(jobs := draw(st.just(0) | counts)),
        backlog_slot_seconds=jobs * draw(st.integers(0, 100)),
        oldest_runnable_age_seconds=draw(st.sampled_from([0.1, 3.0, 9.0, 90.0])) if jobs else 0.0,
        spare=spare,
        slots_of_new_worker=2,
    )
    least = draw(st.integers(0, 4))
    is_overridden = draw(st.sampled_from([False, False, True]))
    override = Override(draw(st.integers(0, 15)), NOW_MS + 1, "ops") if is_overridden else None
    settings = ScaleSettings(
        mode=draw(st.sampled_from(["on", "on", "dry_run"])),
        minimum_workers=least,
        maximum_workers=draw(st.integers(max(least, 1), 40)),
        override=override,
    )
    names = draw(st.permutations([one.name for one in spare]))
    cut = draw(st.integers(0, len(names)))
    ago = st.sampled_from([None, NOW_MS - 10_000, NOW_MS - 5_000_000])
    memory = ScaleMemory(
        wanted=draw(st.integers(0, len(spare) + 3)),
        seen_ms=draw(st.none() | st.just(NOW_MS - 2000)),
        fast_slots=draw(st.integers(0, 16)) / 2,
        slow_slots=draw(st.integers(0, 16)) / 2,
        quiet_since_ms=draw(st.none() | st.just(NOW_MS - 4_000_000)),
        raised_ms=draw(ago),
        lowered_ms=draw(ago),
        closing=tuple(names[:cut]),
        leaving=tuple(one for one in names[cut:] if not _busy(spare, one))[:2],
    )
    return facts, settings, memory


def _busy(spare: tuple[WorkerLoad, ...], name: str) -> int:
    return next(one.busy for one in spare if one.name == name)


@tried(120)
@given(worlds(), rules)
def test_it_stays_between_minimum_and_maximum(
    world: tuple[PoolFacts, ScaleSettings, ScaleMemory], rules: ScaleRules
) -> None:
    facts, settings, memory = world
    wanted = decide(facts, settings, rules, memory, NOW_MS).wanted
    assert wanted <= max(settings.maximum_workers, memory.wanted)
    least = settings.minimum_workers
    if (override := settings.override) is not None:
        least = min(least, override.workers)
    assert wanted >= min(least, memory.wanted)


@tried(120)
@given(worlds(), rules)
def test_nobody_who_is_busy_is_let_go(
    world: tuple[PoolFacts, ScaleSettings, ScaleMemory], rules: ScaleRules
) -> None:
    facts, settings, memory = world
    decision = decide(facts, settings, rules, memory, NOW_MS)
    was_leaving = set(memory.leaving)
    for name in set(decision.may_go) - was_leaving:
        one = next(one for one in facts.spare if one.name == name)
        assert not one.busy
        assert one.is_closed, "it could be given a job before it ends"
    assert set(decision.may_go) <= set(decision.closed)
    if settings.mode == "on" and facts.workers - len(was_leaving) >= memory.wanted:
        gone = max(memory.wanted - decision.wanted, 0)
        assert gone <= len(set(decision.may_go) - was_leaving), "the rest would be busy ones"


@tried(120)
@given(worlds(), rules, counts, st.floats(0, 10_000))
def test_more_backlog_never_wants_fewer_workers(
    world: tuple[PoolFacts, ScaleSettings, ScaleMemory],
    rules: ScaleRules,
    jobs: int,
    slot_seconds: float,
) -> None:
    facts, settings, memory = world
    more = replace(
        facts,
        backlog_jobs=facts.backlog_jobs + jobs,
        backlog_slot_seconds=facts.backlog_slot_seconds + slot_seconds,
    )
    least = decide(facts, settings, rules, memory, NOW_MS).wanted
    assert decide(more, settings, rules, memory, NOW_MS).wanted >= least


@tried(120)
@given(worlds(), rules)
def test_what_cannot_run_wants_no_workers(
    world: tuple[PoolFacts, ScaleSettings, ScaleMemory], rules: ScaleRules
) -> None:
    """Capped, paused or parked jobs are in no number of the facts; with nothing that could run
    and a flow that fits, nothing goes up, however many wait."""
    facts, settings, memory = world
    facts = replace(
        facts, backlog_jobs=0, backlog_slot_seconds=0.0, oldest_runnable_age_seconds=0.0
    )
    settings = replace(settings, override=None)
    wanted = max(memory.wanted, settings.minimum_workers)
    flow = 0.7 * wanted * facts.slots_per_worker
    memory = replace(memory, fast_slots=flow, seen_ms=NOW_MS)
    assert decide(facts, settings, rules, memory, NOW_MS).wanted <= wanted


@tried(6)
@given(
    st.sampled_from(["short", "medium"]),
    st.integers(0, 40),
    st.integers(1, 8),
    st.integers(1, 12),
)
def test_a_constant_load_does_not_make_it_swing(
    pool: str, load: int, slots: int, workers: int
) -> None:
    """Up to what the load needs, perhaps beyond for what has gathered, then down once; then it
    stands still."""
    fleet = _Fleet(RULES[pool], slots, workers)
    turns = fleet.live(load, seconds=3 * 3600)
    directions = [one > 0 for one in turns]
    swings = sum(a != b for a, b in pairwise(directions))
    assert swings <= 2, turns
    assert not fleet.live(load, seconds=3600)
    assert fleet.decision.wanted * slots >= load or fleet.decision.short_of


class _Fleet:
    """Workers that come when they are wanted and go when they may, under a load of slots."""

    def __init__(self, rules: ScaleRules, slots: int, workers: int) -> None:
        self.rules, self.slots = rules, slots
        self.names = [f"w{number}" for number in range(workers)]
        self.settings = replace(ON, maximum_workers=400)
        self.waiting, self.now_ms, self.made = 0.0, NOW_MS, workers
        memory = ScaleMemory(wanted=workers)
        self.decision = ScaleDecision(workers, None, "", (), (), 0, memory)

    def live(self, load: int, seconds: int, step: int = 8) -> list[int]:
        """By how much it changed its mind, each time."""
        turns = []
        for _ in range(0, seconds, step):
            self.now_ms += step * 1000
            before = self.decision.wanted
            facts = self._facts(load, step)
            self.decision = decide(
                facts, self.settings, self.rules, self.decision.memory, self.now_ms
            )
            if self.decision.wanted != before:
                turns.append(self.decision.wanted - before)
            self._act()
        return turns

    def _facts(self, load: int, step: int) -> PoolFacts:
        closed = set(self.decision.closed)
        room = self.slots * sum(name not in closed for name in self.names)
        self.waiting = max(self.waiting + (load - room) * step, 0.0)
        busy = room if self.waiting else min(load, room)
        spare = []
        for name in self.names:  # spread evenly: nobody is idle while there is work for all
            share = 0 if name in closed or not room else -(-busy * self.slots // room)
            spare.append(WorkerLoad(name, share, 0 if share else 1000, name in closed))
        return PoolFacts(
            workers=len(self.names),
            slots=self.slots * len(self.names),
            busy_slots=busy,
            backlog_jobs=round(self.waiting),
            backlog_slot_seconds=self.waiting,
            oldest_runnable_age_seconds=self.waiting / max(room, 1),
            spare=tuple(spare),
            slots_of_new_worker=self.slots,
        )

    def _act(self) -> None:
        gone = set(self.decision.may_go)
        self.names = [name for name in self.names if name not in gone]
        while len(self.names) < self.decision.wanted:
            self.names.append(f"w{self.made}")
            self.made += 1


def _facts(workers: int = 2, busy: int = 0, **known: float) -> PoolFacts:
    spare = tuple(WorkerLoad(f"w{n}", 4 if n < busy else 0, 0, False) for n in range(workers))
    return PoolFacts(
        workers=workers,
        slots=4 * workers,
        busy_slots=4 * busy,
        spare=spare,
        **known,  # type: ignore[arg-type]
    )


LATE = {"backlog_jobs": 10, "backlog_slot_seconds": 10.0, "oldest_runnable_age_seconds": 5.1}


def test_a_job_that_waited_5_seconds_wants_one_more() -> None:
    facts = _facts(2, 2, **LATE)
    decision = decide(facts, ON, RULES["medium"], ScaleMemory(wanted=2), NOW_MS)
    assert decision.wanted >= 3
    assert decision.code == "OLDEST_AGE"
    assert "5.1 s" in decision.reason


@pytest.mark.parametrize(("age", "wanted"), [(59.0, 2), (61.0, 5)])
def test_long_jobs_want_more_after_a_minute(age: float, wanted: int) -> None:
    facts = _facts(
        2, 2, backlog_jobs=10, backlog_slot_seconds=36_000.0, oldest_runnable_age_seconds=age
    )
    decision = decide(facts, ON, RULES["long"], ScaleMemory(wanted=2), NOW_MS)
    assert decision.wanted == wanted  # a slot a job at most, however long they run


def test_long_workers_go_after_half_an_hour_of_nothing() -> None:
    idle = (WorkerLoad("a", 1), WorkerLoad("b", 0, 1_799_000), WorkerLoad("c", 0, 1_800_000))
    facts = PoolFacts(workers=3, slots=3, busy_slots=1, spare=idle)
    first = decide(facts, ON, RULES["long"], ScaleMemory(wanted=3), NOW_MS)
    assert (first.wanted, first.closed, first.may_go) == (3, ("c",), ())
    closed = replace(facts, spare=(*idle[:2], idle[2]._replace(is_closed=True)))
    second = decide(closed, ON, RULES["long"], first.memory, NOW_MS + 4000)
    assert (second.wanted, second.code, second.may_go) == (2, "IDLE", ("c",))


def test_a_closed_worker_is_opened_again_when_it_is_needed() -> None:
    memory = ScaleMemory(wanted=2, closing=("w0",))
    decision = decide(_facts(2, 2, **LATE), ON, RULES["short"], memory, NOW_MS)
    assert decision.closed == ()


def test_at_its_maximum_it_says_how_many_are_missing() -> None:
    at_most = replace(ON, maximum_workers=2)
    facts = _facts(2, 2, **LATE)
    decision = decide(facts, at_most, RULES["short"], ScaleMemory(wanted=2), NOW_MS)
    assert (decision.wanted, decision.code) == (2, None)
    assert decision.short_of >= 1


def test_an_override_ends() -> None:
    settings = replace(ON, override=Override(9, NOW_MS + 1000, "ops"))
    first = decide(_facts(), settings, RULES["short"], ScaleMemory(wanted=2), NOW_MS)
    assert (first.wanted, first.code) == (9, "OVERRIDE")
    later = decide(_facts(9), settings, RULES["short"], first.memory, NOW_MS + 2000)
    assert later.wanted == 9  # and goes down with the usual patience
    assert not later.closed


def test_workers_that_died_are_still_wanted() -> None:
    facts = _facts(1, 1)
    memory = ScaleMemory(wanted=3, fast_slots=8.0, slow_slots=8.0)
    assert decide(facts, ON, RULES["short"], memory, NOW_MS).wanted == 3


def test_workers_that_have_yet_to_greet_a_new_owner_are_still_wanted() -> None:
    """Of ten that are busy three have said hello so far; a minute later the others are gone."""
    settings, memory = replace(ON, maximum_workers=20), ScaleMemory(wanted=10)
    wanted = []
    for now_ms in range(NOW_MS, NOW_MS + 62_000, 2_000):
        decision = decide(_facts(3, 3), settings, RULES["long"], memory, now_ms)
        memory = decision.memory
        wanted.append(decision.wanted)
    assert set(wanted[:-1]) == {10}
    assert wanted[-1] < 10
