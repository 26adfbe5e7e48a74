"""Every hour is in one period and one slice: so sums by hour, day and month are the same sum."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.billing.periods import (
    SLICE,
    By,
    Month,
    begin_of,
    beginnings,
    month_of,
    parsed_month,
    slices,
)

hours = st.integers(0, 24 * 800).map(
    lambda count: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=count)
)
lengths: tuple[By, ...] = ("hour", "day", "month")


@given(hours, st.integers(1, 24 * 70), st.sampled_from(lengths), st.data())
def test_every_hour_is_in_the_period_that_began_last(
    since: datetime, count: int, by: By, data: st.DataObject
) -> None:
    before = since + timedelta(hours=count)
    found = beginnings(since, before, by)
    assert found == sorted(set(found)), "in order, each once"
    assert found[0] <= since < before
    assert found[-1] < before
    hour = since + timedelta(hours=data.draw(st.integers(0, count - 1)))
    place = sum(one <= hour for one in found)  # as width_bucket counts
    assert found[place - 1] == begin_of(hour, by)


@given(hours, st.integers(1, 24 * 200))
def test_slices_touch_and_do_not_overlap(since: datetime, count: int) -> None:
    before = since + timedelta(hours=count)
    found = list(slices(since, before))
    assert (found[0][0], found[-1][1]) == (since, before)
    assert all(a[1] == b[0] for a, b in pairwise(found))
    assert all(timedelta() < end - begin <= SLICE for begin, end in found)


@given(hours)
def test_a_month_is_found_again_by_its_name(moment: datetime) -> None:
    month = month_of(moment)
    assert parsed_month(str(month)) == month
    assert month.begins <= moment < month.ends == month.next.begins


@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-1", "2026-13", "2026-00", "1999-01", "26-01", "2026-01-01", "２０２６-01"],
)
def test_what_is_no_month(text: str) -> None:
    assert parsed_month(text) is None


def test_a_december_is_followed_by_a_january() -> None:
    assert Month(2026, 12).next == Month(2027, 1)
    assert Month(2026, 12).ends == datetime(2027, 1, 1, tzinfo=UTC)


def test_a_moment_of_another_zone_is_in_the_month_of_utc() -> None:
    assert month_of(datetime.fromisoformat("2026-01-01T00:30:00+02:00")) == Month(2025, 12)
