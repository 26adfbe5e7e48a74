"""Unique jobs: of a group that claims the same, one is written and the others learn which."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import JobId, TenantId
from fairway.core.lifecycle import State
from fairway.core.unique import UniqueClaim, digest_of, first_claims, losers, states_of

CLAIMS = st.lists(st.tuples(st.integers(1, 2), st.sampled_from("abc")), max_size=12)


@given(CLAIMS, st.sets(st.sampled_from("abc")))
def test_one_of_each_name_is_written_if_nobody_held_it(
    wanted: list[tuple[int, str]], held: set[str]
) -> None:
    claims = [
        UniqueClaim(TenantId(tenant), digest_of(key), JobId(f"job-{n}"), 7, 1000)
        for n, (tenant, key) in enumerate(wanted)
    ]
    first = first_claims(claims)
    taken = {digest_of(key) for key in held}
    holders = {
        name: JobId("earlier") if name[1] in taken else claim.job for name, claim in first.items()
    }
    lost = losers(claims, holders)
    written = [claim for claim in claims if claim.job not in lost]
    assert {claim.name for claim in written} == {n for n in first if n[1] not in taken}
    assert len(written) == len({claim.name for claim in written})
    for claim in claims:
        assert lost.get(claim.job, claim.job) == holders[claim.name]


@given(st.sets(st.sampled_from(list(State))))
def test_states_are_bits(states: set[State]) -> None:
    packed = states_of(states)
    assert {state for state in State if packed >> state & 1} == states
    assert packed < 1 << 15  # a smallint holds them
