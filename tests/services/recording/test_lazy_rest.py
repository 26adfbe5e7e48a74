"""When the next look for leases to write is due: soon enough, and not more often than that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.services.recording.lease_writer import lazy_rest_us

LAZY_US = 100_000


@given(st.lists(st.integers(0, 2_000_000), max_size=30))
def test_no_lease_waits_for_more_than_one_and_a_half_times(granted: list[int]) -> None:
    coming, fresh, now_us = sorted(granted), list[int](), 0
    while coming or fresh:
        while coming and coming[0] <= now_us:
            fresh.append(coming.pop(0))
        taken = [one for one in fresh if one <= now_us - LAZY_US]
        assert all(now_us - one <= 1.5 * LAZY_US for one in taken)
        fresh = fresh[len(taken) :]
        if fresh:
            rest_us = lazy_rest_us(fresh[0], now_us, LAZY_US)
            assert LAZY_US // 2 <= rest_us <= LAZY_US
            now_us += rest_us
        elif coming:  # the first that is granted wakes the loop
            assert lazy_rest_us(None, now_us, LAZY_US) > LAZY_US
            now_us = coming[0]
