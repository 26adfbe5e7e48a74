"""The timer wheel against its law: each item comes out once, never early, at most a tick late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.fair_share.timer_wheel import NEVER_US, TimerWheel

TICK_US = 50

#: How far time goes on, and how long after that an item is due. Small, so that many meet.
steps = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 150)), max_size=60)


@given(steps)
def test_each_comes_out_once_never_early_and_at_most_a_tick_late(
    steps: list[tuple[int, int]],
) -> None:
    wheel, now_us, due_us = TimerWheel[int](TICK_US), 0, dict[int, int]()
    for number, (gap_us, in_us) in enumerate([*steps, (10_000, 0)]):
        now_us += gap_us
        for bucket in wheel.due(now_us):
            for item in bucket:
                assert due_us.pop(item) < now_us
        assert all(moment_us > now_us - TICK_US for moment_us in due_us.values())
        assert wheel.next_us > now_us
        wheel.add(number, now_us + in_us)
        due_us[number] = now_us + in_us
    assert len(due_us) == 1  # what was added last


def test_a_wheel_with_nothing_on_it_is_due_never() -> None:
    wheel = TimerWheel[str](TICK_US)
    assert wheel.next_us == NEVER_US
    wheel.add("a", 10)
    wheel.add("b", 10)
    assert wheel.next_us == TICK_US
    assert list(wheel.due(TICK_US)) == [["a", "b"]]
    assert wheel.next_us == NEVER_US


def test_what_is_added_after_its_bucket_went_comes_in_another() -> None:
    """The last bucket is kept at hand: never one that was handed out."""
    wheel = TimerWheel[str](TICK_US)
    wheel.add("a", 10)
    assert list(wheel.due(TICK_US)) == [["a"]]
    wheel.add("b", 10)
    assert list(wheel.due(TICK_US)) == [["b"]]
