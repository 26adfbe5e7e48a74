"""Runs a measurement to its end: SIGTERM, like Ctrl-C, still ends its programs and their folder.

A second one ends this process at once; its programs end with it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

FoundT = TypeVar("FoundT")

TERMINATED = 128 + signal.SIGTERM  # what a shell expects


def run(work: Coroutine[Any, Any, FoundT]) -> FoundT:
    was_told = False

    async def until_told() -> FoundT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end() -> None:
            nonlocal was_told
            was_told = True
            loop.remove_signal_handler(signal.SIGTERM)
            task.cancel()

        loop.add_signal_handler(signal.SIGTERM, end)
        return await work

    try:
        return uvloop.run(until_told())
    except asyncio.CancelledError:
        if not was_told:
            raise
        raise SystemExit(TERMINATED) from None
