"""Whether a runner still answers: a byte there and back, on a pipe of its own.

The answer comes from a thread of the runner that does nothing else, so a handler that blocks the
event loop is not taken for deaf. One that holds the interpreter's lock and works is not killed
either: it may need its time, and limits of time are another matter. What is hunted is a process
that neither answers nor does anything: stopped, or stuck with the lock in its hands.

Looks are counted, not seconds: a keeper that was stopped as well must not blame its runner.
"""

from __future__ import annotations

import socket
import threading

QUIET_LOOKS = 5  # without an answer: it is given nothing new
DEAF_LOOKS = 30  # without an answer, and idle at each: it is killed
IDLE_CPU_MS = 30  # from one look to the next: threads that wait for the lock use a little
STACK_BYTES = 256 << 10


def answer_pings(end: socket.socket) -> None:
    """In the runner: answer from now on."""
    before = threading.stack_size(STACK_BYTES)
    threading.Thread(target=_echo, args=(end,), name="fairway-pings", daemon=True).start()
    threading.stack_size(before)


def _echo(end: socket.socket) -> None:
    try:
        while asked := end.recv(16):
            end.sendall(asked)
    except OSError:  # the keeper is gone
        return


class Pings:
    """In the keeper: asks at every look, and knows for how many there was no answer."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._is_asked = False
        self._cpu_ms = 0
        self._silent_looks = 0
        self._idle_looks = 0

    @property
    def is_quiet(self) -> bool:
        return self._silent_looks >= QUIET_LOOKS

    @property
    def is_deaf(self) -> bool:
        return self._idle_looks >= DEAF_LOOKS

    def look(self, cpu_ms: int) -> None:
        """`cpu_ms` is the processor time that the runner has used so far."""
        if self._has_answered():
            self._silent_looks = self._idle_looks = 0
            self._ask()
            return
        self._silent_looks += 1
        is_idle = cpu_ms - self._cpu_ms <= IDLE_CPU_MS
        self._idle_looks = self._idle_looks + 1 if is_idle else 0
        self._cpu_ms = cpu_ms

    def close(self) -> None:
        self._end.close()

    def _has_answered(self) -> bool:
        if not self._is_asked:
            return True
        try:
            return bool(self._end.recv(16))
        except OSError:  # nothing there yet; one that has ended is found by its end
            return False

    def _ask(self) -> None:
        try:
            self._end.send(b".")
            self._is_asked = True
        except OSError:
            return
