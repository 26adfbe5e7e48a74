"""Flows: what follows for those that wait, whatever the order in which members end."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.flows import (
    FlowTally,
    Kind,
    MemberSeen,
    Needs,
    Step,
    changes_of,
    label_of,
    member_ids,
    members_before,
    step_of,
    with_argument,
)
from fairway.core.flows import tally_of as tally_of_states
from fairway.core.ids import JobId, ShardId, TenantId, make_job_id
from fairway.core.lifecycle import FINAL, LIVE, State

TENANT = TenantId(1)
states = st.sampled_from(list(State))


def tally_of(ends: list[State]) -> FlowTally:
    return FlowTally(
        len(ends),
        ends.count(State.SUCCEEDED),
        ends.count(State.DEAD),
        ends.count(State.CANCELLED) + ends.count(State.EXPIRED),
    )


@given(st.lists(states, max_size=6))
def test_a_tally_is_of_the_states_of_members(ends: list[State]) -> None:
    assert tally_of_states([state.value for state in ends]) == tally_of(ends)


@given(st.lists(states, min_size=1, max_size=6), st.booleans())
def test_who_needs_all_to_end_starts_exactly_then(ends: list[State], is_open: bool) -> None:
    has_all = not is_open and set(ends) <= FINAL
    step = step_of(Needs.ENDED, tally_of(ends), is_open=is_open)
    assert step is (Step.RELEASE if has_all else Step.WAIT)


@given(st.lists(states, min_size=1, max_size=6), st.booleans())
def test_who_needs_successes_gives_up_only_what_cannot_come(
    ends: list[State], is_open: bool
) -> None:
    step = step_of(Needs.SUCCEEDED, tally_of(ends), is_open=is_open)
    if {State.CANCELLED, State.EXPIRED} & set(ends):
        assert step is Step.GIVE_UP
    elif set(ends) == {State.SUCCEEDED} and not is_open:
        assert step is Step.RELEASE
    else:  # one is under way, or dead and may be replayed
        assert step is Step.WAIT


@given(st.lists(st.lists(states, min_size=2, max_size=8), min_size=1, max_size=6))
def test_counters_follow_members_wherever_they_go(ways: list[list[State]]) -> None:
    """Summed over any moves, they are what one would count at the end."""
    totals = [tally_of([way[0]]) for way in ways]
    sums = [sum(one[n] for one in totals) for n in range(1, 4)]
    for step in range(1, max(map(len, ways))):
        moves = [
            (JobId(str(n)), MemberSeen(TENANT, way[step - 1], ("F",)), way[step])
            for n, way in enumerate(ways)
            if step < len(way)
        ]
        for change in changes_of(moves).values():
            sums = [one + more for one, more in zip(sums, change[:3], strict=True)]
    assert tuple(sums) == tally_of([way[-1] for way in ways])[1:]


@given(st.sampled_from(sorted(LIVE)), st.sampled_from(sorted(LIVE)))
def test_a_move_that_ends_nothing_touches_no_flow(before: State, after: State) -> None:
    assert changes_of([(JobId("j"), MemberSeen(TENANT, before, ("F", "G")), after)]) == {}


def test_an_end_is_counted_in_each_flow_of_its_job() -> None:
    found = changes_of([(JobId("j"), MemberSeen(TENANT, State.RUNNING, ("F", "G")), State.DEAD)])
    assert {flow for _, flow in found} == {"F", "G"}
    assert {(one.failed, one.example) for one in found.values()} == {(1, "j")}


def test_the_state_that_people_see() -> None:
    assert label_of(Kind.GROUP, FlowTally(3, 1, 1), is_open=False) == "running"
    assert label_of(Kind.GROUP, FlowTally(3, 3), is_open=True) == "running"
    assert label_of(Kind.GROUP, FlowTally(3, 3), is_open=False) == "succeeded"
    assert label_of(Kind.GROUP, FlowTally(3, 2, 1), is_open=False) == "failed"
    assert label_of(Kind.GROUP, FlowTally(3, 2, 0, 1), is_open=False) == "cancelled"
    assert label_of(Kind.CHAIN, FlowTally(3, 1, 1), is_open=False) == "failed"  # the third waits


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
values = st.recursive(st.none() | st.integers() | names, lambda v: st.lists(v, max_size=3))


@given(st.dictionaries(names, values, max_size=3), names, values, st.sampled_from([None, 1]))
def test_a_result_becomes_an_argument_among_the_others(
    payload: dict[str, object], name: str, value: object, indent: int | None
) -> None:
    payload.pop(name, None)
    text = json.dumps(payload, indent=indent).encode()
    found = json.loads(with_argument(text, name, json.dumps(value).encode()))
    assert found == {name: value, **payload}


@given(st.integers(0, 500), st.integers(0, 500))
def test_members_are_the_same_in_pages_as_at_once(first: int, second: int) -> None:
    flow = make_job_id(ShardId(3), 1_800_000_000_000, 7, 99)
    pages = member_ids(flow, first) + member_ids(flow, second, first)
    assert pages == member_ids(flow, first + second)
    assert len(set(pages)) == len(pages)


@given(st.integers(0, 50), st.integers(0, 60), st.booleans())
def test_members_before_a_job_are_those_with_lower_ids(
    count: int, place: int, is_of_flow: bool
) -> None:
    flow = make_job_id(ShardId(3), 1_700_000_000_000, 5, 7)
    job = member_ids(flow, 1, place)[0] if is_of_flow else flow
    lower = [one for one in member_ids(flow, count) if one < job]
    assert members_before(flow, count, job) == len(lower)
