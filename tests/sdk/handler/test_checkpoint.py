"""A checkpoint on its way: awaited in a coroutine, waited for in a thread, and safe or not."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from fairway.sdk.handler.checkpoint import CheckpointFailed, already_saved, saving


async def test_in_a_coroutine_it_is_awaited() -> None:
    saved: Future[None] = Future()
    one = saving(saved)  # does not hold up the loop
    assert not one.is_safe
    saved.set_result(None)
    await one
    assert one.is_safe


async def test_who_awaits_one_that_failed_hears_it() -> None:
    saved: Future[None] = Future()
    one = saving(saved)
    saved.set_exception(CheckpointFailed("no room"))
    with pytest.raises(CheckpointFailed, match="no room"):
        await one
    assert not one.is_safe


def test_elsewhere_the_call_returns_when_it_is_safe() -> None:
    saved: Future[None] = Future()
    timer = threading.Timer(0.02, saved.set_result, [None])
    timer.start()
    assert saving(saved).is_safe
    timer.join()
    assert saving(already_saved()).is_safe


def test_elsewhere_the_call_itself_says_that_it_failed() -> None:
    saved: Future[None] = Future()
    saved.set_exception(CheckpointFailed("no room"))
    with pytest.raises(CheckpointFailed):
        saving(saved)
