"""What whoever started this program hears of it: that it is ready, stops, is alive.

systemd listens at NOTIFY_SOCKET (sd_notify, which needs no library); `fairway up` at a pipe whose
number is in FAIRWAY_READY_FD. Without either nothing is said. A manager that does not listen harms
nobody: what cannot be said at once is dropped. What is read here is taken out of the environment,
so that no child, and no job, speaks in our name.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, MutableMapping
from contextlib import suppress

from fairway.runtime.clock import SystemClock
from fairway.runtime.loops import Loop

READY_FD = "FAIRWAY_READY_FD"
MICROSECONDS = 1_000_000
SILENT_WATCHDOG_SECONDS = 3600.0  # between two looks at a watchdog that nobody asked for


class ServiceManager:
    def __init__(self, say: Callable[[bytes], None], watchdog_seconds: float | None = None) -> None:
        self._say = say
        self._watchdog_seconds = watchdog_seconds
        self._beats = Loop("watchdog", self._beat, SystemClock())

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> ServiceManager:
        """Whoever is named here, and is not for our children to hear."""
        address = environment.pop("NOTIFY_SOCKET", "")
        period, whose = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        descriptor = environment.pop(READY_FD, "")
        is_ours = whose in ("", str(os.getpid()))
        seconds = int(period) / MICROSECONDS if period.isdecimal() and is_ours else None
        if address[:1] in ("/", "@"):
            return cls(_to_socket(address), seconds)
        if descriptor.isdecimal():
            return cls(_to_pipe(int(descriptor)))
        return cls(_to_nobody)

    def ready(self, status: str) -> None:
        """It can do its work; from now on it beats, if that was asked for."""
        self._tell("READY=1", f"STATUS={status}")
        if self._watchdog_seconds is not None:
            self._beats.start()

    def starting(self, status: str, more_seconds: float) -> None:
        """Not ready yet, for this reason: it wants so much more time before it is given up."""
        self._tell(f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={more_seconds * MICROSECONDS:.0f}")

    def stopping(self, status: str) -> None:
        self._tell("STOPPING=1", f"STATUS={status}")

    async def _beat(self, now_us: int) -> float:
        """By the event loop itself: one that stands still is what a watchdog is there to notice."""
        if self._watchdog_seconds is None:
            return SILENT_WATCHDOG_SECONDS
        self._tell("WATCHDOG=1")
        return self._watchdog_seconds / 2

    def _tell(self, *lines: str) -> None:
        text = "\n".join(line.replace("\n", " ") for line in lines)
        with suppress(OSError):
            self._say(text.encode() + b"\n")


def _to_nobody(message: bytes) -> None:
    return None


def _to_pipe(descriptor: int) -> Callable[[bytes], None]:
    os.set_inheritable(descriptor, False)
    os.set_blocking(descriptor, False)

    def say(message: bytes) -> None:
        os.write(descriptor, message + b"MAINPID=%d\n" % os.getpid())  # one pipe for all lives

    return say


def _to_socket(address: str) -> Callable[[bytes], None]:
    name = "\0" + address[1:] if address[0] == "@" else address  # Linux has names without files

    def say(message: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.setblocking(False)
            line.sendto(message, name)

    return say
