"""Whose the processors were during a run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.rig.foreign_load import (
    SHARE_MAX,
    TICKS,
    ForeignLoad,
    Spent,
    doubts,
    foreign_load,
    look,
    passed,
    read,
    undisturbed,
    without,
)
from fairway.rig.usage import family_seconds, tree_seconds

START = Spent(whole=1000, busy=400, stolen=20, ours=30, kernel=10)

amounts = st.floats(0, 1000)


def after(idle: float, ours: float, others: float, stolen: float, kernel: float) -> Spent:
    busy = ours + others + kernel
    spent = (busy + idle + stolen, busy, stolen, ours, kernel)
    return Spent(*(old + new for old, new in zip(START, spent, strict=True)))


@given(amounts, amounts, amounts, amounts, amounts)
def test_what_is_neither_ours_nor_the_kernels_is_others(
    idle: float, ours: float, others: float, stolen: float, kernel: float
) -> None:
    load = foreign_load(passed(START, after(idle, ours, others, stolen, kernel)))
    whole = idle + ours + others + stolen + kernel
    if load is None:
        assert whole < 1e-9
    elif whole > 0.01:
        assert load.others == pytest.approx(others / whole, abs=1e-6)
        assert load.stolen == pytest.approx(stolen / whole, abs=1e-6)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_busy_machine_is_a_reason_to_doubt(others: float, stolen: float) -> None:
    found = doubts(ForeignLoad(others, stolen))
    assert bool(found) == (others + stolen > SHARE_MAX)


def test_the_reason_names_both() -> None:
    (reason,) = doubts(ForeignLoad(0.125, 0.03))
    assert "12.5%" in reason
    assert "3.0%" in reason


def test_where_nothing_is_counted_nothing_is_doubted() -> None:
    assert foreign_load(passed(START, START)) is None
    assert foreign_load(passed(None, START)) is None
    assert doubts(None) == []
    assert read("intr 1 2 3\n", 0, 0) is None
    assert read("cpu 1 2 3\n", 0, 0) is None


def test_the_kernels_line_is_read() -> None:
    ticks = [n * TICKS for n in (10, 1, 5, 80, 2, 1, 1, 4, 3, 0)]  # guests are in user time already
    assert read(f"cpu  {' '.join(map(str, ticks))}\ncpu0 9", 7, 2) == Spent(104, 16, 4, 7, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts")
def test_the_time_of_a_child_that_ended_is_ours() -> None:
    before, seen = family_seconds(os.getpid()), look()
    code = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert family_seconds(os.getpid()) - before >= 0.15  # in ticks of a hundredth
    assert family_seconds(os.getpid()) >= tree_seconds(os.getpid())
    assert seen is not None


@given(st.lists(st.integers(0, 50), min_size=10, max_size=10))
def test_what_others_disturbed_is_measured_again(busy: list[int]) -> None:
    """Five are wanted. Ten are made at most; the quietest are kept, in their order."""
    clock, made = [START], iter(range(10))

    async def measure() -> int:
        at = next(made)
        clock.append(passed_by(clock[-1], busy[at]))
        return at

    kept = asyncio.run(undisturbed(measure, 5, lambda: clock[-1]))
    tried = len(clock) - 1
    assert kept.found == sorted(kept.found)
    assert len(kept.found) == 5
    assert len(kept.left_out) == tried - 5
    loud = [busy[at] for at in range(tried) if at not in kept.found]
    assert all(busy[at] <= one for at in kept.found for one in loud)
    if tried < 10:
        assert max(busy[at] for at in kept.found) <= 100 * SHARE_MAX


def passed_by(start: Spent, stolen: int) -> Spent:
    spent = Spent(whole=100, busy=10, stolen=stolen, ours=10, kernel=0)
    return Spent(*(old + new for old, new in zip(start, spent, strict=True)))


def test_what_does_not_count_is_left_out() -> None:
    quiet, loud = Spent(100, 10, 0, 10, 0), Spent(100, 10, 50, 10, 0)
    both = Spent(*(one + other for one, other in zip(quiet, loud, strict=True)))
    assert without(both, [loud]) == quiet
    assert without(None, [loud]) is None
