"""The only file of servers and workers that rests.

A loop is `run_once(now_us) → seconds to rest`; this drives it.
A loop that raises is tried again after a pause that grows; it never ends in silence: the first
failure of an outage is logged, and that it is over, with their number (`core/backoff.py`). What
makes many loops fail together, as a database that is away does, is told by whoever watches that.
`wake()` cuts a rest short; `Wakeups` do so, too, and are there before the loops, so that whoever
has news for one knows it from birth. Tests call `run_once` and never sleep.

A process that has nothing to do pays for being woken, far more than for what it does then. So rests
end together: a long one a little sooner, never later, at a moment at which others end as well.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from math import ceil
from typing import Any, Protocol, TypeAlias, TypeVar

from fairway.core.backoff import Outage, ToldElsewhere, backoff_seconds
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import logger

log = logger("loop")

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
SLICE = 100  # a few tenths of a millisecond
SLICE_REST_SECONDS = 0.004
PART_SECONDS = 0.002  # some ten parts may stand before a job on its way

LONG_REST_SECONDS = 1.0  # a shorter one ends when its step says: something may be due just then
SHORTENED_PART = 0.25  # of a rest, at most
MOMENTS_MS = (1000, 500, 100)  # apart
_PHASE_MS = random.randrange(MOMENTS_MS[0])  # processes that started together take turns

Item = TypeVar("Item")


async def pause(seconds: float) -> None:
    """Rest inside a step: a retry, or a short wait for others."""
    await asyncio.sleep(seconds)


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Until the event, or until so many seconds have passed."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def done_before(event: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Whether this was done before the event; else it is given up. Raises what it raised."""
    working, asked = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        return working.done()
    finally:
        working.cancel()
        asked.cancel()
        await asyncio.gather(working, asked, return_exceptions=True)


