"""Stones of the cancelled: there while old news may still come, gone after a minute."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backlog.tombstones import KEEP_US, STONES_MAX, Tombstones
from fairway.core.job import QueuedJob


def job(number: int) -> QueuedJob:
    fields: dict[str, Any] = dict.fromkeys(QueuedJob.__struct_fields__, 0)
    return QueuedJob(**fields | {"id": str(number), "payload": b"{}"})


def test_what_was_cancelled_is_left_out_and_nothing_else() -> None:
    stones = Tombstones()
    jobs = [job(1), job(2), job(3)]
    assert stones.without_dead(jobs) is jobs
    stones.raise_for("2", 0)
    assert [one.id for one in stones.without_dead(jobs)] == ["1", "3"]
    assert "2" in stones
    assert "1" not in stones


@given(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=200))
def test_a_stone_stands_for_a_minute(steps_us: list[int]) -> None:
    stones, now_us, raised = Tombstones(), 0, {}
    for number, step_us in enumerate(steps_us):
        now_us += step_us
        stones.raise_for(str(number), now_us)
        raised[str(number)] = now_us
        young = [one for one, at_us in raised.items() if at_us > now_us - KEEP_US]
        assert all(one in stones for one in young)


def test_old_stones_go_as_new_ones_come() -> None:
    stones = Tombstones()
    for number in range(100):
        stones.raise_for(f"old-{number}", 0)
    for number in range(50):
        stones.raise_for(f"new-{number}", KEEP_US)
    assert not any(f"old-{number}" in stones for number in range(100))
    assert all(f"new-{number}" in stones for number in range(50))


@given(
    st.lists(st.tuples(st.integers(0, 30_000_000), st.integers(0, 30)), min_size=1, max_size=200),
    st.integers(1, 20),
)
def test_there_are_never_more_stones_than_there_may_be(
    steps: list[tuple[int, int]], most: int
) -> None:
    stones, now_us = Tombstones(most), 0
    last: dict[str, int] = {}
    for step_us, number in steps:
        now_us += step_us
        stones.raise_for(str(number), now_us)
        last.pop(str(number), None)
        last[str(number)] = now_us
        assert len(stones) <= most
        youngest = list(last)[-most:]
        assert all(one in stones for one in youngest if last[one] > now_us - KEEP_US)
    stones.clear_old(now_us)
    assert {one for one in last if one in stones} <= {
        one for one, at_us in last.items() if at_us > now_us - KEEP_US
    }


def test_a_storm_of_cancellations_is_forgotten_when_nobody_cancels_any_more() -> None:
    stones = Tombstones()
    for number in range(2 * STONES_MAX):
        stones.raise_for(str(number), 0)
    assert len(stones) == STONES_MAX
    stones.clear_old(KEEP_US)
    assert len(stones) == 0
