"""A word before the time limit: `SoftTimeLimit` is raised in the handler, once, where it stands.

In a coroutine it comes where it waits, as a cancellation would; in a thread and in the main thread
at the next step of Python. The handler may catch it, save what it has, and end in its own way; left
alone it ends the run as the time limit itself does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from fairway.sdk.handler.outcomes import SoftTimeLimit

T = TypeVar("T")


class WarnedInTime(Generic[T]):
    """Awaits a coroutine, and raises SoftTimeLimit in it after so long.

    A task can only be cancelled from outside. So it is, and the cancellation is turned into our
    error on the way in, unless somebody else wants the task to end as well.
    """

    def __init__(self, work: Coroutine[Any, Any, T], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._is_due = False

    def __await__(self) -> Generator[Any, Any, T]:
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(self._seconds, self._warn, task)
        try:
            return (yield from self._steps(task))
        finally:
            timer.cancel()
            self._take_back(task)

    def _steps(self, task: asyncio.Task[Any]) -> Generator[Any, Any, T]:
        error: BaseException | None = None
        while True:
            try:
                waits_for = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                value: T = end.value
                return value
            try:
                error = None
                yield waits_for
            except asyncio.CancelledError as cancelled:
                error = SoftTimeLimit() if self._take_back(task) else cancelled
            except BaseException as other:  # whatever it is, it is the handler's
                error = other

    def _warn(self, task: asyncio.Task[Any]) -> None:
        self._is_due = True
        task.cancel()

    def _take_back(self, task: asyncio.Task[Any]) -> bool:
        """Our own cancellation is over; True when it was the only one."""
        if not self._is_due:
            return False
        self._is_due = False
        return task.uncancel() == 0
