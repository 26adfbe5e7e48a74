"""The keeper: a worker's conversation with the platform, in a process without user code.

It takes leases, hands them to runners, reports how runs ended and keeps beating whatever the
user's code does to its own interpreter. When a runner dies the keeper knows at once which jobs
died with it, reports them and starts another, with a pause that grows while they keep dying.

SIGTERM: no more leases; running jobs get until the end of the grace, then they are handed back
(no attempt used); then goodbye, and status 0. All of it ends in time, also when no server answers
any more; and at once when it is told so a second time.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from fairway.core.errors import FairwayError, Forbidden, Unavailable
from fairway.core.run.outcome import Outcome
from fairway.core.tenant import TENANT_SUSPENDED
from fairway.runtime.loops import done_before, pause, wait
from fairway.runtime.random_ids import session_key
from fairway.runtime.telemetry import logger
from fairway.wire import exchange as wire
from fairway.worker.exchange.journaled_ledger import JournaledLedger
from fairway.worker.exchange.large_results import LIGHT_BYTES
from fairway.worker.exchange.lease_ledger import Naming
from fairway.worker.exchange.log_sender import LogSender
from fairway.worker.exchange.readiness import Readiness
from fairway.worker.exchange.report_delay import LastWords, patience
from fairway.worker.exchange.reporting import Keeping, Reporting
from fairway.worker.exchange.session import BYTES_PER_SECOND, NO_ROOM, Session, is_refusal
from fairway.worker.exchange.synthetic_outcomes import returned
from fairway.worker.limits.confine import adopt_orphans
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.limits.usage import Orphans
from fairway.worker.options import WorkerOptions
from fairway.worker.pipe.pipe import RunnerMessage
from fairway.worker.pipe.run_messages import report_of
from fairway.worker.runners.fleet import Fleet, FleetPorts
from fairway.worker.transfers import Transfers

if TYPE_CHECKING:
    from fairway.worker.exchange.run_spans import RunSpans

log = logger("worker")

CALLS_MAX = 2  # one held open, one that speaks
LEASE_BEATS = 3  # a lease outlives so many beats
GOODBYE_SECONDS = 5.0  # of the last call, and of those that are still under way


class Keeper:
    def __init__(self, options: WorkerOptions, spans: RunSpans | None = None) -> None:
        self._options = options
        self._session = Session(options.urls, options.api_key, options.name)
        self._key = session_key()
        self._books = JournaledLedger(
            options.journal, self._key, options.urls, set(options.slots), spans
        )
        self._ledger = self._books.ledger
        self._enforcement = EnforcementLevel.find(options.cgroup)
        if options.owns_process:
            adopt_orphans()
        ports = FleetPorts(
            on_runner_message=self._receive_from_runner,
            on_end=self._run_ended,
            running=lambda: self._ledger.running,
            on_quiet=self._ask_again,
            on_unable=self._give_in,
        )
        self._fleet = Fleet(
            options.target,
            sum(options.slots.values()),
            self._enforcement,
            options.ceiling,
            ports,
            Orphans() if options.owns_process else None,
        )
        self._has_word = asyncio.Event()  # something to say, or somebody wants us to stop
        self._logs = LogSender(self._session, self._ledger.running)
        self._transfers = Transfers(self._session, self._ledger, self._fleet, self._noted)
        keeping = Keeping(
            self._receive,
            self._failed,
            self._books.heard,
            lambda: self._takes_work,
            self._greeting,
            self._books.written,
        )
        self._reporting = Reporting(self._session, self._key, self._ledger, keeping)
        self._readiness = Readiness(options.name, self._greet_again, options.on_ready)
        self._must_greet, self._is_unable, self._call_number = True, False, 0
        self._wants_more = False  # the last reply was full: ask for the rest without waiting
        self._naming, self._heartbeat_ms = Naming(), 3000
        self._begun = 0  # jobs that came with the last reply
        self._calls: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._is_hurried = False
        self._answered_at = 0.0  # when a server last did, by the monotonic clock
        self._failure: FairwayError | None = None

    def stop(self) -> None:
        """Begin to drain; calling it again changes nothing."""
        was_stopping = self._stopping.is_set()
        self._stopping.set()
        self._has_word.set()
        if not was_stopping:
            log.info("draining", running=len(self._ledger.running))

    def hurry(self) -> None:
        """Whoever asked to stop will not wait for jobs: they are handed back now."""
        self._is_hurried = True
        self.stop()

    def _ask_again(self) -> None:
        """Say at once whether we take work."""
        self._wants_more = True
        self._has_word.set()

    def _give_in(self) -> None:
        """Leases that nothing here can run are better with others, and somebody must hear of it."""
        jobs = len(self._ledger.running)
        if not self._is_unable:
            log.error("no runner can be started; handing back and ending", jobs=jobs)
        self._is_unable = True
        self.stop()

    async def run(self) -> None:
        """Until stopped. Raises what makes going on pointless: a refused key, a broken app."""
        try:
            if not await done_before(self._stopping, self._fleet.start()):
                return  # nobody waits for an app to load that is not wanted any more
            self._books.inherit()
            self._reporting.add(self._ledger.take_heavy())
            while not self._stopping.is_set():
                await self._turn()
            await self._drain()
            if self._is_unable:
                raise Unavailable("No runner could be started any more; see the log above.")
        finally:
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)
            await self._reporting.stop()
            await self._transfers.stop()
            await self._logs.stop()
            await self._fleet.stop()
            self._session.close()
            await self._books.close()

    # -- the conversation --------------------------------------------------------------------

    async def _turn(self) -> None:
        """One call, and a wait until there is reason for the next."""
        await self._linger()
        if self._ledger.has_news or self._is_urgent or not self._calls:
            # One call is held open to listen; one that speaks meanwhile, or first, need not wait.
            is_held = self._readiness.is_ready and (self._must_greet or not self._calls)
            self._call(wait_ms=self._heartbeat_ms if is_held else 0)
        await self._until_word_or_reply()
        if self._failure is not None:
            await self._recover(self._failure)

    async def _linger(self) -> None:
        """While jobs still run, let reports gather; when all are done, speak at once."""
        now = time.monotonic()
        terms = patience(len(self._ledger.running), self._begun)
        listen_at, deadline = now + terms.listen_seconds, now + terms.linger_seconds
        while self._ledger.running and not self._is_urgent:
            now = time.monotonic()
            if now >= deadline or self._ledger.fresh_count >= len(self._ledger.running):
                return
            if not self._calls and now >= listen_at:
                self._listen()
            self._has_word.clear()
            await wait(self._has_word, (deadline if self._calls else listen_at) - now)

    @property
    def _is_urgent(self) -> bool:
        return self._wants_more or self._must_greet or self._stopping.is_set()

    def _listen(self) -> None:
        """While reports gather, leases should find an open door: a call that says nothing."""
        if self._naming.is_due:
            self._call(wait_ms=self._heartbeat_ms)
            return
        self._send(self._request(wait_ms=self._heartbeat_ms))

    def _call(self, *, wait_ms: int, goodbye: bool = False) -> None:
        self._has_word.clear()
        self._wants_more = False
        self._send(self._compose(wait_ms, goodbye))

    def _send(self, request: wire.ExchangeRequest) -> None:
        body = wire.encode(request)
        if len(body) > LIGHT_BYTES and request.reports and request.hello is None:
            self._reporting.add(request.reports)  # a heartbeat must not wait behind them
            request.reports = []
            body = wire.encode(request)
        task = asyncio.create_task(self._exchange(request, body), name="exchange")
        self._calls.add(task)
        task.add_done_callback(self._call_is_over)

    def _call_is_over(self, task: asyncio.Task[None]) -> None:
        """Off the list first, then the word: whoever wakes must not count it as under way."""
        self._calls.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(Unavailable(f"The exchange broke: {error!r}"))
            log.error("exchange broke", error=repr(error))
        self._has_word.set()

    def _compose(self, wait_ms: int, goodbye: bool) -> wire.ExchangeRequest:
        is_naming = self._naming.done() and not self._must_greet
        if self._must_greet:
            request = self._greeting()
            request.reports = self._reporting.light_of(self._ledger.take_unheard())
            request.running = self._ledger.everything(request.reports)
            self._must_greet = False
            self._reporting.unknown()
        else:
            request = self._request(
                running=self._ledger.take_progress(),
                reports=self._ledger.take_fresh(),
                running_is_all=is_naming,
            )
            if is_naming:
                request.running = self._ledger.with_all_held(request.running or [])
        request.wait_ms, request.goodbye = wait_ms, goodbye
        return request

    def _greeting(self) -> wire.ExchangeRequest:
        hello = self._options.hello(self._fleet.types, self._enforcement.words())
        return self._request(hello=hello, running=[])

    def _request(self, **said: Any) -> wire.ExchangeRequest:
        self._call_number += 1
        said["recycled"] = self._fleet.take_recycled()
        return wire.ExchangeRequest(
            session=self._key, call=self._call_number, draining=not self._takes_work, **said
        )

    def _greet_again(self) -> None:
        """There may be room by now for types that were refused."""
        self._must_greet = True
        self._has_word.set()

    @property
    def _takes_work(self) -> bool:
        is_full = self._reporting.is_full or self._fleet.is_quiet
        return not (self._stopping.is_set() or is_full)

    async def _exchange(self, request: wire.ExchangeRequest, body: bytes) -> None:
        called_at = time.monotonic()
        try:
            reply = await self._session.exchange(request, [body])
            self._receive(reply, time.monotonic() - called_at)
        except FairwayError as error:
            self._unsaid(request, error)
        else:
            if request.hello is not None and not reply.resync:
                self._reporting.greeted()
                self._readiness.greeted(reply, self._fleet.type_names, self._enforcement.words())

    def _unsaid(self, request: wire.ExchangeRequest, error: FairwayError) -> None:
        """A call failed. If its reports may be why, or their size, it goes on without them."""
        is_refused = is_refusal(error)
        if is_refused:
            self._ledger.leave_unnamed(request.reports)
        if request.reports and (is_refused or error.code in (FairwayError.code, NO_ROOM)):
            self._reporting.add(request.reports)
            error = Unavailable(error.message)
        elif is_refused and request.hello is None and request.running:
            error = Unavailable(error.message)  # progress: the next word of it may be better
        self._failed(error)

    def _failed(self, error: FairwayError) -> None:
        self._failure = error
        self._must_greet = True
        self._reporting.unknown()
        self._has_word.set()

    async def _until_word_or_reply(self) -> None:
        while self._calls and self._failure is None:
            await self._has_word.wait()
            has_reason = self._ledger.has_news or self._is_urgent
            if self._stopping.is_set() or (has_reason and len(self._calls) < CALLS_MAX):
                return
            self._has_word.clear()

    async def _recover(self, error: FairwayError) -> None:
        is_pointless = is_refusal(error) and not self._ledger.running
        is_shut_out = isinstance(error, Forbidden) or is_pointless
        if is_shut_out and error.code != TENANT_SUSPENDED:  # which ends, one day
            raise error
        for call in self._calls:
            call.cancel()  # to the same address; the hello that follows says it all again
        self._must_greet = True  # a call given up may have been the hello itself
        self._failure = None
        seconds = self._session.next_pause_seconds()
        self._readiness.failed(error, seconds)
        await pause(seconds)

    def _receive(self, reply: wire.ExchangeReply, seconds: float) -> None:
        self._answered_at = time.monotonic()
        if seconds > LEASE_BEATS * reply.beat_ms / 1000:
            # This process was stopped for a while: the leases may be lost before they began.
            log.warning("reply is too old to act on; asking anew", seconds=round(seconds, 1))
            reply.leases, self._must_greet = [], True
        self._heartbeat_ms = reply.beat_ms
        self._wants_more = reply.more
        self._must_greet = self._must_greet or reply.resync or bool(reply.refused)
        if reply.resync:
            self._reporting.unknown()
        if reply.dead:
            self._fleet.tell_dead(self._books.failed_runs.dead(reply.dead))
        self._books.heard(reply.recorded + reply.refused)
        if reply.refused:
            log.warning("outcomes refused: leases lost, or not storable", count=len(reply.refused))
        # What is lost goes first: the same reply may bring the same job under a new lease.
        lost = self._ledger.lost(reply.revoked, reply.revoked_epochs)
        self._fleet.give_up(lost + self._ledger.superseded(reply.leases))
        new = self._ledger.received(reply.leases)
        self._begun = len(new)
        if ready := self._transfers.prepare(new):
            self._fleet.run(ready)
        if reply.cancel:
            self._transfers.cancel(reply.cancel)
            self._fleet.cancel(reply.cancel)
        if reply.drain:
            self.stop()

    # -- the runners -------------------------------------------------------------------------

    def _receive_from_runner(self, words: RunnerMessage) -> None:
        if words.lines:
            self._logs.add(words.lines)  # before their runs end
        note_end = self._ledger.ended
        for report in words.ended:
            note_end(report)
        for one in words.progress:
            self._ledger.progressed(one.job, one.progress)
        for wanted in words.checkpoints:
            self._transfers.save(wanted)
        self._noted()

    def _noted(self) -> None:
        """Runs have ended: journaled first, then said."""
        self._books.note()
        self._reporting.add(self._ledger.take_heavy())
        self._has_word.set()

    def _run_ended(self, lease: wire.Lease, end: Outcome) -> None:
        """A run that could not say so itself; the platform hears of it at once."""
        self._ledger.ended(report_of(lease, end, end.ran_us))
        self._noted()

    # -- the end -----------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Let jobs finish, hand the rest back, and stay until every report is heard of."""
        deadline = time.monotonic() + self._options.grace_seconds
        self._fleet.drain()
        while self._ledger.running and not self._is_hurried and time.monotonic() < deadline:
            await self._speak()
        if self._ledger.running:
            log.info("grace is over, handing back", jobs=len(self._ledger.running))
            self._hand_back()
        await self._settle()
        if not self._is_hurried:
            await self._logs.finish()
        self._call(wait_ms=0, goodbye=True)
        await asyncio.wait(self._calls, timeout=GOODBYE_SECONDS)
        log.info("drained", settled=self._ledger.is_settled)

    async def _settle(self) -> None:
        """Until every report is heard of, or nobody is there to hear."""
        began_at = self._answered_at = time.monotonic()
        heavy_seconds = self._reporting.bytes_left / BYTES_PER_SECOND
        while not self._ledger.is_settled:
            now = time.monotonic()
            silent_seconds = now - self._answered_at
            if LastWords(now - began_at, silent_seconds, heavy_seconds, self._is_hurried).are_over:
                return
            await self._speak()

    def _hand_back(self) -> None:
        for lease in list(self._ledger.running.values()):
            self._ledger.ended(report_of(lease, returned(), 0))
        self._noted()
        self._fleet.kill_all()

    async def _speak(self) -> None:
        """One short call of the drain: says what is new, hears what is on disk."""
        self._call(wait_ms=200)
        await wait(self._has_word, 0.3)
        if self._failure is not None:
            await self._recover(self._failure)
