"""What runs say, on its way to the platform: in calls of its own, beside everything else.

Best effort. A call that fails is tried again a few times, and then its lines are gone; a heartbeat,
a report or a run waits for none of it. What waits here is bounded, half of it for any one tenant;
what finds no room is counted, and a mark in its place tells of it. Marks are bounded as well.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import FairwayError
from fairway.core.run.run_log import mark_text
from fairway.runtime.loops import pause, wait
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease
from fairway.wire.run_logs import CALL_LINES_MAX, RUNS_MAX, KeepLines, RunLines, SaidLine
from fairway.worker.exchange.session import Caller, is_refusal
from fairway.worker.pipe.pipe import RunLine

log = logger("worker")

GATHER_SECONDS = 0.02  # from the first line to its call
APART_SECONDS = 0.1  # between two calls
CALL_SECONDS = 10.0
CALL_BYTES = 128 << 10  # of lines; their words around them come on top
WAITING_BYTES_MAX = 4 << 20
WITH_MARKS_BYTES_MAX = 5 << 20  # beyond which a run has not even a mark
MARK_BYTES = 100
LINE_BYTES = 60  # around a line's text
TRIES_MAX = 6
MARK_LEVEL = 30
TOLD_SECONDS = 60.0
PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS = 0.2, 2.0
LAST_WORDS_SECONDS = 2.0  # of a worker that ends


class LogSender:
    def __init__(self, session: Caller, running: Mapping[str, Lease]) -> None:
        self._session = session
        self._running = running
        self._waiting: dict[tuple[str, int], _WaitingRun] = {}  # by job and epoch, oldest first
        self.bytes_waiting = 0
        self._bytes_of: Counter[str] = Counter()  # by tenant
        self._has_lines = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_idle.set()
        self._told_at = float("-inf")

    def add(self, lines: Iterable[RunLine]) -> None:
        """Of runs that are under way here, under the lease that they run under; no others."""
        for line in lines:
            lease = self._running.get(line.job)
            if lease is not None and lease.epoch == line.epoch:
                self._keep(lease, line)
        if self._waiting:
            self._has_lines.set()
            self._is_idle.clear()
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="logs")

    def _keep(self, lease: Lease, line: RunLine) -> None:
        run = self._waiting.get((lease.job, lease.epoch))
        if run is None:
            run = self._waiting[lease.job, lease.epoch] = _WaitingRun(lease)
        said = SaidLine(
            n=line.n, at_ms=line.at_ms, level=line.level, text=line.text, dropped=line.dropped
        )
        size_bytes = _size(said)
        if self._has_room(lease.tenant, size_bytes, WAITING_BYTES_MAX):
            run.lines.append(said)
        elif run.ends_with_mark or self._has_room(lease.tenant, MARK_BYTES, WITH_MARKS_BYTES_MAX):
            size_bytes = run.drop(said)
        else:  # runs come and go while nobody takes lines: not even all their marks may wait
            self._forget_empty(lease)
            return
        self._counted(lease.tenant, size_bytes)

    def _has_room(self, tenant: str, size_bytes: int, most_bytes: int) -> bool:
        """In all, and in the half that any one tenant may have."""
        mine = self._bytes_of[tenant] + size_bytes
        return self.bytes_waiting + size_bytes <= most_bytes and mine <= most_bytes // 2

    def _forget_empty(self, lease: Lease) -> None:
        if not self._waiting[lease.job, lease.epoch].lines:
            del self._waiting[lease.job, lease.epoch]

    def _counted(self, tenant: str, size_bytes: int) -> None:
        self.bytes_waiting += size_bytes
        self._bytes_of[tenant] += size_bytes
        if self._bytes_of[tenant] <= 0:
            del self._bytes_of[tenant]

    async def finish(self) -> None:
        """The worker ends: what waits has a moment to get through."""
        await wait(self._is_idle, LAST_WORDS_SECONDS)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- the calls ---------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._has_lines.wait()
            await pause(GATHER_SECONDS)
            runs = self._next()
            try:
                await self._say(runs)
            except Exception as error:  # a defect: what comes after it must still be said
                log.error("lines of jobs not said", runs=len(runs), error=repr(error))
            if not self._waiting:
                self._has_lines.clear()
                self._is_idle.set()
            await pause(APART_SECONDS)

    def _next(self) -> list[RunLines]:
        """The oldest, as many as a call may carry; of a run that says much, a part."""
        runs: list[RunLines] = []
        left = _Room(CALL_BYTES, CALL_LINES_MAX)
        for key, run in list(self._waiting.items())[:RUNS_MAX]:
            count, size_bytes = left.take(run.lines)
            if not count:
                break
            runs.append(run.take(count))
            self._counted(run.tenant, -size_bytes)
            if run.lines:
                break
            del self._waiting[key]
        return runs

    async def _say(self, runs: list[RunLines]) -> None:
        body, tries = msgspec.json.encode(KeepLines(runs=runs)), 0
        while True:
            try:
                await self._session.call("POST", "/logs", body, CALL_SECONDS)
                return
            except FairwayError as error:
                tries += 1
                if is_refusal(error) or tries >= TRIES_MAX:
                    self._tell_lost(error)
                    return
            await pause(backoff_seconds(PAUSE_FIRST_SECONDS, tries, PAUSE_MAX_SECONDS))

    def _tell_lost(self, error: FairwayError) -> None:
        """Now and then: an older server takes no lines at all."""
        if time.monotonic() - self._told_at >= TOLD_SECONDS:
            self._told_at = time.monotonic()
            log.warning("lines of jobs are lost", error=error.message)


class _Room:
    """What a call may still carry; one line it carries in any case."""

    def __init__(self, bytes_left: int, lines_left: int) -> None:
        self._bytes_left = bytes_left
        self._lines_left = lines_left
        self._is_empty = True

    def take(self, lines: list[SaidLine]) -> tuple[int, int]:
        """How many of these lines fit, and their bytes."""
        count = size_bytes = 0
        for line in lines[: self._lines_left]:
            size = _size(line)
            if size_bytes + size > self._bytes_left and not (self._is_empty and not count):
                break
            count, size_bytes = count + 1, size_bytes + size
        self._bytes_left -= size_bytes
        self._lines_left -= count
        self._is_empty = self._is_empty and not count
        return count, size_bytes


class _WaitingRun:
    """Lines of one run that were not sent yet."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self.tenant = lease.tenant
        self.lines: list[SaidLine] = []

    @property
    def ends_with_mark(self) -> bool:
        return bool(self.lines and self.lines[-1].dropped)

    def drop(self, said: SaidLine) -> int:
        """A mark in place of this line, or of one more; answers how many bytes that takes."""
        before = 0
        dropped = max(said.dropped, 1)
        if self.ends_with_mark:
            said = self.lines.pop()
            before, dropped = _size(said), dropped + said.dropped
        mark = SaidLine(
            n=said.n, at_ms=said.at_ms, level=MARK_LEVEL, text=mark_text(dropped), dropped=dropped
        )
        self.lines.append(mark)
        return _size(mark) - before

    def take(self, count: int) -> RunLines:
        """The first so many, as they are said."""
        lines, self.lines = self.lines[:count], self.lines[count:]
        lease = self._lease
        return RunLines(
            job=lease.job,
            tenant=lease.tenant,
            epoch=lease.epoch,
            token=lease.token,
            attempt=lease.attempt,
            lines=lines,
        )


def _size(line: SaidLine) -> int:
    """As it is written: what JSON must escape takes several bytes."""
    return len(msgspec.json.encode(line.text)) + LINE_BYTES
