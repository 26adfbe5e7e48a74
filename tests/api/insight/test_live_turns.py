"""Streams that are woken at one moment go on one after the other."""

from __future__ import annotations

from fairway.api.insight.live import APART_US, OneByOne
from fairway.runtime.clock import ManualClock


def test_who_comes_at_once_waits_in_line_and_who_comes_later_does_not() -> None:
    clock = ManualClock()
    turns = OneByOne(clock.now_us)
    assert [turns.wait_us() for _ in range(1000)] == [place * APART_US for place in range(1000)]
    clock.advance(APART_US * 500 / 1e6)
    assert turns.wait_us() == 500 * APART_US
    clock.advance(1.0)
    assert turns.wait_us() == 0
