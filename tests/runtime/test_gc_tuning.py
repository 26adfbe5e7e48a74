"""The collector looks among old objects when it is told to, and not when tenants make it."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from fairway.runtime.gc_tuning import COLLECT_SECONDS, OldObjects, tune_gc


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


class Knot:
    def __init__(self) -> None:
        self.me = self


def test_old_objects_are_not_looked_at_by_itself() -> None:
    tune_gc(looks_at_old=False)
    before = gc.get_stats()[2]["collections"]
    kept = [[Knot()] for _ in range(300_000)]
    assert gc.get_stats()[1]["collections"] > 0
    gc.set_threshold(100, 1, gc.get_threshold()[2])
    kept += [[Knot()] for _ in range(300_000)]
    assert gc.get_stats()[2]["collections"] == before
    assert len(kept) == 600_000


async def test_a_knot_among_old_objects_goes_at_the_next_look() -> None:
    tune_gc(looks_at_old=False)
    old = OldObjects()
    assert await old.run_once(0) == COLLECT_SECONDS  # the start has just collected
    knot = Knot()
    gc.collect(1)  # it is old now
    gone = weakref.ref(knot)
    del knot
    gc.collect(1)
    assert gone() is not None
    assert await old.run_once(0) >= COLLECT_SECONDS
    assert gone() is None


async def test_the_longer_a_look_took_the_later_comes_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = OldObjects()
    await old.run_once(0)
    monkeypatch.setattr(gc, "collect", lambda: time.sleep(0.2))
    assert await old.run_once(0) >= 2_000 * 0.2
