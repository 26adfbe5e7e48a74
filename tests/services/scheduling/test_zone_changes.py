"""When a zone's clocks change: found by halves, the same as a look at every quarter of an hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.scheduling.ticks import Steps
from fairway.services.scheduling.zone_changes import SECOND, OffsetChange, ZoneChanges

QUARTER = timedelta(minutes=15)
# Two changes a year, half an hour only, none, and one that skipped a whole day (2011).
ZONES = ["Europe/Lisbon", "Australia/Lord_Howe", "UTC", "Pacific/Apia", "America/New_York"]
#: From 1990 to 2035.
moments = st.integers(631_152_000, 2_051_222_400).map(lambda at: datetime.fromtimestamp(at, UTC))


def plenty() -> Steps:
    return Steps(1 << 40)


def plain_changes(zone: str, year: int) -> list[datetime]:
    """Quarters of an hour after which the offset is another."""
    here, found = ZoneInfo(zone), list[datetime]()
    moment = datetime(year, 1, 1, tzinfo=UTC)
    before = (moment - SECOND).astimezone(here).utcoffset()
    while moment.year == year:
        if (offset := moment.astimezone(here).utcoffset()) != before:
            found.append(moment)
            before = offset
        moment += QUARTER
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("year", [2011, 2026])
def test_every_change_of_a_year_is_found_to_the_second(zone: str, year: int) -> None:
    changes = ZoneChanges(zone)
    low = datetime(year, 1, 1, tzinfo=UTC) - SECOND
    high = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    found = list[OffsetChange]()
    while (change := changes.first(low, high, plenty())) is not None:
        assert low < change.moment <= high
        assert changes.offset(change.moment - SECOND) == change.before
        assert changes.offset(change.moment) == change.after
        found.append(change)
        low = change.moment
    assert [one.moment for one in found] == plain_changes(zone, year)


@given(moments, moments, st.sampled_from(ZONES))
def test_the_first_and_the_newest_lie_within_and_nothing_changes_before_or_after(
    low: datetime, high: datetime, zone: str
) -> None:
    changes = ZoneChanges(zone)
    first, newest = changes.first(low, high, plenty()), changes.newest(low, high, plenty())
    assert (first is None) == (newest is None)
    if first is None or newest is None:
        assert low >= high or changes.offset(low) == changes.offset(high)
        return
    assert low < first.moment <= newest.moment <= high
    assert changes.first(low, first.moment - SECOND, plenty()) is None
    assert changes.newest(newest.moment, high, plenty()) is None
    assert changes.offset(low) == first.before
    assert changes.offset(high) == newest.after
