"""Limits by key: what is packed comes back, and counts are those of the runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import make

from fairway.core.backlog.key_limits import KeyCounts, KeyLimit, pack, unpack
from fairway.core.ids import TenantId
from fairway.core.job import QueuedJob

LIMITS = st.lists(
    st.builds(KeyLimit, st.text(min_size=1, max_size=8), st.integers(1, 3)),
    max_size=4,
    unique_by=lambda limit: limit.key,
)
US, THEM = TenantId(1), TenantId(2)


@given(LIMITS)
def test_what_is_packed_comes_back(limits: list[KeyLimit]) -> None:
    assert unpack(pack(limits)) == tuple(limits)


@given(st.lists(st.tuples(LIMITS, st.booleans()), max_size=30))
def test_a_limit_is_full_while_as_many_run_as_it_says(
    wanted: list[tuple[list[KeyLimit], bool]],
) -> None:
    counts, going = KeyCounts(), dict[QueuedJob, list[KeyLimit]]()
    for number, (limits, one_ends) in enumerate(wanted):
        if going and one_ends:
            job, ended = going.popitem()
            assert list(counts.ended(job)) == [limit.key for limit in ended]
        running = [limit.key for one in going.values() for limit in one]
        full = [limit for limit in limits if running.count(limit.key) >= limit.most]
        assert counts.full(US, limits, 0) == (full[0] if full else None)
        assert counts.full(THEM, limits, 0) is None  # keys are a tenant's own
        if not full:
            job = make(number, tenant=US)
            for _ in range(2):  # an earlier owner's run may be told of twice
                counts.started(job, limits, 0)
            going[job] = limits
    for job in [*going, *going]:
        counts.ended(job)
    kept = [book for book in (counts.running, counts.key_of, counts.keys_of) if book]
    assert kept == []  # nothing, of keys that nobody runs
