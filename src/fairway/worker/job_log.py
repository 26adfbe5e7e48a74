"""What handlers say by `ctx.log` and `logging`, as lines of the worker's log, with whose they are.

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

from fairway.core.redaction import Redaction
from fairway.runtime.log_options import LogOptions
from fairway.sdk.handler.context import JOB_LOGGERS, Ctx

LINES_PER_SECOND = 100
LINES_PER_SECOND_OF_A_TENANT = 20
LINE_CHARACTERS = 500


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
        options: LogOptions,
        write: Callable[[str], None] = write_to_stderr,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._level, self._is_json = options.level, options.is_json
        self._redaction = Redaction(options.redacted)
        self._seconds = seconds
        self._second = 0
        self._said: Counter[str] = Counter()  # by tenant, in that second
        self._dropped = 0
        self._lock = threading.Lock()

    def tell(self, ctx: Ctx, level: int, line: str, logger: str = "") -> bool:
        """Answers whether this is the first that had no room: then call `tell_dropped` soon."""
        if level < self._level or _is_claimed(logger or JOB_LOGGERS + ctx.type, level):
            return False
        if self._has_room(ctx.tenant):
            whose = {"job": ctx.job_id, "type": ctx.type, "tenant": ctx.tenant}
            told = {"event": self._redaction.text(_cut(line)), **whose}
            self._put(told, logging.getLevelName(level).lower())
            return False
        with self._lock:
            self._dropped += 1
            return self._dropped == 1

    def tell_dropped(self) -> None:
        """Say how many had no room since this was said last."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._put({"event": f"… {dropped} lines of jobs dropped"})

    def _has_room(self, tenant: str) -> bool:
        with self._lock:
            second = int(self._seconds())
            if second != self._second:
                self._second = second
                self._said.clear()
            is_full = self._said.total() >= LINES_PER_SECOND
            if is_full or self._said[tenant] >= LINES_PER_SECOND_OF_A_TENANT:
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
        self._write(f"{made_at} [{level:<9}] {on_one_line(event[1]):<30} {named}".rstrip())


def _is_claimed(logger: str, level: int) -> bool:
    """An app that set up logging of its own has the line there already."""
    own = logging.getLogger(logger)
    return own.hasHandlers() and own.isEnabledFor(level)


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…"


def on_one_line(text: str) -> str:
    """A line end, or what moves a terminal's cursor, would let a job write lines of others."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
