"""A line in the worker's log for each run that failed, so that the first one is not met by silence.

A handful a second at most: a type that fails a thousand times a second must not fill a disk. The
whole stack is with the job (`fairway jobs show ID`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease, Report

log = logger("worker")

LINES_PER_SECOND = 5
MESSAGE_CHARACTERS = 300

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


class _Error(Struct):
    type: str = ""
    message: str = ""
    stack: str = ""


class FailureLines:
    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._second = 0
        self._said = 0  # in that second
        self._left_out = 0

    def tell(self, lease: Lease, report: Report) -> None:
        second = int(self._seconds())
        if second != self._second:
            if self._left_out:
                log.warning("more runs failed", count=self._left_out)
            self._second, self._said, self._left_out = second, 0, 0
        if self._said >= LINES_PER_SECOND:
            self._left_out += 1
            return
        self._said += 1
        log.warning(
            "run failed", job=lease.job, type=lease.type, attempt=lease.attempt,
            failure=report.failure, **_words(bytes(report.error)),
        )  # fmt: skip


def _words(text: bytes) -> dict[str, str]:
    """The error in a sentence, and the line that raised it."""
    try:
        error = msgspec.json.decode(text, type=_Error | None) or _Error()
    except msgspec.MsgspecError:
        error = _Error()  # whatever it is, it goes to the job as it came
    sentence = ": ".join(filter(None, (error.type, error.message[:MESSAGE_CHARACTERS])))
    frames = _FRAME.findall(error.stack)
    return {"error": sentence} | ({"where": ":".join(frames[-1])} if frames else {})
