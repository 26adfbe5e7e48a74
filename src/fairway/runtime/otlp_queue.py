"""What waits to be sent by OTLP: bounded, and sent by a thread; the rest is dropped and counted.

Whoever adds something never waits and never fails. A receiver that is dead or slow costs what was
to be sent to it, and a line in the log now and then; the thread alone waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import structlog

log: Any = structlog.get_logger("otlp")

Item = TypeVar("Item")

WAITING_MAX = 8192
BATCH_MAX = 2048  # about a megabyte of spans
SAY_SECONDS = 60.0  # between two lines about a receiver that takes nothing
CLOSE_SECONDS = 2.0  # for what waits when the program ends


class OtlpQueue(Generic[Item]):
    def __init__(
        self,
        signal: str,
        send: Callable[[Sequence[Item]], bool],
        on_dropped: Callable[[int], None],
        *,
        rest_seconds: float,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        """`send` answers whether it was taken; it may take its time, and may raise.

        It is called every so often, and once there is enough for a call.
        """
        self._signal = signal
        self._send = send
        self._on_dropped = on_dropped
        self._waiting_max = waiting_max
        self._rest_seconds = rest_seconds
        self._waiting: deque[Item] = deque()
        self._wanted = threading.Event()
        self._is_closing = False
        self._said_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name=f"otlp {signal}", daemon=True)
        self._thread.start()

    def add(self, item: Item) -> None:
        """From any thread."""
        if len(self._waiting) >= self._waiting_max or self._is_closing:
            self._on_dropped(1)
            return
        self._waiting.append(item)
        if len(self._waiting) >= BATCH_MAX:
            self._wanted.set()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for so long; the rest is dropped."""
        self._is_closing = True
        self._wanted.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._is_closing:
            self._wanted.wait(self._rest_seconds)
            self._wanted.clear()
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
            try:
                is_taken = self._send(batch)
            except Exception as error:  # of a library, on a thread of its own: nobody else ends it
                self._say(repr(error))
                is_taken = False
            if not is_taken:
                self._on_dropped(len(batch))
                self._say("it did not take them")

    def _say(self, why: str) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAY_SECONDS:
            self._said_at = now
            log.warning("the OTLP receiver takes nothing", signal=self._signal, error=why)
