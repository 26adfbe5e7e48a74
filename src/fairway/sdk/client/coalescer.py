"""Jobs that the threads and tasks of a program hand in at the same moment travel in one call.

Callers only leave a ticket and wait. The calls are made on the event loop of `blocking.py`, in a
thread of its own, so that no caller waits for another's loop or thread. Whatever was sent once has
an Idempotency-Key: after a lost reply the call is sent again as it was, and its jobs are accepted
once. A job whose caller gave it a key goes by that, perhaps in other company. When and how much is
sent is decided in `gathering.py`.
"""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from fairway.core.errors import FairwayError, InvalidRequest, LimitReached
from fairway.sdk.client import blocking, gathering
from fairway.sdk.client.blocking import Driver
from fairway.sdk.client.job_calls import Answer, JobCalls, shared_key
from fairway.sdk.client.ticket import Ticket, wake_all
from fairway.sdk.http.addresses import Addresses
from fairway.sdk.http.backoff import pause_seconds
from fairway.sdk.http.transport import NotNow
from fairway.sdk.http.unreachable import Unreachable

SWEEP_SECONDS = 0.1
GRACE_SECONDS = 2.0  # past its patience, until a thread stops waiting for the loop itself


class Coalescer:
    """One server and one key. Safe for any thread and any event loop, and after a fork."""

    def __init__(
        self, addresses: Addresses, open_calls: Callable[[], JobCalls], patience_seconds: float
    ) -> None:
        """`open_calls` is called on the loop that makes the calls."""
        self._addresses = addresses
        self._open_calls = open_calls
        self._patience_seconds = patience_seconds
        self._line: Line | None = None

    async def submit(self, body: bytes, key: str | None, traceparent: str | None = None) -> str:
        loop, ends_at = asyncio.get_running_loop(), time.monotonic() + self._patience_seconds
        ticket = Ticket(body, key, ends_at, loop, traceparent)
        self._own_line().add(ticket)
        return _id_of(await ticket.answered(), self._addresses)

    def submit_blocking(self, body: bytes, key: str | None, traceparent: str | None = None) -> str:
        """Not for the thread of `blocking.py`, which would wait for itself."""
        ends_at = time.monotonic() + self._patience_seconds
        ticket = Ticket(body, key, ends_at, traceparent=traceparent)
        self._own_line().add(ticket)
        return _id_of(ticket.wait(self._patience_seconds + GRACE_SECONDS), self._addresses)

    def close(self) -> None:
        """Close what nobody uses; the next call opens anew."""
        if self._line is not None:
            self._line.close()

    def _own_line(self) -> Line:
        """Of this process: what was under way when it was forked is its parent's."""
        driver = blocking.driver()
        line = self._line
        if line is None or line.driver is not driver:
            line = self._line = Line(self._addresses, driver, self._open_calls)
        return line


class Call(NamedTuple):
    """Jobs that travel together."""

    tickets: list[Ticket]
    key: str | None  # one for all of them; None: each has its own
    is_unsure: bool = False  # a try of it may have been heard: its jobs must not part


