"""One call of a handler in a thread, that can be interrupted.

Python cannot end a thread. It can raise an exception in one, which stops code written in Python at
its next step; a call into the system or a library ends first. So an interruption is a wish, and
`is_over` tells whether it came true.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Any


class ThreadRun:
    def __init__(self, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._function = function
        self._arguments = arguments
        self._lock = threading.Lock()
        self._thread: int | None = None  # while it runs
        self._interrupted = False
        self.is_over = False

    async def call(self) -> Any:
        return await asyncio.to_thread(self._call)

    def _call(self) -> Any:
        try:
            return self._enter_and_leave()
        finally:  # once more: the interruption may have come while it was leaving
            self._leave()

    def _enter_and_leave(self) -> Any:
        with self._lock:
            if self._interrupted:
                raise asyncio.CancelledError  # before it began
            self._thread = threading.get_ident()
        try:
            return self._function(**self._arguments)
        finally:
            self._leave()

    def _leave(self) -> None:
        """From here on the thread belongs to another job: nothing may be raised in it."""
        with self._lock:
            thread, self._thread = self._thread, None
            self.is_over = True
            if self._interrupted and thread is not None:
                _absorb(thread)

    def warn(self, error: type[BaseException]) -> None:
        """Raise this in the thread, which may go on after it; nothing if it does not run now."""
        with self._lock:
            if self._thread is not None:
                self._interrupted = True  # so that it reaches nobody who comes after
                _set_pending(self._thread, error)

    def interrupt(self, error: type[BaseException]) -> None:
        """Raise this in the thread, if the call is still under way."""
        with self._lock:
            self._interrupted = True
            if self._thread is None:
                self.is_over = True  # it has ended, or will not begin
            else:
                _set_pending(self._thread, error)


def _set_pending(thread: int, error: type[BaseException]) -> bool:
    """Answers whether there is such a thread."""
    raised = ctypes.py_object(error)
    found: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
    return found > 0


class _Absorbed(BaseException):
    """Takes the place of an interruption that came too late."""


def _absorb(thread: int) -> None:
    """Let nothing be pending in this thread, which is ours.

    To take it back instead would leave Python's note that something is pending in some thread, for
    good: every thread of the process would look for it at each step, and one that is traced (a
    debugger, a profiler) would never get past its next call.
    """
    try:
        while _set_pending(thread, _Absorbed):  # until it is raised, which is at once
            pass
    except _Absorbed:
        return
