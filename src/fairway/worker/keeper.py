"""The keeper: a worker's side of the platform, in a process without user code.

It takes leases, hands them to runners, reports how runs ended and keeps beating whatever the
user's code does to its own interpreter. When a runner dies the keeper knows at once which jobs
died with it, reports them and starts another, with a pause that grows while they keep dying. How
it speaks with servers is in `exchange/conversation.py`, with how many in `exchange/owners.py`.

SIGTERM: no more leases; running jobs get until the end of the grace, then they are handed back
(no attempt used); then goodbye, and status 0. All of it ends in time, also when no server answers
any more; and at once when it is told so a second time.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from fairway.core.errors import Unavailable
from fairway.core.run.outcome import Outcome
from fairway.runtime.loops import done_before
from fairway.runtime.random_ids import session_key
from fairway.runtime.telemetry import logger
from fairway.wire import exchange as wire
from fairway.worker.exchange.conversation import Speaking
from fairway.worker.exchange.journaled_ledger import JournaledLedger
from fairway.worker.exchange.log_sender import LogSender
from fairway.worker.exchange.owners import Owners, surplus_of
from fairway.worker.exchange.readiness import Readiness
from fairway.worker.exchange.report_delay import LastWords
from fairway.worker.exchange.session import BYTES_PER_SECOND
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

GOODBYE_SECONDS = 5.0  # of the last call, and of those that are still under way


class Keeper:
    def __init__(self, options: WorkerOptions, spans: RunSpans | None = None) -> None:
        self._options = options
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
            on_quiet=lambda: self._owners.ask_again(),
            on_unable=self._give_in,
        )
        self._slots = sum(options.slots.values())
        self._fleet = Fleet(
            options.target,
            self._slots,
            self._enforcement,
            options.ceiling,
            ports,
            Orphans() if options.owns_process else None,
        )
        self._stopping = asyncio.Event()
        self._readiness = Readiness(
            options.name, lambda: self._owners.greet_again(), options.on_ready
        )
        self._owners = Owners(options, self._speaking())
        self._logs = LogSender(self._owners, self._ledger.running)
        self._transfers = Transfers(self._owners, self._ledger, self._fleet, self._noted)
        self._is_unable = self._is_hurried = False
        self._answered_at = 0.0  # when a server last did, by the monotonic clock

    def _speaking(self) -> Speaking:
        return Speaking(
            key=self._key,
            books=self._books,
            readiness=self._readiness,
            stopping=self._stopping,
            next_number=itertools.count(1).__next__,
            hello=self._hello,
            take_recycled=self._fleet.take_recycled,
            has_room=lambda: not (self._stopping.is_set() or self._fleet.is_quiet),
            greeted=self._greeted,
            act_on=self._act_on,
        )

    def stop(self) -> None:
        """Begin to drain; calling it again changes nothing."""
        was_stopping = self._stopping.is_set()
        self._stopping.set()
        self._owners.wake()
        if not was_stopping:
            log.info("draining", running=len(self._ledger.running))

    def hurry(self) -> None:
        """Whoever asked to stop will not wait for jobs: they are handed back now."""
        self._is_hurried = True
        self.stop()

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
            self._owners.noted()
            await self._owners.talk()
            await self._drain()
            if self._is_unable:
                raise Unavailable("No runner could be started any more; see the log above.")
        finally:
            await self._owners.stop()
            await self._transfers.stop()
            await self._logs.stop()
            await self._fleet.stop()
            await self._books.close()

    # -- the conversations -------------------------------------------------------------------

    def _hello(self) -> wire.Hello:
        return self._options.hello(self._fleet.types, self._enforcement.words())

    def _greeted(self, reply: wire.ExchangeReply) -> None:
        self._readiness.greeted(reply, self._fleet.type_names, self._enforcement.words())

    def _act_on(self, reply: wire.ExchangeReply) -> int:
        """What is lost is stopped, what is new is begun; answers how many jobs are."""
        self._answered_at = time.monotonic()
        if reply.dead:
            self._fleet.tell_dead(self._books.failed_runs.dead(reply.dead))
        self._books.heard(reply.recorded + reply.refused)
        if reply.refused:
            log.warning("outcomes refused: leases lost, or not storable", count=len(reply.refused))
        # What is lost goes first: the same reply may bring the same job under a new lease.
        lost = self._ledger.lost(reply.revoked, reply.revoked_epochs)
        self._fleet.give_up(lost + self._ledger.superseded(reply.leases))
        new = self._ledger.received(reply.leases)
        if self._owners.are_several:
            new = self._within_slots(new)
        if ready := self._transfers.prepare(new):
            self._fleet.run(ready)
        if reply.cancel:
            self._transfers.cancel(reply.cancel)
            self._fleet.cancel(reply.cancel)
        if reply.drain:
            self.stop()
        return len(new)

    def _within_slots(self, new: list[wire.Lease]) -> list[wire.Lease]:
        """Never more runs than slots, whatever owners send: the rest is handed back."""
        surplus = list(surplus_of(new, len(self._ledger.running), self._slots))
        if not surplus:
            return new
        log.warning("more leases than slots; handing back", jobs=len(surplus))
        for lease in surplus:
            self._ledger.ended(report_of(lease, returned(), 0))
        self._noted()
        return new[: len(new) - len(surplus)]

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
        self._owners.noted()

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
            await self._owners.speak()
        if self._ledger.running:
            log.info("grace is over, handing back", jobs=len(self._ledger.running))
            self._hand_back()
        await self._settle()
        if not self._is_hurried:
            await self._logs.finish()
        self._owners.goodbye()
        await asyncio.wait(self._owners.calls, timeout=GOODBYE_SECONDS)
        log.info("drained", settled=self._ledger.is_settled)

    async def _settle(self) -> None:
        """Until every report is heard of, or nobody is there to hear."""
        began_at = self._answered_at = time.monotonic()
        heavy_seconds = self._owners.bytes_left / BYTES_PER_SECOND
        while not self._ledger.is_settled:
            now = time.monotonic()
            silent_seconds = now - self._answered_at
            if LastWords(now - began_at, silent_seconds, heavy_seconds, self._is_hurried).are_over:
                return
            await self._owners.speak()

    def _hand_back(self) -> None:
        for lease in list(self._ledger.running.values()):
            self._ledger.ended(report_of(lease, returned(), 0))
        self._noted()
        self._fleet.kill_all()