class Line:
    """Who waits, and the calls under way: on one event loop, but for `add`."""

    def __init__(
        self, addresses: Addresses, driver: Driver, open_calls: Callable[[], JobCalls]
    ) -> None:
        self._addresses = addresses
        self.driver = driver
        self._loop = driver.loop
        self._open_calls = open_calls
        self._job_calls: JobCalls | None = None
        self._waiting: deque[Ticket] = deque()
        self._calls: dict[asyncio.Task[None], list[Ticket]] = {}
        self._jobs_max = gathering.JOBS_MAX
        self._wanted = 1  # so many must wait before anybody need look
        self._is_look_due = False
        self._is_sweep_due = False

    def add(self, ticket: Ticket) -> None:
        """From any thread. The order of the two steps here and of those in `_look` is what makes
        sure that nobody is left waiting."""
        self._waiting.append(ticket)
        if len(self._waiting) >= self._wanted and not self._is_look_due:
            self._is_look_due = True
            try:
                self._loop.call_soon_threadsafe(self._look)
            except RuntimeError:
                raise Unreachable("this program is ending: it sends nothing any more") from None

    def close(self) -> None:
        """From any thread."""
        if self._job_calls is not None and self.driver is blocking.driver():
            try:
                self._loop.call_soon_threadsafe(self._job_calls.close)
            except RuntimeError:  # the loop was closed, and with it what was open
                pass

    def _look(self) -> None:
        self._is_look_due = False
        while True:
            self._wanted = gathering.jobs_wanted(len(self._calls))
            if len(self._waiting) < self._wanted:
                break
            if tickets := self._take():
                self._begin(Call(tickets, shared_key(tickets)))
        if not self._is_sweep_due and (self._calls or self._waiting):
            self._is_sweep_due = True
            self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _begin(self, call: Call) -> None:
        task = self._loop.create_task(self._send(call))
        self._calls[task] = call.tickets
        task.add_done_callback(self._done)

    def _take(self) -> list[Ticket]:
        """The first of those that still wait, as many as make one call."""
        first = islice(self._waiting, gathering.JOBS_MAX)
        end = gathering.call_end([ticket.size_bytes for ticket in first], self._jobs_max)
        taken = [self._waiting.popleft() for _ in range(end)]
        return [ticket for ticket in taken if not ticket.is_over]

    def _done(self, task: asyncio.Task[None]) -> None:
        tickets = self._calls.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            wrong = f"the client could not send or read it: {error!r}"
            _tell((ticket, FairwayError(wrong)) for ticket in tickets)
        self._look()

    # -- one call --------------------------------------------------------------------------------

    async def _send(self, call: Call) -> None:
        if self._job_calls is None:
            self._job_calls = self._open_calls()
        tickets = call.tickets
        left_seconds = max(ticket.ends_at for ticket in tickets) - time.monotonic()
        try:
            answers = await self._job_calls.send(tickets, call.key, left_seconds)
        except NotNow as not_now:
            self._not_now(call, not_now)
        except FairwayError as error:
            # Of its text alone; but what may be on disk under its key goes under no other.
            if isinstance(error, InvalidRequest) and len(tickets) > 1 and not call.is_unsure:
                self._split(tickets)
                return
            _tell((ticket, _own_copy(error)) for ticket in tickets)
        else:
            self._jobs_max = gathering.larger(self._jobs_max)
            again = _tell(zip(tickets, answers, strict=True))
            if again and call.key is not None:  # those that were taken are answered as they were
                self._rest_together(call, again[0][1])
            else:
                self._rest(again)

    def _not_now(self, call: Call, not_now: NotNow) -> None:
        is_limit = isinstance(not_now.error, LimitReached)
        if is_limit and not call.is_unsure and len(call.tickets) > 1:
            self._split(call.tickets)
        elif call.key is not None and (call.is_unsure or not_now.is_sent):
            self._rest_together(call, not_now)
        else:
            self._rest([(ticket, not_now) for ticket in call.tickets])

    def _split(self, tickets: list[Ticket]) -> None:
        """The call was refused as a whole: they go again at once, fewer at a time."""
        self._jobs_max = gathering.smaller(len(tickets))
        self._waiting.extendleft(reversed(tickets))

    def _rest_together(self, call: Call, not_now: NotNow) -> None:
        """It comes again as it was: nobody knows whether it was heard, and it has one key."""
        sample, now, waiting = random.random(), time.monotonic(), call.tickets
        pause = max(self._pause_of(ticket, not_now, sample) for ticket in waiting)
        late = [ticket for ticket in waiting if now + pause >= ticket.ends_at]
        _tell((ticket, _own_copy(not_now.error)) for ticket in late)
        if any(not ticket.is_over for ticket in waiting):
            self._loop.call_later(pause, self._begin, call._replace(is_unsure=True))

    def _rest(self, tickets: Iterable[tuple[Ticket, NotNow]]) -> None:
        """They come again after a pause, if their callers wait for so long."""
        sample, now = random.random(), time.monotonic()
        by_pause = defaultdict[float, list[Ticket]](list)
        for ticket, not_now in tickets:
            pause = self._pause_of(ticket, not_now, sample)
            if now + pause < ticket.ends_at:
                by_pause[pause].append(ticket)
            else:
                _tell([(ticket, _own_copy(not_now.error))])
        for pause, together in by_pause.items():
            self._loop.call_later(pause, self._come_again, together)

    def _pause_of(self, ticket: Ticket, not_now: NotNow, sample: float) -> float:
        """Seconds until its next try; none, while there is an address that was not tried."""
        tries, after = ticket.tried(not_now.error), not_now.retry_after_seconds
        is_next = not_now.is_elsewhere and not self._addresses.are_all_tried(tries)
        return 0.0 if is_next else pause_seconds(self._addresses.rounds(tries), after, sample)

    def _come_again(self, tickets: list[Ticket]) -> None:
        self._waiting.extendleft(reversed(tickets))
        self._look()

    # -- patience --------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Tell those whose patience is over while their call, or one before it, hangs."""
        self._is_sweep_due = False
        now = time.monotonic()
        under_way = [ticket for tickets in self._calls.values() for ticket in tickets]
        late = [ticket for ticket in (*under_way, *self._waiting) if ticket.ends_at <= now]
        for ticket in late:
            _tell([(ticket, _own_copy(ticket.last_error or _silent(self._addresses)))])
        self._look()


def _tell(answers: Iterable[tuple[Ticket, Answer]]) -> list[tuple[Ticket, NotNow]]:
    """Tell each its answer; those that are to come again are handed back."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Ticket]] = {}
    again = []
    for ticket, answer in answers:
        if isinstance(answer, NotNow):
            again.append((ticket, answer))
        elif (loop := ticket.tell(answer)) is not None:
            by_loop.setdefault(loop, []).append(ticket)
    for loop, tickets in by_loop.items():
        try:
            loop.call_soon_threadsafe(wake_all, tickets)
        except RuntimeError:  # it was closed: nobody waits there any more
            pass
    return again


def _own_copy(error: FairwayError) -> FairwayError:
    """Each caller raises its own: a traceback is one caller's."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own


def _silent(addresses: Addresses) -> Unreachable:
    return Unreachable(f"{addresses} gave no answer in time; is the server running?")


def _id_of(answer: str | FairwayError | None, addresses: Addresses) -> str:
    if isinstance(answer, str):
        return answer
    raise answer or _silent(addresses)
