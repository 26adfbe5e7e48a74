"""Quantiles from few buckets: right to within a quarter, however the counts were split up."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.insight.buckets import (
    BUCKETS_MAX,
    add_to,
    begin_ms,
    bucket_of,
    count_in,
    merged,
    quantile_seconds,
    quantiles,
    since,
)

times = st.integers(0, 10**9)
histograms = st.lists(st.integers(0, 50), max_size=BUCKETS_MAX)


def histogram(values: list[int]) -> list[int]:
    counts: list[int] = []
    for ms in values:
        count_in(counts, bucket_of(ms))
    return counts


@given(times)
def test_a_time_lies_in_its_bucket(ms: int) -> None:
    bucket = bucket_of(ms)
    assert begin_ms(bucket) <= ms < begin_ms(bucket + 1)


def test_buckets_touch_and_the_last_has_room_for_anything() -> None:
    begins = [begin_ms(bucket) for bucket in range(BUCKETS_MAX)]
    assert begins == sorted(set(begins))
    assert begins[:6] == [0, 1, 2, 3, 4, 6]
    assert bucket_of(-5) == 0
    assert bucket_of(1 << 80) == BUCKETS_MAX - 1


@given(st.lists(times, min_size=1), st.sampled_from([500, 950, 990]))
def test_a_quantile_is_right_to_within_a_quarter(values: list[int], per_mille: int) -> None:
    exact = sorted(values)[ceil(len(values) * per_mille / 1000) - 1]
    found = quantile_seconds(histogram(values), per_mille)
    assert found is not None
    assert abs(found * 1000 - exact) <= max(exact / 4, 1)


@given(st.lists(times), st.lists(times))
def test_it_does_not_matter_who_counted(here: list[int], there: list[int]) -> None:
    together = histogram(here + there)
    assert merged([histogram(here), histogram(there)]) == together
    added = histogram(here)
    add_to(added, histogram(there))
    assert added == together
    assert merged([since(together, histogram(here))]) == merged(
        [histogram(there), [0] * len(together)]
    )


@given(histograms)
def test_quantiles_are_in_order(counts: list[int]) -> None:
    p50, p95, p99 = quantiles(counts)
    if p50 is None or p95 is None or p99 is None:
        assert not any(counts), "unknown only where nothing was measured"
    else:
        assert p50 <= p95 <= p99
