"""What handlers say by `ctx.log`, as lines of the worker's log: whose they are stands with them.

Written by the runner, so a log that nobody drains holds up who writes into it and never the keeper.
Bounded: a tenant's jobs have some lines a second, all of them together some more, and a line has a
length; so nobody fills the disk, and one that talks leaves room for the others.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from fairway.sdk.handler.context import JOB_LOGGERS, Ctx

LINES_PER_SECOND = 100
LINES_PER_SECOND_OF_A_TENANT = 20
LINE_CHARACTERS = 500
LEAST_LEVEL = logging.INFO


def write_to_stderr(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # a log that is closed, or full, fails no job


class JobLines:
    """Called from any thread."""

    def __init__(
        self,
        write: Callable[[str], None] = write_to_stderr,
        *,
        is_json: bool = True,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._is_json = is_json
        self._seconds = seconds
        self._second = 0
        self._said: Counter[str] = Counter()  # by tenant, in that second
        self._left_out = 0
        self._lock = threading.Lock()

    def tell(self, ctx: Ctx, level: int, line: str) -> None:
        if level < LEAST_LEVEL or _is_claimed(ctx, level):
            return
        left_out = self._turn_to(int(self._seconds()))
        if left_out:
            self._put({"event": "more lines of jobs were left out", "count": str(left_out)})
        if self._has_room(ctx.tenant):
            whose = {"job": ctx.job_id, "type": ctx.type, "tenant": ctx.tenant}
            self._put({"event": _cut(line), **whose}, logging.getLevelName(level).lower())

    def _turn_to(self, second: int) -> int:
        """How many lines the seconds before this one had no room for."""
        with self._lock:
            if second == self._second:
                return 0
            left_out, self._second, self._left_out = self._left_out, second, 0
            self._said.clear()
            return left_out

    def _has_room(self, tenant: str) -> bool:
        with self._lock:
            is_full = self._said.total() >= LINES_PER_SECOND
            if is_full or self._said[tenant] >= LINES_PER_SECOND_OF_A_TENANT:
                self._left_out += 1
                return False
            self._said[tenant] += 1
            return True

    def _put(self, words: dict[str, str], level: str = "warning") -> None:
        made_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        if self._is_json:
            self._write(json.dumps({**words, "level": level, "timestamp": made_at}))
            return
        event, *rest = words.items()
        named = " ".join(f"{name}={value}" for name, value in rest)
        self._write(f"{made_at} [{level:<9}] {_on_one_line(event[1]):<30} {named}")


def leave_job_lines_to_us() -> None:
    """Without this, lines of jobs that no handler takes would be written a second time."""
    if logging.lastResort is not None:
        logging.lastResort.addFilter(lambda record: not record.name.startswith(JOB_LOGGERS))


def _is_claimed(ctx: Ctx, level: int) -> bool:
    """An app that set up logging of its own has the line there already."""
    own = logging.getLogger(JOB_LOGGERS + ctx.type)
    return own.hasHandlers() and own.isEnabledFor(level)


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…"


def _on_one_line(text: str) -> str:
    """A line end, or what moves a terminal's cursor, would let a job write lines of others."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
