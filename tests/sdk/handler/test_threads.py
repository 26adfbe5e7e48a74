"""A call in a thread that can be interrupted: once, by what was said, and nobody else is."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairway.sdk.handler.threads import ThreadRun


class Stop(BaseException):
    """The run shall end."""


async def test_what_it_answers_is_answered() -> None:
    run = ThreadRun(lambda n: n + 1, {"n": 1})
    assert await run.call() == 2
    assert run.is_over


async def test_code_in_python_is_interrupted_at_its_next_step() -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def spin() -> None:
        loop.call_soon_threadsafe(begun.set)
        while True:
            pass

    run = ThreadRun(spin, {})
    call = asyncio.ensure_future(run.call())
    await begun.wait()
    run.interrupt(Stop)
    with pytest.raises(Stop):
        await call
    assert run.is_over


async def test_one_that_is_interrupted_before_it_began_does_not_begin() -> None:
    called: list[int] = []
    run = ThreadRun(lambda: called.append(1), {})
    run.interrupt(Stop)
    assert run.is_over
    with pytest.raises(asyncio.CancelledError):
        await run.call()
    assert called == []


async def test_an_interruption_that_comes_late_meets_nobody_else() -> None:
    """Threads are used again: what is raised too late must not end the next job there."""
    with ThreadPoolExecutor(1) as pool:
        for _ in range(200):
            at_end = threading.Event()
            run = ThreadRun(at_end.set, {})
            first = pool.submit(run._call)
            at_end.wait(5)
            run.interrupt(Stop)
            assert pool.submit(lambda: sum(range(100))).result(5) == 4950
            try:
                first.result(5)
            except Stop:
                continue  # it was met before its end
