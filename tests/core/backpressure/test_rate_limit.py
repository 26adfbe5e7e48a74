"""The token bucket: never more than promised, and whoever waits as told is let in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.rate_limit import ONE, Bucket, share_of

RATES = st.integers(1, 1_000_000)
BURSTS = st.integers(1, 10_000)
CALLS = st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 30)), max_size=60)


@given(st.integers(1, 50), st.integers(1, 20), CALLS)
def test_no_window_lets_in_more_than_burst_and_rate_and_one_large_call(
    rate: int, burst: int, calls: list[tuple[int, int]]
) -> None:
    bucket, now_us = Bucket(burst, 0), 0
    let_in: list[tuple[int, int]] = []
    for pause_us, count in calls:
        now_us += pause_us
        if not bucket.take(count, rate, burst, now_us):
            let_in.append((now_us, count))
    for first in range(len(let_in)):
        for last in range(first, len(let_in)):
            window_us = let_in[last][0] - let_in[first][0]
            counts = [count for _, count in let_in[first : last + 1]]
            beyond = max(0, max(counts) - burst)
            assert (sum(counts) - beyond) * ONE <= burst * ONE + rate * window_us


@given(RATES, BURSTS, st.lists(st.integers(1, 20_000), min_size=1, max_size=30))
def test_whoever_waits_as_told_is_let_in(rate: int, burst: int, counts: list[int]) -> None:
    bucket, now_us = Bucket(burst, 0), 0
    for count in counts:
        early_us = bucket.take(count, rate, burst, now_us)
        if early_us:
            assert bucket.take(count, rate, burst, now_us + early_us - 1) == 1
            now_us += early_us
            assert bucket.take(count, rate, burst, now_us) == 0


@given(RATES, BURSTS, st.lists(st.integers(1, 20_000), min_size=1, max_size=30))
def test_whoever_waits_as_the_headers_say_is_never_refused(
    rate: int, burst: int, counts: list[int]
) -> None:
    """`left` jobs at once, else after `full_in_seconds` as many as you like."""
    bucket, now_us = Bucket(burst, 0), 0
    for count in counts:
        quota = bucket.quota(rate, burst, now_us)
        assert 0 <= quota.left <= burst
        if count > quota.left:
            now_us += quota.full_in_seconds * 1_000_000
        assert bucket.take(count, rate, burst, now_us) == 0


@given(RATES, BURSTS)
def test_an_empty_bucket_is_full_after_its_window(rate: int, burst: int) -> None:
    bucket = Bucket(burst, 0)
    assert bucket.take(burst, rate, burst, 0) == 0
    assert bucket.take(1, rate, burst, 0) > 0
    window_us = bucket.quota(rate, burst, 0).window_seconds * 1_000_000
    quota = bucket.quota(rate, burst, window_us)
    assert (quota.left, quota.full_in_seconds) == (burst, 0)


@given(RATES, BURSTS, st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_looking_costs_nothing_and_time_does_not_run_backwards(
    rate: int, burst: int, moments_us: list[int]
) -> None:
    """Asking often, in any order of moments, fills the bucket no more than asking once."""
    often, once = Bucket(burst, 0), Bucket(burst, 0)
    for bucket in (often, once):
        assert bucket.take(burst, rate, burst, 0) == 0
    for moment_us in moments_us:
        often.quota(rate, burst, moment_us)
    latest_us = max(moments_us)
    assert often.quota(rate, burst, latest_us) == once.quota(rate, burst, latest_us)


@given(BURSTS, BURSTS, RATES, RATES)
def test_new_limits_hold_at_once(before: int, after: int, old_rate: int, new_rate: int) -> None:
    bucket = Bucket(before, 0)
    bucket.quota(old_rate, before, 0)
    quota = bucket.quota(new_rate, after, 0)
    assert quota.left == min(before, after)
    early_us = bucket.take(after, new_rate, after, 0)
    assert bool(early_us) == (before < after)
    assert not early_us or bucket.take(after, new_rate, after, early_us) == 0


@given(RATES, BURSTS, st.lists(st.integers(0, 10**6), max_size=5))
def test_what_is_charged_is_owed_up_to_a_burst_and_paid_in_time(
    rate: int, burst: int, counts: list[int]
) -> None:
    bucket = Bucket(burst, 0)
    for count in counts:
        bucket.charge(count, rate, burst, 0)
    owed_us = bucket.debt_us(rate, burst, 0)
    assert (owed_us > 0) == (sum(counts) > burst)
    assert owed_us <= -(-burst * ONE // rate)
    if owed_us:
        assert bucket.debt_us(rate, burst, owed_us - 1) > 0
        assert bucket.take(1, rate, burst, owed_us - 1) > 0, "a debtor takes nothing"
    assert bucket.debt_us(rate, burst, owed_us) == 0


@given(RATES, BURSTS, st.integers(1, 20_000), st.integers(0, 20_000))
def test_a_charge_forgives_nothing(rate: int, burst: int, batch: int, charged: int) -> None:
    bucket = Bucket(burst, 0)
    assert bucket.take(batch, rate, burst, 0) == 0
    owed_us = bucket.debt_us(rate, burst, 0)
    bucket.charge(charged, rate, burst, 0)
    assert bucket.debt_us(rate, burst, 0) >= owed_us


@given(st.integers(1, 50), st.integers(1, 20), CALLS)
def test_overdrawing_lets_nobody_have_more_than_its_rate_and_one_call(
    rate: int, burst: int, calls: list[tuple[int, int]]
) -> None:
    bucket, now_us, taken = Bucket(burst, 0), 0, 0
    for pause_us, count in calls:
        now_us += pause_us
        debt_us = bucket.overdraw(count, rate, burst, now_us)
        if debt_us:
            assert bucket.overdraw(count, rate, burst, now_us + debt_us - 1) > 0
        else:
            assert taken * ONE <= burst * ONE + rate * now_us
            taken += count


@given(st.integers(1, 50), st.integers(1, 20), CALLS, st.integers(0, 2_000_000))
def test_a_level_that_was_heard_late_is_never_below_the_bucket(
    rate: int, burst: int, calls: list[tuple[int, int]], way_us: int
) -> None:
    """A server that learned it refuses nothing that has room where the bucket is."""
    bucket, now_us = Bucket(burst, 0), 0
    for pause_us, count in calls:
        asked_us = now_us + pause_us
        now_us = asked_us + way_us
        bucket.take(count, rate, burst, now_us)
        learned = Bucket(0, asked_us, bucket.level(rate, burst, now_us))
        later_us = now_us + pause_us
        here = learned.early_us(count, rate, burst, later_us)
        assert here <= bucket.early_us(count, rate, burst, later_us)


@given(st.integers(1, 10_000), st.integers(1, 50))
def test_shares_are_no_more_than_the_whole_unless_each_gets_one(limit: int, servers: int) -> None:
    share = share_of(limit, servers)
    assert share >= 1
    assert share * servers <= max(limit, servers)
