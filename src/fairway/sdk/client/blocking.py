"""The asynchronous SDK for synchronous code: one driver, not a twin of every method.

A background event loop, in a daemon thread of its own, is started by the first call and shared by
all. A forked child starts its own. Nothing happens at import.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 2.0


class Driver:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._live, name="fairway-blocking", daemon=True)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # no-op when it has ended; else Ctrl-C must not leave it running
            raise

    def stop(self) -> None:
        if self.loop.is_closed():  # a child registers its own end beside its parent's
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(STOP_SECONDS)

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        under_way = asyncio.all_tasks(self.loop)
        for task in under_way:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*under_way, return_exceptions=True))
        self.loop.close()


_driver: Driver | None = None
_starting = threading.Lock()


def driver() -> Driver:
    """The driver of this process."""
    return _driver or _start()


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of an asynchronous piece of work. Context variables go with it."""
    if is_driving():
        return _run_apart(work)
    return driver().run(work)


def is_driving() -> bool:
    """Whether this is the driver's own thread, which must not wait for itself."""
    return _driver is not None and threading.current_thread() is _driver.thread


def iterate(source: AsyncIterator[T]) -> Iterator[T]:
    """An asynchronous iterator, one item at a time."""
    end = object()
    step: asyncio.Task[Any] | None = None

    async def following() -> T | object:
        nonlocal step
        step = asyncio.current_task()
        return await anext(source, end)

    try:
        while (item := run(following())) is not end:
            yield item  # type: ignore[misc]  # `end` has left, so this is a T
    finally:
        run(_closed(source, step))


async def _closed(source: AsyncIterator[Any], step: asyncio.Task[Any] | None) -> None:
    """After Ctrl-C its last step may still be under way, and what runs cannot be closed."""
    if step is not None and not step.done():
        if not step.cancelling():  # twice would cut short what it does to end well
            step.cancel()
        await asyncio.wait([step])
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


def _start() -> Driver:
    global _driver
    with _starting:
        if _driver is None:
            _driver = Driver()
            os.register_at_fork(after_in_child=_forget)
            atexit.register(_stop)
        return _driver


def _forget() -> None:
    """In a forked child: the thread did not come along, so neither may the driver or its lock."""
    global _driver, _starting
    _driver, _starting = None, threading.Lock()


def _stop() -> None:
    if _driver is not None:
        _driver.stop()


def _run_apart(work: Coroutine[Any, Any, T]) -> T:
    """For a handler that runs on the driver and calls back in: it must not wait for itself."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(copy_context().run, asyncio.run, work).result()
