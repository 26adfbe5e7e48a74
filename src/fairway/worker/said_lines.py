"""What the runs of one runner say, gathered for the pipe: by any thread, within each run's room.

Bounded twice: a run has its room (`run_log.py`), and all of them together have so much that was not
sent yet; what is beyond is counted, and a mark tells of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from fairway.core.ids import Epoch
from fairway.core.run.run_log import LINES_MAX, RunLog, Taken, fitted, mark_text
from fairway.sdk.handler.context import Ctx
from fairway.worker.pipe.pipe import RunLine

UNSENT_LINES_MAX = 4 * LINES_MAX
MARK_LEVEL = 30
LEVEL_MAX = 1_000


class SaidLines:
    def __init__(self, level: int, unix_seconds: Callable[[], float] = time.time) -> None:
        self._level = level
        self._unix_seconds = unix_seconds
        self._logs: WeakKeyDictionary[Ctx, RunLog] = WeakKeyDictionary()
        self._unsent: list[RunLine] = []
        self._lock = threading.Lock()

    def add(self, ctx: Ctx, level: int, line: str) -> bool:
        """Answers whether it is the first that waits: then somebody must send it."""
        if level < self._level:
            return False
        text = fitted(line)
        with self._lock:
            log = self._logs.setdefault(ctx, RunLog())
            if len(self._unsent) >= UNSENT_LINES_MAX:
                log.drop()
                return False
            taken = log.take(level, len(text.encode()))
            if taken is None:
                return False
            was_empty = not self._unsent
            self._put(ctx, taken, level, text)
            return was_empty

    def end(self, ctx: Ctx) -> None:
        """The run is over: what was left out at its end is said now."""
        if not self._logs:
            return
        with self._lock:
            log = self._logs.get(ctx)
            if log is not None and (mark := log.last_mark()) is not None:
                self._mark(ctx, mark)

    def take(self) -> list[RunLine]:
        if not self._unsent:
            return []
        with self._lock:
            lines, self._unsent = self._unsent, []
            return lines

    def _put(self, ctx: Ctx, taken: Taken, level: int, text: str) -> None:
        if taken.mark is not None:
            self._mark(ctx, taken.mark)
        self._unsent.append(self._line(ctx, taken.number, level, text))

    def _mark(self, ctx: Ctx, mark: tuple[int, int]) -> None:
        number, dropped = mark
        self._unsent.append(self._line(ctx, number, MARK_LEVEL, mark_text(dropped), dropped))

    def _line(self, ctx: Ctx, number: int, level: int, text: str, dropped: int = 0) -> RunLine:
        at_ms = round(self._unix_seconds() * 1000)
        return RunLine(
            job=ctx.job_id,
            epoch=Epoch(ctx.epoch),
            n=number,
            at_ms=at_ms,
            level=min(level, LEVEL_MAX),
            text=text,
            dropped=dropped,
        )