async def in_slices(items: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    """A long list in parts, for upkeep: after each, others get several times as long as it took.

    A request passes through the event loop several times. If upkeep only let one turn pass between
    its parts, each request would wait for several of them.
    """
    for start in range(0, len(items), SLICE):
        began = time.monotonic()
        yield items[start : start + SLICE]
        if start + SLICE < len(items):
            await pause(max(SLICE_REST_SECONDS, 5 * (time.monotonic() - began)))


async def step_by_step(work: Iterable[object]) -> None:
    """As `in_slices`, for upkeep that says itself, each time it yields, where others may go on."""
    began = time.monotonic()
    for _ in work:
        await pause(max(SLICE_REST_SECONDS, 5 * (time.monotonic() - began)))
        began = time.monotonic()


class WorkInParts:
    """Work that has no natural parts: whoever does it asks often whether to let others go on."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def is_long(self) -> bool:
        """Whether others should have their turn now."""
        return time.monotonic() - self._began > PART_SECONDS

    async def let_others(self) -> None:
        if self.is_long:
            await pause(SLICE_REST_SECONDS)
            self._began = time.monotonic()


async def in_parts(work: Iterable[object]) -> None:
    """Work that says itself, each time it yields, where others may go on; not all of them need."""
    parts = WorkInParts()
    for _ in work:
        await parts.let_others()


class Effort:
    """How long upkeep took, to rest in proportion: what is large is looked at less often."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def rest_seconds(self, at_least: float, *, times: float = 4) -> float:
        return max(at_least, times * (time.monotonic() - self._began))


def rest_with_others_ms(rest_ms: int, now_ms: int) -> int:
    """A rest of so long, or a little less: until the last moment before its end, or nearer to it.

    So all that rest come to the same moments within a few rounds, and stay there.
    """
    for apart_ms in MOMENTS_MS:
        if apart_ms <= rest_ms:
            moment_ms = (now_ms + rest_ms) // apart_ms * apart_ms
            return max(moment_ms - now_ms, ceil(rest_ms * (1 - SHORTENED_PART)))
    return rest_ms


def common_rest(seconds: float) -> float:
    """For a step that has a short rest, and does not mind when exactly it ends."""
    now_ms = int(time.monotonic() * 1000) + _PHASE_MS  # as the event loop counts
    return rest_with_others_ms(int(seconds * 1000), now_ms) / 1000


Step: TypeAlias = Callable[[int], Awaitable[float]]  # now in µs → seconds to rest


class CommonCause(Protocol):
    """What may be behind failures of many loops at once. Whoever watches it tells of it."""

    def explains(self, error: Exception) -> ToldElsewhere:
        """Perhaps: then it is looked at now, and known when the loop tries again."""


class Loop:
    def __init__(
        self,
        name: str,
        run_once: Step,
        clock: Clock,
        awake: asyncio.Event | None = None,
        on_round: Callable[[], None] | None = None,  # one begins
        common: CommonCause | None = None,
    ) -> None:
        self.name = name
        self._common = common
        self._run_once = run_once
        self._clock = clock
        self._on_round = on_round
        self._awake = awake or asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._outage = Outage()
        self._last_error = ""

    @property
    def failures_in_row(self) -> int:
        return self._outage.failures

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"loop:{self.name}")

    def wake(self) -> None:
        self._awake.set()

    def cancel(self) -> None:
        """Ends it without waiting for that."""
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Safe to call twice, and before `start`."""
        if self._task is not None:
            self.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            self._awake.clear()
            if self._on_round is not None:
                self._on_round()
            await self._rest(await self._attempt())

    async def _attempt(self) -> float:
        try:
            rest_seconds = await self._run_once(self._clock.now_us())
        except Exception as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # a connection broke just then, and told so
                raise asyncio.CancelledError from error
            return self._failed(error)
        if (over := self._outage.worked(self._clock.now_us())) is not None:
            tell = log.debug if over.is_told_elsewhere else log.info
            tell(
                "loop recovered",
                loop=self.name,
                failures=over.failures,
                seconds=round(over.seconds, 1),
                last_error=self._last_error,  # it may be the only one, and not told before
            )
        return rest_seconds

    def _failed(self, error: Exception) -> float:
        """Answers how long to rest."""
        elsewhere = self._common.explains(error) if self._common else ToldElsewhere.NO
        is_told = self._outage.failed(type(error).__name__, self._clock.now_us(), elsewhere)
        self._last_error = repr(error)
        failures = self._outage.failures
        seconds = backoff_seconds(PAUSE_FIRST_SECONDS, failures, PAUSE_MAX_SECONDS)
        tell = log.warning if is_told else log.debug
        tell(
            "loop failed",
            loop=self.name,
            error=self._last_error,
            failures=failures,
            retry_in_seconds=seconds,
        )
        return seconds

    async def _rest(self, seconds: float) -> None:
        """A timer that wakes: `wait` ends by an exception, and dozens of rests a second end so."""
        if seconds >= LONG_REST_SECONDS:
            seconds = common_rest(seconds)
        timer = asyncio.get_running_loop().call_later(seconds, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()


class Wakeups:
    """What wakes the loops of one server, by their names: made before them and their services."""

    def __init__(self, given: Mapping[str, asyncio.Event]) -> None:
        self._events = dict(given)  # those that somebody else made

    def of(self, name: str) -> Callable[[], None]:
        """Wakes the loop of this name; one that never comes to be is an error of `loops`."""
        return self._event(name).set

    def wake_all(self) -> None:
        for event in self._events.values():
            event.set()

    def loops(
        self,
        steps: Mapping[str, Step],
        clock: Clock,
        on_round: Callable[[], None] | None = None,
        common: CommonCause | None = None,
    ) -> dict[str, Loop]:
        """The loops themselves, each with what wakes it."""
        if missing := self._events.keys() - steps.keys():
            raise LookupError(f"there is no loop to wake called {', '.join(sorted(missing))}")
        return {
            name: Loop(name, step, clock, self._event(name), on_round, common)
            for name, step in steps.items()
        }

    def _event(self, name: str) -> asyncio.Event:
        return self._events.setdefault(name, asyncio.Event())
