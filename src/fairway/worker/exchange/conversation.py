"""The conversation with one server: greet, say what is new, listen; and begin again when it breaks.

A worker has one with whatever server it finds, or, where several own the shards, one with each of
them (`owners.py`): each says what its part of the ledger holds and offers slots that no other has.
What a reply means for the runs here is the keeper's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from fairway.core.errors import FairwayError, Forbidden, Unavailable
from fairway.core.tenant import TENANT_SUSPENDED
from fairway.runtime.loops import pause, wait
from fairway.runtime.telemetry import logger
from fairway.wire import exchange as wire
from fairway.worker.exchange.journaled_ledger import JournaledLedger
from fairway.worker.exchange.large_results import LIGHT_BYTES
from fairway.worker.exchange.lease_ledger import Naming, Part
from fairway.worker.exchange.promises import Promises
from fairway.worker.exchange.readiness import Readiness
from fairway.worker.exchange.report_delay import patience
from fairway.worker.exchange.reporting import Keeping, Reporting
from fairway.worker.exchange.session import NO_ROOM, Session, is_refusal

log = logger("worker")

CALLS_MAX = 2  # one held open, one that speaks
LEASE_BEATS = 3  # a lease outlives so many beats


class Speaking(NamedTuple):
    """The keeper, as far as any of its conversations needs it."""

    key: str  # of the session: the same with every owner, for it is one worker
    books: JournaledLedger
    readiness: Readiness
    stopping: asyncio.Event
    next_number: Callable[[], int]  # of a call
    hello: Callable[[], wire.Hello]
    take_recycled: Callable[[], dict[Any, int]]
    has_room: Callable[[], bool]  # runners answer, and work is wanted
    greeted: Callable[[wire.ExchangeReply], None]  # a hello was taken
    act_on: Callable[[wire.ExchangeReply], int]  # answers how many jobs were begun


class OwnerPorts(NamedTuple):
    """Whoever holds the conversations together."""

    answered: Callable[[Conversation, wire.ExchangeRequest, wire.ExchangeReply], None]
    failed: Callable[[Conversation, FairwayError], None]
    offer: Callable[[Conversation, int], wire.SlotOffer | None]  # for the call of this number
    owners_version: Callable[[], int]


class Conversation:
    def __init__(
        self,
        session: Session,
        part: Part,
        speaking: Speaking,
        ports: OwnerPorts,
        promises: Promises | None = None,
        url: str = "",
    ) -> None:
        self.session = session
        self.part = part
        self.promises = promises  # None: one owner has all slots
        self.url = url  # of the owner; empty: whoever answers
        self._speaking = speaking
        self._ports = ports
        self._ledger = speaking.books.ledger
        keeping = Keeping(
            self._receive,
            self._failed,
            speaking.books.heard,
            lambda: self._takes_work,
            self._greeting,
            speaking.books.written,
        )
        self.reporting = Reporting(session, speaking.key, self._ledger, part, keeping)
        self._has_word = asyncio.Event()  # something to say, or somebody wants us to stop
        self._must_greet = True
        self._wants_more = False  # the last reply was full: ask for the rest without waiting
        self._naming, self._heartbeat_ms = Naming(), 3000
        self._begun = 0  # jobs that came with the last reply
        self.calls: set[asyncio.Task[None]] = set()
        self._failure: FairwayError | None = None
        self.failing_since: float | None = None  # no call succeeded since, by the monotonic clock

    async def talk(self) -> None:
        """Until the worker stops. Raises what makes going on pointless, such as a refused key."""
        while not self._speaking.stopping.is_set():
            await self._turn()

    def wake(self) -> None:
        self._has_word.set()

    def ask_again(self) -> None:
        """Say at once whether we take work, and how much."""
        self._wants_more = True
        self._has_word.set()

    def greet_again(self) -> None:
        """What the server knows of this worker may be wrong, or old."""
        self._must_greet = True
        self._has_word.set()

    def noted(self) -> None:
        """Runs have ended, or say something."""
        if self.part.heavy:
            self.reporting.add(self._ledger.take_heavy(self.part))
        self._has_word.set()

    def cancel(self) -> list[asyncio.Task[None]]:
        """It is over, in the middle of a word; answers what ends now."""
        tasks = [*self.calls, *self.reporting.cancel()]
        for task in tasks:
            task.cancel()
        self.session.close()
        return tasks

    async def speak(self) -> None:
        """One short call of a drain: says what is new, hears what is on disk."""
        self._call(wait_ms=200)
        await wait(self._has_word, 0.3)
        if self._failure is not None:
            await self._recover(self._failure)

    def goodbye(self) -> None:
        self._call(wait_ms=0, goodbye=True)

    # -- one turn ------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """One call, and a wait until there is reason for the next."""
        await self._linger()
        if self.part.has_news or self._is_urgent or not self.calls:
            # One call is held open to listen; one that speaks meanwhile, or first, need not wait.
            is_held = self._speaking.readiness.is_ready and (self._must_greet or not self.calls)
            has_offer = self.promises is not None and self.promises.is_news
            self._call(wait_ms=self._heartbeat_ms if is_held and not has_offer else 0)
        await self._until_word_or_reply()
        if self._failure is not None:
            await self._recover(self._failure)

    async def _linger(self) -> None:
        """While jobs still run, let reports gather; when all are done, speak at once."""
        now, part = time.monotonic(), self.part
        terms = patience(part.running, self._begun)
        listen_at, deadline = now + terms.listen_seconds, now + terms.linger_seconds
        while part.running and not self._is_urgent:
            now = time.monotonic()
            if now >= deadline or len(part.fresh) >= part.running:
                return
            if not self.calls and now >= listen_at:
                self._listen()
            self._has_word.clear()
            await wait(self._has_word, (deadline if self.calls else listen_at) - now)

    @property
    def _is_urgent(self) -> bool:
        return self._wants_more or self._must_greet or self._speaking.stopping.is_set()

    def _listen(self) -> None:
        """While reports gather, leases should find an open door: a call that says nothing."""
        if self._naming.is_due:
            self._call(wait_ms=self._heartbeat_ms)
            return
        self._send(self._request(wait_ms=self._heartbeat_ms))

    async def _until_word_or_reply(self) -> None:
        while self.calls and self._failure is None:
            await self._has_word.wait()
            has_reason = self.part.has_news or self._is_urgent
            is_over = self._speaking.stopping.is_set()
            if is_over or (has_reason and len(self.calls) < CALLS_MAX):
                return
            self._has_word.clear()

    async def _recover(self, error: FairwayError) -> None:
        is_pointless = is_refusal(error) and not self._ledger.running
        is_shut_out = isinstance(error, Forbidden) or is_pointless
        for call in self.calls:
            call.cancel()  # to the same address; the hello that follows says it all again
        self._must_greet = True  # a call given up may have been the hello itself
        self._failure = None
        self._ports.failed(self, error)
        if is_shut_out and error.code != TENANT_SUSPENDED:  # which ends, one day
            raise error
        seconds = self.session.next_pause_seconds()
        self._speaking.readiness.failed(error, seconds, self.session.asked)
        await pause(seconds)

    # -- what is said --------------------------------------------------------------------------

    def _call(self, *, wait_ms: int, goodbye: bool = False) -> None:
        self._has_word.clear()
        self._wants_more = False
        self._send(self._compose(wait_ms, goodbye))

    def _send(self, request: wire.ExchangeRequest) -> None:
        body = wire.encode(request)
        if len(body) > LIGHT_BYTES and request.reports and request.hello is None:
            self.reporting.add(request.reports)  # a heartbeat must not wait behind them
            request.reports = []
            body = wire.encode(request)
        task = asyncio.create_task(self._exchange(request, body), name="exchange")
        self.calls.add(task)
        task.add_done_callback(self._call_is_over)

    def _call_is_over(self, task: asyncio.Task[None]) -> None:
        """Off the list first, then the word: whoever wakes must not count it as under way."""
        self.calls.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(Unavailable(f"The exchange broke: {error!r}"))
            log.error("exchange broke", error=repr(error))
        self._has_word.set()

    def _compose(self, wait_ms: int, goodbye: bool) -> wire.ExchangeRequest:
        is_naming = self._naming.done() and not self._must_greet
        ledger, part = self._ledger, self.part
        if self._must_greet:
            request = self._greeting()
            request.reports = self.reporting.light_of(ledger.take_unheard(part))
            request.running = ledger.everything(request.reports)
            self._must_greet = False
            self.reporting.unknown()
        else:
            request = self._request(
                running=ledger.take_progress(part),
                reports=ledger.take_fresh(part),
                running_is_all=is_naming,
            )
            if is_naming:
                request.running = ledger.with_all_held(request.running or [])
        request.wait_ms, request.goodbye = wait_ms, goodbye
        return request

    def _greeting(self) -> wire.ExchangeRequest:
        return self._request(hello=self._speaking.hello(), running=[])

    def _request(self, **said: Any) -> wire.ExchangeRequest:
        number = self._speaking.next_number()
        return wire.ExchangeRequest(
            session=self._speaking.key,
            call=number,
            draining=not self._takes_work,
            recycled=self._speaking.take_recycled(),
            offer=self._ports.offer(self, number),
            owners=self._ports.owners_version(),
            **said,
        )

    @property
    def _takes_work(self) -> bool:
        return self._speaking.has_room() and not self.reporting.is_full

    # -- what is heard -------------------------------------------------------------------------

    async def _exchange(self, request: wire.ExchangeRequest, body: bytes) -> None:
        called_at = time.monotonic()
        try:
            reply = await self.session.exchange(request, [body])
            self._receive(reply, time.monotonic() - called_at)
        except FairwayError as error:
            self._unsaid(request, error)
        else:
            self._ports.answered(self, request, reply)
            if request.hello is not None and not reply.resync:
                self.reporting.greeted()
                self._speaking.greeted(reply)

    def _unsaid(self, request: wire.ExchangeRequest, error: FairwayError) -> None:
        """A call failed. If its reports may be why, or their size, it goes on without them."""
        is_refused = is_refusal(error)
        if is_refused:
            self._ledger.leave_unnamed(request.reports)
        if request.reports and (is_refused or error.code in (FairwayError.code, NO_ROOM)):
            self.reporting.add(request.reports)
            error = Unavailable(error.message)
        elif is_refused and request.hello is None and request.running:
            error = Unavailable(error.message)  # progress: the next word of it may be better
        self._failed(error)

    def _failed(self, error: FairwayError) -> None:
        self._failure = error
        self._must_greet = True
        if self.failing_since is None:
            self.failing_since = time.monotonic()
        self.reporting.unknown()
        self._has_word.set()

    def _receive(self, reply: wire.ExchangeReply, seconds: float) -> None:
        self.failing_since = None
        if seconds > LEASE_BEATS * reply.beat_ms / 1000:
            # This process was stopped for a while: the leases may be lost before they began.
            log.warning("reply is too old to act on; asking anew", seconds=round(seconds, 1))
            reply.leases, self._must_greet = [], True
        self._heartbeat_ms = reply.beat_ms
        self._wants_more = reply.more
        self._must_greet = self._must_greet or reply.resync or bool(reply.refused)
        if reply.resync:
            self.reporting.unknown()
        self._begun = self._speaking.act_on(reply)
