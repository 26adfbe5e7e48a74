"""One operating-system process, held so that its number cannot be reused under us.

A pidfd names the process itself, child or not, and wakes whoever waits for its end. This file
sends signals only to processes it holds; it never looks one up by name.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
from typing import Any


class Process:
    def __init__(self, pid: int, child: subprocess.Popen[Any] | None = None) -> None:
        self.pid = pid
        self._child = child
        self._descriptor: int | None = os.pidfd_open(pid)

    @property
    def alive(self) -> bool:
        if self._descriptor is None:
            return False
        watch = select.poll()
        watch.register(self._descriptor, select.POLLIN)
        return not watch.poll(0)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended needs none."""
        if self._descriptor is None:
            return
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            pass

    async def ended(self, within_seconds: float | None = None) -> bool:
        """Wait for the end, at most so long; say whether it came. Any number may wait at once."""
        if self._descriptor is None:
            return True
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch = os.dup(self._descriptor)  # one for each waiter: a loop knows one callback per file
        loop.add_reader(watch, over.set)
        try:
            await asyncio.wait_for(over.wait(), within_seconds)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(watch)
            os.close(watch)
        self._reap()
        return True

    def release(self) -> None:
        """Let go of the process; it is not ended by this."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _reap(self) -> None:
        if self._child is not None:
            self._child.poll()


def hold(pid: int) -> Process | None:
    """The process of this number, or None when there is none."""
    try:
        return Process(pid)
    except ProcessLookupError:
        return None
