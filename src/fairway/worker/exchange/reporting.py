"""Reports that must not travel with heartbeats: heavy ones, and those that were refused.

They go in calls of their own, one at a time and bounded in bytes and number, while the keeper's
conversation goes on beside them; so a large result on a slow link costs nobody a lease. Such a call
has no number: it is heard however many hellos overtook it. What an earlier life left is said with a
hello, which names all that is held as any other does: what it left out would be sent again.

A call that is refused is halved until the one report is found that the platform will not take. The
job then ends as `permanent`, with the reason; a report that is refused even so is dropped. Nothing
is given up on the word of a server that refuses everything: an empty call is tried first.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec import Raw

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import FairwayError, Unavailable
from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.bounds import UNHEARD_MAX
from fairway.wire.exchange import NULL, ExchangeReply, ExchangeRequest, Report
from fairway.worker.exchange.large_results import LIGHT_BYTES, request_text, weight_of
from fairway.worker.exchange.lease_ledger import LeaseLedger, Part
from fairway.worker.exchange.session import NO_ROOM, Session, is_refusal
from fairway.worker.exchange.unacknowledged_results import UnacknowledgedResults, without_result

log = logger("worker")

CALL_BYTES_MAX = 8 << 20  # a single report may be larger, and then travels alone
CALL_REPORTS_MAX = 1000
HELD_BYTES_MAX = 64 << 20  # with so much to say, no more work is taken
ACK_SECONDS = 2.0  # how long a report that may be lost is waited for before it is said again
PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
REASON_MAX = 500
LOOK_SECONDS = 1.0  # from one look at what is held to the next


class Keeping(NamedTuple):
    """The keeper, as far as it is needed here."""

    hear: Callable[[ExchangeReply, float], None]
    fail: Callable[[FairwayError], None]  # a call failed: it will say hello
    drop: Callable[[list[int]], None]  # these reports are nobody's any more
    takes_work: Callable[[], bool]
    greeting: Callable[[], ExchangeRequest]  # a hello that names nothing yet
    written: Callable[[Iterable[int]], Awaitable[None]]  # until these reports are in the journal


class Reporting:
    def __init__(
        self, session: Session, key: str, ledger: LeaseLedger, part: Part, keeping: Keeping
    ) -> None:
        self._session = session
        self._key = key
        self._ledger = ledger
        self._part = part
        self._keeping = keeping
        self._waiting: deque[Report] = deque()
        self._parts: deque[list[Report]] = deque()  # of calls that were refused or broke
        self._parts_turn = False
        self._weights: dict[int, int] = {}  # number of a report that waits or is under way → bytes
        self._bytes = 0
        self._given_up: set[int] = set()
        self._is_greeted = asyncio.Event()
        self._has_work = asyncio.Event()
        self._greetings = 0
        self._broken_in_row = 0
        self._task: asyncio.Task[None] | None = None
        self._held = UnacknowledgedResults(HELD_BYTES_MAX)
        self._watch: asyncio.Task[None] | None = None
        self._is_stopped = False

    @property
    def bytes_left(self) -> int:
        return self._bytes

    @property
    def is_full(self) -> bool:
        has_many = self._ledger.unheard_count >= UNHEARD_MAX  # else its hello grows too long
        return has_many or max(self._bytes, self._held.bytes_held) >= HELD_BYTES_MAX

    def add(self, reports: Iterable[Report]) -> None:
        """These are said here, and nowhere else until they are through."""
        for report in reports:
            if report.n not in self._weights:
                self._weights[report.n] = weight_of(report)
                self._bytes += self._weights[report.n]
                self._waiting.append(report)
        if self._waiting:
            self._has_work.set()
            if self._task is None and not self._is_stopped:
                self._task = asyncio.create_task(self._run(), name="reports")

    def light_of(self, reports: Iterable[Report]) -> list[Report]:
        """Those that may go with a hello; the others are said here."""
        light, size = [], 0
        for report in reports:
            if report.n in self._weights:
                continue
            size += weight_of(report)
            if size > LIGHT_BYTES:
                self.add([report])
            else:
                light.append(report)
        return light

    def greeted(self) -> None:
        """The platform knows this session: it will hear reports."""
        self._greetings += 1
        self._is_greeted.set()
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_held(), name="held results")

    def unknown(self) -> None:
        """Until the next hello is answered, nobody may hear."""
        self._is_greeted.clear()

    def cancel(self) -> list[asyncio.Task[None]]:
        """No more is said; answers what ends now."""
        self._is_stopped = True
        tasks = [one for one in (self._task, self._watch) if one is not None]
        for task in tasks:
            task.cancel()
        return tasks

    # -- the calls ---------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            if not (self._parts or self._waiting):
                self._has_work.clear()
                await self._has_work.wait()
            await self._is_greeted.wait()
            if batch := self._next():
                try:
                    await self._say(batch)
                except Exception as error:  # a defect: what else there is must still be said
                    log.error("reports not said", count=len(batch), error=repr(error))
                    await self._put_off(batch)

    def _next(self) -> list[Report]:
        """In turns, so that neither parts that keep failing nor new reports starve the others."""
        self._parts_turn = not self._parts_turn
        if self._parts and (self._parts_turn or not self._waiting):
            return self._still_unheard(self._parts.popleft())
        batch: list[Report] = []
        size = 0
        while self._waiting and len(batch) < CALL_REPORTS_MAX:
            size += self._weights.get(self._waiting[0].n, 0)
            if batch and size > CALL_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return self._still_unheard(batch)

    def _still_unheard(self, batch: list[Report]) -> list[Report]:
        """As the ledger has them now; those that were heard of meanwhile are done with."""
        kept = [now for one in batch if (now := self._ledger.unheard(one.n)) is not None]
        self._forget({one.n for one in batch} - {one.n for one in kept})
        return kept

    def _forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._bytes -= self._weights.pop(number, 0)

    async def _say(self, batch: list[Report]) -> None:
        greetings = self._greetings
        try:
            await self._call(batch, with_hello=self._needs_hello(batch))
        except Exception as error:  # a reply that is none of ours counts as no reply
            if isinstance(error, FairwayError) and is_refusal(error):
                await self._refused(batch, error)
            elif isinstance(error, FairwayError) and error.code == NO_ROOM:
                await self._put_off(batch)
            else:
                await self._broke(batch, error)
            return
        self._broken_in_row = 0
        if self._greetings == greetings and self._is_greeted.is_set():
            self._forget(one.n for one in batch)
            self._given_up.difference_update([one.n for one in batch])
            return
        # A hello has overtaken it, or the reply was: who are you? Perhaps nobody heard it.
        self._parts.append(batch)
        await pause(ACK_SECONDS)

    async def _call(self, batch: list[Report], *, with_hello: bool) -> None:
        if with_hello:
            request = self._keeping.greeting()
            request.running = self._ledger.everything(batch)
        else:
            request = ExchangeRequest(session=self._key, draining=not self._keeping.takes_work())
        request.reports = batch
        await self._keeping.written([report.n for report in batch])
        called_at = time.monotonic()
        reply = await self._session.exchange(request, request_text(request))
        # Without leases there is nothing that could be too old to act on.
        self._keeping.hear(reply, time.monotonic() - called_at if reply.leases else 0.0)

    def _needs_hello(self, batch: list[Report]) -> bool:
        """Only with a hello is another session's lease ours."""
        return self._ledger.has_inherited(batch)

    async def _put_off(self, batch: list[Report]) -> None:
        """There was no room for it, and nothing else is wrong: the same again, later."""
        self._parts.append(batch)
        await self._rest()

    async def _broke(self, batch: list[Report], error: Exception) -> None:
        """Say them again in smaller calls, after a pause that grows; others go before them."""
        self._parts.extend(_halves(batch))
        self.unknown()
        if not isinstance(error, FairwayError):
            error = Unavailable(f"The exchange broke: {error!r}")
        self._keeping.fail(error)
        await self._rest()

    async def _rest(self) -> None:
        self._broken_in_row += 1
        await pause(backoff_seconds(PAUSE_FIRST_SECONDS, self._broken_in_row, PAUSE_MAX_SECONDS))

    # -- results that nobody takes -------------------------------------------------------------

    async def _watch_held(self) -> None:
        while True:
            await pause(LOOK_SECONDS)
            if self._is_greeted.is_set():
                unheard = self._ledger.all_unheard(self._part)
                self._give_up_results(self._held.look(unheard, self._weights, time.monotonic()))

    def _give_up_results(self, numbers: list[int]) -> None:
        if numbers:
            log.warning("results given up: the platform does not take them", count=len(numbers))
        for report in filter(None, map(self._ledger.unheard, numbers)):
            small = without_result(report)
            self._ledger.replace(small)
            self.add([small])

    # -- refusals ----------------------------------------------------------------------------

    async def _refused(self, batch: list[Report], error: FairwayError) -> None:
        if len(batch) > 1:
            self._parts.extend(_halves(batch))
            return
        try:
            await self._call([], with_hello=self._needs_hello(batch))
        except Exception as other:  # then it is not about this report
            await self._broke(batch, Unavailable(f"Every call is refused: {other}"))
            return
        self._give_up(batch[0], error)

    def _give_up(self, report: Report, error: FairwayError) -> None:
        facts = {"job": report.job, "kind": report.kind, "error": error.message[:REASON_MAX]}
        self._forget([report.n])
        if report.n in self._given_up:
            log.error("report refused for good; dropping it", **facts)
            self._given_up.discard(report.n)
            self._keeping.drop([report.n])
            return
        log.error("report refused; the job ends as permanent", **facts)
        self._given_up.add(report.n)
        small = given_up(report, error)
        self._ledger.replace(small)
        self.add([small])


def _halves(batch: list[Report]) -> list[list[Report]]:
    half = len(batch) // 2
    return [part for part in (batch[:half], batch[half:]) if part]


def given_up(report: Report, error: FairwayError) -> Report:
    """What is said in place of a report that the platform will not take."""
    message = (
        f"The run ended as {report.kind}, but its report was refused"
        f" ({error.code}: {error.message[:REASON_MAX]})."
    )
    document = {"type": "ReportRefused", "message": message, "stack": ""}
    return msgspec.structs.replace(
        report,
        kind=OutcomeKind.FAILED.value,
        failure=FailureClass.PERMANENT.value,
        result=NULL,
        error=Raw(msgspec.json.encode(document)),
        delay_ms=0,
        ran_us=0,
        follow_ups=None,
    )
