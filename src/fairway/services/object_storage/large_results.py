"""Results too large for a row, on their way to object storage: bounded in bytes, also per tenant.

While storage is away they wait here, and one of them tries it from time to time; when there is no
more room, a report is not taken: its lease stands, its worker keeps the bytes and its slot is free
for others. As soon as there is room the worker is asked to say all again that it has not heard of.

Nothing waits for ever: past the patience that its run is worth, a result is given up and the run
has failed for want of a dependency; the job is tried again by its policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from fairway.core.backoff import backoff_seconds
from fairway.core.backpressure.byte_room import ByteRoom
from fairway.core.errors import Unavailable
from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.object_storage.result_patience import not_kept, patience_seconds
from fairway.core.run.outcome import Outcome
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause, wait
from fairway.runtime.telemetry import logger
from fairway.services.sessions.sessions import End, Lease, Session

log = logger("large_results")

RETRY_SECONDS = 0.2
RETRY_SECONDS_MAX = 2.0
TRIES_MAX = 3  # of a result that storage does not take, though it is there
INVITE_SECONDS = 0.25  # from one worker that is asked again to the next
LOG_SECONDS = 1.0  # between two lines about the same thing, however many it is about


class _Unheard(NamedTuple):
    session: Session
    size_bytes: int


class _Untaken(NamedTuple):
    """A lease whose end was heard and not taken."""

    lease: Lease
    number: int  # of its report
    size_bytes: int
    ran_us: int
    since: float


class _ThrottledLog:
    """Says a thing at most once a second, with how many it was about."""

    def __init__(self, event: str, now: Callable[[], float]) -> None:
        self._event = event
        self._now = now
        self._count = 0
        self._due = 0.0

    def say(self, **facts: Any) -> None:
        self._count += 1
        if self._now() >= self._due:
            log.warning(self._event, count=self._count, **facts)
            self._count, self._due = 0, self._now() + LOG_SECONDS


class ResultPorts(NamedTuple):
    """What becomes of large results, and of reports that were not taken for want of room."""

    keep: Callable[[Lease, bytes], Awaitable[bytes]]  # in storage; answers a reference
    on_untaken: Callable[[Lease], None]  # its run needs no slot any more
    give_up_untaken: Callable[[Lease, int, Outcome], None]  # with its report's number
    on_kept: Callable[[End], None]  # with a reference in place of its result
    on_given_up: Callable[[End, Outcome], None]
    on_refused: Callable[[End, Exception], None]
    on_dropped: Callable[[Sequence[End]], None]


class LargeResults:
    def __init__(
        self, room: ByteRoom, clock: Clock, term_of: Callable[[ShardId], Term], ports: ResultPorts
    ) -> None:
        self._now: Callable[[], float] = lambda: clock.now_us() / 1e6
        self._room = room
        self._ports = ports
        self._term_of = term_of  # under which this server owns a shard; 0: it does not
        # by session and tenant, oldest first
        self._unheard: dict[tuple[str, TenantId], _Unheard] = {}
        self._untaken: dict[str, _Untaken] = {}  # by job, oldest first
        # tenant → when a result of hers last went through
        self._kept_at: dict[TenantId, float] = {}
        self._look_due = False
        self._is_back = asyncio.Event()
        self._is_probing = False
        self._failed_in_row = 0
        self.waiting: dict[str, str] = {}  # job → why storage did not take its result yet
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits = _ThrottledLog("large results wait", self._now)
        self._given_up = _ThrottledLog("results given up", self._now)
        self.patience = patience_seconds

    @property
    def bytes_held(self) -> int:
        return self._room.bytes_held

    def has_room(self, lease: Lease, number: int, size_bytes: int) -> bool:
        """Whether a report with so large a result may be taken now; its room is kept if so."""
        job, tenant = lease.job.id, lease.job.tenant
        if self._room.take((job, lease.epoch), tenant, size_bytes):
            self._untaken.pop(job, None)
            return True
        self._ports.on_untaken(lease)
        ran_us = lease.session.seen_us - lease.granted_us
        untaken = _Untaken(lease, number, size_bytes, ran_us, self._now())
        before = self._untaken.get(job)
        if before is not None and before.lease is lease:
            untaken = before._replace(number=number)
        self._untaken[job] = untaken
        self._unheard[lease.session.key, tenant] = _Unheard(lease.session, size_bytes)
        self._look_soon()
        return False

    def give_back(self, lease: Lease) -> None:
        """Its report found room, and there is nothing to keep after all."""
        self._room.give_back((lease.job.id, lease.epoch))

    def add(self, end: End) -> None:
        term = self._term_of(end.lease.shard)
        task = asyncio.create_task(self._keep(end, term), name="large result")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, end: End, term: Term) -> None:
        tries, until = 0, self._now() + self.patience(end.ran_us)
        try:
            while self._is_ours(end, term):  # else its worker reports it again, or elsewhere
                if await self._try_to_keep(end, term, tries):
                    return
                tries += 1
                await self._rest(until)
                if self._now() >= until and self._is_ours(end, term):
                    self._given_up.say(job=end.lease.job.id)
                    self._ports.on_given_up(end, not_kept(end.ran_us, len(end.result or b"")))
                    return
            self._ports.on_dropped([end])
        finally:
            self.waiting.pop(end.lease.job.id, None)
            self._room.give_back((end.lease.job.id, end.lease.epoch))
            self._invite()

    def _is_ours(self, end: End, term: Term) -> bool:
        """Under the term it was taken under: else its lease may be another's by now."""
        return term > 0 and self._term_of(end.lease.shard) == term

    async def _try_to_keep(self, end: End, term: Term, tries: int) -> bool:
        job = end.lease.job
        try:
            reference = await self._ports.keep(end.lease, end.result or b"")
        except Unavailable as error:
            self._is_back.clear()
            self._failed_in_row += 1
            self._waits.say(job=job.id, error=error.message)
            self.waiting[job.id] = error.message
            return False
        except Exception as error:
            log.error("storage refused a result", job=job.id, error=repr(error))
            if tries + 1 < TRIES_MAX or not self._is_ours(end, term):
                return False
            self._ports.on_refused(end, error)
        else:
            self._is_back.set()
            self._failed_in_row = 0
            self._kept_at[job.tenant] = self._now()
            if not self._is_ours(end, term):
                return False
            self._ports.on_kept(replace(end, result=reference))
        return True

    async def _rest(self, until: float) -> None:
        """Until it is worth another try: while storage is away, one tries for all."""
        while self._is_probing and (left := until - self._now()) > 0:
            await wait(self._is_back, min(left, RETRY_SECONDS_MAX))
            if self._is_back.is_set():
                return
        if not self._is_probing:
            self._is_probing = True
            seconds = backoff_seconds(RETRY_SECONDS, self._failed_in_row, RETRY_SECONDS_MAX)
            try:
                await pause(min(seconds, max(until - self._now(), 0.0)))
            finally:
                self._is_probing = False

    # -- those who were not heard --------------------------------------------------------------

    def _look_soon(self) -> None:
        if not self._look_due:
            self._look_due = True
            asyncio.get_running_loop().call_later(INVITE_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._look_due = False
        self._lose_patience(self._now())
        self._invite()

    def _lose_patience(self, now: float) -> None:
        """Give up what found no room for too long, while nothing of its tenant's went through."""
        for job, one in list(self._untaken.items()):
            since = max(one.since, self._kept_at.get(one.lease.job.tenant, 0.0))
            if now - since >= self.patience(one.ran_us):
                del self._untaken[job]
                self._given_up.say(job=job)
                outcome = not_kept(one.ran_us, one.size_bytes)
                self._ports.give_up_untaken(one.lease, one.number, outcome)
        if not self._untaken:
            self._kept_at.clear()

    def _invite(self) -> None:
        """Let the one that waits longest and finds room now say hello: it says all again."""
        for (key, tenant), (session, size_bytes) in self._unheard.items():
            if self._room.fits(tenant, size_bytes):
                del self._unheard[key, tenant]
                session.doubt()
                break
        if self._unheard or self._untaken:
            self._look_soon()
