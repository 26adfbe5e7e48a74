"""A fleet's own workers of one pool, as processes on this machine.

Those that may go are asked to end; one that crashed is replaced, with a growing pause while they
keep crashing. None outlives the fleet.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from fairway.cli.processes.work import APP_NOT_LOADED
from fairway.core.autoscale.division import Part, PoolWish, plan
from fairway.core.backoff import backoff_seconds
from fairway.core.errors import InvalidRequest
from fairway.runtime.loops import pause
from fairway.runtime.parent_death import die_with_parent
from fairway.runtime.telemetry import logger

log = logger("fleet")

PAUSE_FIRST_SECONDS = 0.5
PAUSE_MAX_SECONDS = 30.0
LONG_LIFE_SECONDS = 30.0  # whoever lived this long starts again without a grudge
DEAD_SECONDS = 330.0  # so long the platform may take one that died to be there
LATE_SECONDS = 60.0  # beyond the grace, in which a worker says what it still has to say
HURRIED_SECONDS = 10.0
STARTS_AT_ONCE = 10  # the next ones come with the next look


class AppCannotLoad(InvalidRequest):
    """No worker of this app will ever run as it is: to try again would not help."""


class FleetTerms(NamedTuple):
    """What a fleet's workers are started with."""

    pool: str
    words: tuple[str, ...]  # of `fairway worker`, with the app first
    grace_seconds: float
    part: Part = Part()


@dataclass(slots=True, eq=False)
class _Child:
    process: Process
    ended: asyncio.Task[int]
    began: float
    is_ending: bool = False

    def ask_to_end(self) -> None:
        if not self.is_ending:
            self.is_ending = True
            _send(self.process, signal.SIGTERM)


class FleetWorkers:
    """`act` on what the platform wants, again and again; `close` in the end."""

    def __init__(self, terms: FleetTerms, changed: asyncio.Event, name: str) -> None:
        self._terms = terms
        self._changed = changed  # set when a process ended: somebody should look
        self._name = name  # what its workers' names begin with
        self._children: dict[str, _Child] = {}
        self._made = 0
        self._deaths: deque[float] = deque(maxlen=1000)  # when workers ended that nobody asked to
        self._failures = 0  # in a row, soon after their start
        self._rests_until = 0.0

    @property
    def names(self) -> list[str]:
        """Of those that run and were not asked to end."""
        return [name for name, child in self._children.items() if not child.is_ending]

    async def act(self, wish: PoolWish) -> None:
        self._bury()
        now = _now()
        while self._deaths and now - self._deaths[0] > DEAD_SECONDS:
            self._deaths.popleft()
        todo = plan(wish, self._terms.part, self.names, len(self._deaths))
        for name in todo.end:
            log.info("worker is spared", worker=name, pool=self._terms.pool)
            self._children[name].ask_to_end()
        if now >= self._rests_until:
            await self._start_some(min(todo.start, STARTS_AT_ONCE))

    async def close(self, hurried: asyncio.Event) -> None:
        """Ask all; once more when somebody is in a hurry or they are late; then kill."""
        for child in self._children.values():
            child.ask_to_end()
        await self._all_ended(self._terms.grace_seconds + LATE_SECONDS, hurried)
        for child in self._living():
            _send(child.process, signal.SIGTERM)
        await self._all_ended(HURRIED_SECONDS)
        for child in self._living():
            log.error("worker does not end; killing it", pid=child.process.pid)
            _send(child.process, signal.SIGKILL)
            await child.ended

    def _living(self) -> list[_Child]:
        return [child for child in self._children.values() if not child.ended.done()]

    async def _all_ended(self, seconds: float, hurried: asyncio.Event | None = None) -> None:
        hurry = asyncio.create_task((hurried or asyncio.Event()).wait())
        late = asyncio.create_task(pause(seconds))
        while (living := self._living()) and not (hurry.done() or late.done()):
            waits: list[asyncio.Future[Any]] = [hurry, late, *(child.ended for child in living)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        late.cancel()

    async def _start_some(self, count: int) -> None:
        """What the machine has no room for just now is tried again later."""
        try:
            for _ in range(count):
                await self._start()
        except OSError as error:
            log.error("worker cannot be started", error=str(error), next_in_seconds=self._rest())

    async def _start(self) -> None:
        self._made += 1
        name = f"{self._name}-{self._made}"
        words = ("fairway", "worker", *self._terms.words, "--name", name)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *words,
            env={**os.environ, "FAIRWAY_DIE_WITH_PARENT": str(os.getpid())},
            start_new_session=True,
            preexec_fn=partial(die_with_parent, signal.SIGTERM),
        )
        ended = asyncio.create_task(process.wait(), name=name)
        ended.add_done_callback(lambda _: self._changed.set())
        self._children[name] = _Child(process, ended, _now())
        log.info("worker started", worker=name, pool=self._terms.pool, pid=process.pid)

    def _bury(self) -> None:
        for name in [name for name, one in self._children.items() if one.ended.done()]:
            child = self._children.pop(name)
            if not child.is_ending:
                self._died(name, child, child.ended.result())

    def _died(self, name: str, child: _Child, status: int) -> None:
        lived = _now() - child.began
        if status == APP_NOT_LOADED and self._made <= STARTS_AT_ONCE:
            raise AppCannotLoad(f"{self._terms.words[0]} cannot be loaded; see the words above.")
        self._deaths.append(_now())
        seconds = self._rest(has_failed=lived < LONG_LIFE_SECONDS)
        log.error("worker ended by itself", worker=name, status=status, next_in_seconds=seconds)

    def _rest(self, *, has_failed: bool = True) -> float:
        """Seconds before another is started: the more, the more have failed in a row."""
        self._failures = self._failures + 1 if has_failed else 0
        seconds = 0.0
        if self._failures:
            seconds = backoff_seconds(PAUSE_FIRST_SECONDS, self._failures, PAUSE_MAX_SECONDS)
        self._rests_until = _now() + seconds
        return seconds


def _now() -> float:
    return asyncio.get_running_loop().time()


def _send(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        process.send_signal(number)


def worker_words(target: str, pool: str, slots: int, flags: Sequence[str]) -> tuple[str, ...]:
    return (target, "--pool", f"{pool}={slots}", *flags)
