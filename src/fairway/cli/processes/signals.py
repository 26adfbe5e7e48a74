"""Signals that end a program, as orders that grow: stop, hurry, quit. A worker loads this, too.

SIGTERM, Ctrl-C, the end of the terminal (SIGHUP) and SIGQUIT mean the same. The first asks to stop
in order, the same once more to wait for nobody, a third time to end at once. A signal that whoever
started us told us to ignore, as `nohup` does, stays ignored.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

ECHO_SECONDS = 1.0  # whoever started us may pass on what the terminal sent us already
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


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


def stop_on_signals(
    stop: Callable[[], None],
    hurry: Callable[[], None] | None = None,
    quit_now: Callable[[], None] | None = None,
) -> None:
    """The first of a kind asks to stop; the same once more, and not as an echo, for more.

    Who cannot hurry stops; who cannot quit hurries.
    """
    loop = asyncio.get_running_loop()
    orders = (stop, hurry or stop, quit_now or hurry or stop)
    heard: dict[signal.Signals, tuple[int, float]] = {}

    def hear(number: signal.Signals) -> None:
        times, at = heard.get(number, (0, 0.0))
        if not times or loop.time() - at > ECHO_SECONDS:
            times = min(times + 1, len(orders))
            heard[number] = times, loop.time()
        orders[times - 1]()

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, hear, number)
