"""Each run that failed in the worker's log, with its traceback: the first is not met by silence.

A handful a second at most: a type that fails a thousand times a second must not fill a disk. What
was left out is counted, and all of it is with the job (`fairway jobs show ID`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease, Report
from fairway.worker.job_log import on_one_line

log = logger("worker")

LINES_PER_SECOND = 5
MESSAGE_CHARACTERS = 300
STACK_CHARACTERS = 8_000  # the end of it, where the cause is

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def _in_a_second(call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(1.0, call)


class _Error(Struct):
    type: str = ""
    message: str = ""
    stack: str = ""


class FailureLines:
    def __init__(
        self,
        seconds: Callable[[], float] = time.monotonic,
        later: Callable[[Callable[[], None]], object] = _in_a_second,
    ) -> None:
        self._seconds = seconds
        self._later = later
        self._second = 0
        self._said = 0  # in that second
        self._left_out = 0

    def tell(self, lease: Lease, report: Report) -> None:
        second = int(self._seconds())
        if second != self._second:
            self._second, self._said = second, 0
        if self._said >= LINES_PER_SECOND:
            self._left_out += 1
            if self._left_out == 1:
                self._later(self.tell_left_out)
            return
        self._said += 1
        log.warning(
            "run failed",
            job=lease.job,
            type=lease.type,
            attempt=lease.attempt,
            failure=report.failure,
            **_words(bytes(report.error)),
        )

    def tell_left_out(self) -> None:
        left_out, self._left_out = self._left_out, 0
        log.warning(f"… {left_out} failed runs not shown")


def _words(text: bytes) -> dict[str, str]:
    """The error in a sentence, and the line that raised it."""
    try:
        error = msgspec.json.decode(text, type=_Error | None) or _Error()
    except msgspec.MsgspecError:
        error = _Error()  # whatever it is, it goes to the job as it came
    sentence = ": ".join(filter(None, (error.type, error.message[:MESSAGE_CHARACTERS])))
    frames = _FRAME.findall(error.stack)
    words = {"error": sentence}
    if frames:
        words["where"] = ":".join(frames[-1])
    if error.stack:
        words["exception"] = _indented(error.stack)
    return words


def _indented(stack: str) -> str:
    """Below its line, and unlike one: what an error says must not look like words of others."""
    lines = stack[-STACK_CHARACTERS:].strip("\n").split("\n")
    return "\n".join(f"    {on_one_line(line)}" for line in lines)
