"""Runs a command's work to its end: told to end before, it still tidies up what it has begun.

SIGTERM, SIGHUP, SIGQUIT and Ctrl-C alike; who was started with `nohup` outlives its terminal. A
second one ends this process at once; programs that it started end with it, by the kernel's word.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

FoundT = TypeVar("FoundT")

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
BY_SIGNAL = 128  # and its number: the status that a shell expects


def heeded() -> list[signal.Signals]:
    """Those that end us: not the end of a terminal that we are to outlive."""
    is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [one for one in ENDING if one is not signal.SIGHUP or not is_detached]


def run(work: Coroutine[Any, Any, FoundT]) -> FoundT:
    told: list[signal.Signals] = []

    async def until_told() -> FoundT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: signal.Signals) -> None:
            told.append(number)
            for one in heeded():
                loop.remove_signal_handler(one)
                signal.signal(one, signal.SIG_DFL)
            task.cancel()

        for number in heeded():
            loop.add_signal_handler(number, end, number)
        return await work

    try:
        return uvloop.run(until_told())
    except asyncio.CancelledError:
        if not told:
            raise
        raise SystemExit(BY_SIGNAL + told[0]) from None
