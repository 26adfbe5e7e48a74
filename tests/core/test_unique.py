"""Unique jobs: of a group that claims the same, one is written and the others learn which."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import FIRST_SHARD, JobId, TenantId, make_job_id
from fairway.core.lifecycle import State
from fairway.core.unique import (
    WHILE_LIVE,
    Held,
    Holder,
    UniqueClaim,
    Waits,
    Why,
    capped_ms,
    digest_of,
    first_claims,
    judged,
    settle,
    states_of,
)

NOW_MS = 1_800_000_000_000
KEYS = "abc"
#: tenant, key, whether it replaces
WANTED = st.lists(st.tuples(st.integers(1, 2), st.sampled_from(KEYS), st.booleans()), max_size=12)
#: of the first tenant's keys: whether it counts, and what keeps it
HELD = st.dictionaries(
    st.sampled_from(KEYS), st.tuples(st.booleans(), st.sampled_from([None, Why.RUNS, Why.IN_FLOW]))
)


def job_id(number: int, unix_ms: int = NOW_MS) -> JobId:
    return make_job_id(FIRST_SHARD, unix_ms + number, number, 0)


@given(WANTED, HELD)
def test_a_group_is_settled_as_if_each_came_alone(
    wanted: list[tuple[int, str, bool]], held: dict[str, tuple[bool, Why | None]]
) -> None:
    claims = [
        UniqueClaim(TenantId(tenant), digest_of(key), job_id(n), WHILE_LIVE, 1000, replaces)
        for n, (tenant, key, replaces) in enumerate(wanted)
    ]
    before = {
        (TenantId(1), digest_of(key)): Holder(job_id(0, NOW_MS - 1000 - n), counts, blocks, n)
        for n, (key, (counts, blocks)) in enumerate(sorted(held.items()))
    }
    settled = settle(claims, before)
    live = {name: holder.job for name, holder in before.items() if holder.counts}
    stays = {name for name, holder in before.items() if holder.counts and holder.blocks}
    for claim in claims:
        there = live.get(claim.name)
        if there is not None and (not claim.replaces or claim.name in stays):
            why = before[claim.name].blocks if claim.replaces else Why.COUNTS
            assert settled.lost[claim.job] == (why, there)
            continue
        assert claim.job not in settled.lost
        assert there is None or settled.replaced[there] == claim.job
        live[claim.name] = claim.job
    ours = {claim.job for claim in claims}
    assert {name: claim.job for name, claim in settled.holders.items()} == {
        name: job for name, job in live.items() if job in ours
    }
    written = ours - set(settled.lost)
    assert len(written - set(settled.replaced)) == len(settled.holders)  # one of each is left
    assert set(first_claims(claims)) == {claim.name for claim in claims}


@given(st.integers(1, 9), st.integers(1, 5))
def test_a_series_remembers_when_it_began(count: int, gap_ms: int) -> None:
    claims = [
        UniqueClaim(TenantId(1), digest_of("k"), job_id(n * gap_ms), WHILE_LIVE, 1000, True)
        for n in range(count)
    ]
    assert settle(claims, {}).since_ms == {claim.job: NOW_MS for claim in claims[1:]}
    dues = [capped_ms(NOW_MS + n * gap_ms + 10, NOW_MS, 20) for n in range(count)]
    assert max(dues) <= NOW_MS + 20
    assert dues == sorted(dues)


@given(
    st.sets(st.sampled_from(list(State)), min_size=1),
    st.none() | st.builds(Waits, st.booleans(), st.booleans(), st.booleans()),
    st.booleans(),
)
def test_only_one_that_waits_and_is_in_no_flow_is_replaced(
    states: set[State], waits: Waits | None, is_underway: bool
) -> None:
    holder = judged(Held(job_id(1), states_of(states)), waits, is_underway=is_underway)
    if is_underway:
        assert (holder.counts, holder.blocks) == (State.RUNNING in states, Why.RUNS)
    elif waits is None:
        assert holder.counts == bool(states - {State.SCHEDULED, State.QUEUED})
        assert holder.blocks is Why.RUNS
    else:
        now = State.QUEUED if waits.is_due else State.SCHEDULED
        assert holder.counts == (now in states)
        assert holder.blocks is (Why.IN_FLOW if waits.in_flow else None)
        assert (holder.since_ms is None) == waits.has_run


@given(st.sets(st.sampled_from(list(State))))
def test_states_are_bits(states: set[State]) -> None:
    packed = states_of(states)
    assert {state for state in State if packed >> state & 1} == states
    assert packed < 1 << 15  # a smallint holds them
