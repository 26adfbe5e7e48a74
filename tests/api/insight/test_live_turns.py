"""Streams that are woken at one moment go on one after the other."""

from __future__ import annotations

from contextlib import ExitStack

from fairway.api.insight.live_turns import APART_US, ROUND_US, OneByOne
from fairway.runtime.clock import ManualClock


def test_who_comes_at_once_waits_in_line_and_who_comes_later_does_not() -> None:
    clock = ManualClock()
    turns = OneByOne(clock.now_us)
    assert [turns.wait_us() for _ in range(1000)] == [place * APART_US for place in range(1000)]
    clock.advance(APART_US * 500 / 1e6)
    assert turns.wait_us() == 500 * APART_US
    clock.advance(APART_US * 501 / 1e6)
    assert turns.wait_us() == 0


def test_however_many_there_are_all_are_told_in_one_round() -> None:
    turns = OneByOne(ManualClock().now_us)
    with ExitStack() as members:
        for _ in range(1000):
            members.enter_context(turns.member())
        assert max(turns.wait_us() for _ in range(1000)) <= ROUND_US
    assert turns.wait_us() + APART_US == turns.wait_us()
