"""SIGTERM and Ctrl-C, as one wish to stop; apart from the server, which a worker does not load."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def stop_on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
