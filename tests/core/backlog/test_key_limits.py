"""Limits by key: what is packed comes back, and counts are those of the runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backlog import key_limits
from fairway.core.backlog.key_limits import KeyCounts, KeyLimit, pack, unpack
from fairway.core.ids import TenantId

LIMITS = st.lists(
    st.builds(KeyLimit, st.text(min_size=1, max_size=8), st.integers(1, 3)),
    max_size=4,
    unique_by=lambda limit: limit.key,
)
US, THEM = TenantId(1), TenantId(2)


@given(LIMITS)
def test_what_is_packed_comes_back(limits: list[KeyLimit]) -> None:
    assert unpack(pack(limits)) == tuple(limits)


def test_long_limits_are_not_kept_unpacked() -> None:
    """Of what one tenant hands in, so many are kept as have a bound: a few megabytes."""
    before = len(key_limits.UNPACKED)
    for number in range(10):
        long = [KeyLimit(f"{number}" + "ü" * 250, 1)]
        assert unpack(pack(long)) == tuple(long)
    assert len(key_limits.UNPACKED) == before


def test_what_is_kept_unpacked_is_bounded() -> None:
    for number in range(2 * key_limits.UNPACKED_KEPT):
        unpack(b'[["%d",1]]' % number)
    assert 0 < len(key_limits.UNPACKED) <= key_limits.UNPACKED_KEPT


@given(st.lists(st.tuples(LIMITS, st.booleans()), max_size=30))
def test_a_limit_is_full_while_as_many_run_as_it_says(
    wanted: list[tuple[list[KeyLimit], bool]],
) -> None:
    counts, going = KeyCounts(), list[list[KeyLimit]]()
    for limits, one_ends in wanted:
        if going and one_ends:
            counts.ended(US, going.pop())
        running = [limit.key for one in going for limit in one]
        full = [limit for limit in limits if running.count(limit.key) >= limit.most]
        assert counts.full(US, limits, 0) == (full[0] if full else None)
        assert counts.full(THEM, limits, 0) is None  # keys are a tenant's own
        if not full:
            counts.started(US, limits, 0)
            going.append(limits)
    for limits in going:
        counts.ended(US, limits)
    assert counts._running == {}  # nothing is kept of keys that nobody runs
