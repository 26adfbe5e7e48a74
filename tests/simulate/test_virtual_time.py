"""Virtual time: events in order, none lost, none twice, and time that never goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.simulate.virtual_time import START_UNIX_MS, VirtualTime

moments = st.lists(st.integers(0, 1_000), max_size=60)


@given(moments)
@tried()
def test_events_run_in_the_order_of_their_moments_and_of_asking(asked: list[int]) -> None:
    time, seen = VirtualTime(), list[tuple[int, int]]()
    for number, moment in enumerate(asked):
        time.at(moment, lambda number=number: seen.append((time.now_us(), number)))  # type: ignore[misc]
    assert time.run_until(2_000) == len(asked)
    assert seen == sorted((moment, number) for number, moment in enumerate(asked))


@given(moments, st.integers(0, 1_200), st.integers(0, 1_200))
@tried()
def test_what_is_due_before_the_end_runs_once_and_the_rest_waits(
    asked: list[int], first: int, second: int
) -> None:
    time, seen = VirtualTime(), list[int]()
    for moment in asked:
        time.at(moment, lambda moment=moment: seen.append(moment))  # type: ignore[misc]
    time.run_until(first)
    assert sorted(seen) == sorted(one for one in asked if one < first)
    assert time.waiting == len(asked) - len(seen)
    time.run_until(second)  # which may lie before: time stays where it is
    assert time.now_us() == max(first, second)
    assert sorted(seen) == sorted(one for one in asked if one < max(first, second))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-20, 20)), max_size=40))
@tried()
def test_time_never_goes_back_whatever_events_ask_for(plans: list[tuple[int, int]]) -> None:
    time, seen = VirtualTime(), list[int]()

    def act(shift: int) -> None:
        seen.append(time.now_us())
        time.at(time.now_us() + shift, lambda: seen.append(time.now_us()))

    for moment, shift in plans:
        time.at(moment, lambda shift=shift: act(shift))  # type: ignore[misc]
    time.run_until(1_000)
    assert seen == sorted(seen)
    assert len(seen) == 2 * len(plans)


def test_the_two_clocks_go_together() -> None:
    time = VirtualTime()
    time.run_until(1_500_000)
    assert (time.now_us(), time.unix_ms(), time.seconds) == (1_500_000, START_UNIX_MS + 1500, 1.5)


def test_what_is_done_every_so_often_goes_on() -> None:
    time, seen = VirtualTime(), list[int]()
    time.every(10, lambda: seen.append(time.now_us()))
    time.run_until(35)
    assert seen == [10, 20, 30]
