"""Moments and milliseconds: there and back without a loss, whatever the moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from fairway.core.unix_time import from_unix_ms, from_unix_us, to_unix_ms, to_unix_us

YEAR_2200_MS = 7_258_118_400_000


@given(st.integers(-YEAR_2200_MS, YEAR_2200_MS))
@example(2_164_280_451_226)  # by floats of seconds: a millisecond less
def test_milliseconds_come_back_as_they_were(unix_ms: int) -> None:
    moment = from_unix_ms(unix_ms)
    assert to_unix_ms(moment) == unix_ms
    assert to_unix_us(moment) == unix_ms * 1000
    assert from_unix_us(unix_ms * 1000) == moment


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 999))
def test_a_moment_belongs_to_the_millisecond_it_lies_in(moment: datetime, more_us: int) -> None:
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert to_unix_ms(whole + timedelta(microseconds=more_us)) == to_unix_ms(whole)
    assert from_unix_us(to_unix_us(moment)) == moment
