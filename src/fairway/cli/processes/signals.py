"""Signals that end a program, as orders that grow: stop, hurry, quit. A worker loads this, too.

SIGTERM, Ctrl-C, the end of the terminal (SIGHUP) and SIGQUIT mean the same. The first asks to stop
in order, the same once more to wait for nobody, a third time to end at once. Who was started with
`nohup` outlives its terminal as it was told to.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from fairway.runtime.told_to_end import heeded

#: What servers say when they are told to stop: what they do, and what becomes of jobs.
STOPPING = "handing over, finishing what is under way"
WHILE_STOPPED = "run on with their workers; what waits is granted by other servers, or by the next"
ECHO_SECONDS = 1.0  # whoever started us may pass on what the terminal sent us already


@dataclass(frozen=True, slots=True)
class Orders:
    """What a program was told so far; each order implies those before it."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: asyncio.Event = field(default_factory=asyncio.Event)
    quitting: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        self.stopping.set()

    def hurry(self) -> None:
        self.stop()
        self.hurried.set()

    def quit(self) -> None:
        self.hurry()
        self.quitting.set()

    def obey_signals(self) -> None:
        stop_on_signals(self.stop, self.hurry, self.quit)


QUIT = 128 + signal.SIGQUIT  # the exit status of who was told to end at once


def quit_now() -> None:
    """End this process as it stands; what it started is ended by the kernel."""
    os._exit(QUIT)


def stop_on_signals(
    stop: Callable[[], None],
    hurry: Callable[[], None] | None = None,
    leave: Callable[[], None] | None = None,
) -> None:
    """The first of a kind asks to stop; the same once more, and not as an echo, for more.

    Who cannot hurry stops; who cannot quit hurries.
    """
    loop = asyncio.get_running_loop()
    orders = (stop, hurry or stop, leave or hurry or stop)
    heard: dict[signal.Signals, tuple[int, float]] = {}

    def hear(number: signal.Signals) -> None:
        times, at = heard.get(number, (0, 0.0))
        if not times or loop.time() - at > ECHO_SECONDS:
            times = min(times + 1, len(orders))
            heard[number] = times, loop.time()
        orders[times - 1]()

    for number in heeded():
        loop.add_signal_handler(number, hear, number)
