"""SIGTERM and Ctrl-C, as one wish to stop; apart from the server, which a worker does not load."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

ECHO_SECONDS = 1.0  # whoever started us may pass on what the terminal sent us already


def stop_on_signals(stop: Callable[[], None], hurry: Callable[[], None] | None = None) -> None:
    """The first of a kind asks to stop; the same once more, and not as an echo, to hurry."""
    loop = asyncio.get_running_loop()
    first_at: dict[signal.Signals, float] = {}

    def heard(number: signal.Signals) -> None:
        if loop.time() - first_at.setdefault(number, loop.time()) > ECHO_SECONDS and hurry:
            hurry()
        else:
            stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, number)
