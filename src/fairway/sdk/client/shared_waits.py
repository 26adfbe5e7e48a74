"""Who waits for results in one process shares one call: it waits for all of their jobs.

The call is made on the event loop of `blocking.py`, in a thread of its own, so it serves every
loop and thread; a forked child makes its own. A newcomer's job is asked for with the others: the
call under way is given up, and the server answers that one at once. Each caller keeps its own
time-out, and who leaves disturbs nobody.
"""

from __future__ import annotations

import asyncio
import copy
import os
import random
import time
from collections.abc import Callable, Collection

from fairway.core.errors import FairwayError, NotFound
from fairway.core.ids import parse_job_id
from fairway.core.lifecycle import BY_LABEL
from fairway.sdk.client import blocking
from fairway.sdk.client.blocking import Driver
from fairway.sdk.client.job_calls import JSON, Asked
from fairway.sdk.client.received import decode_view
from fairway.sdk.http.addresses import Addresses
from fairway.sdk.http.backoff import pause_seconds
from fairway.sdk.http.transport import NotNow, Question
from fairway.sdk.http.unreachable import Unreachable
from fairway.wire.bulk import IDS_MAX, JobsEnded, WaitForJobs
from fairway.wire.messages import JobView, encode

HOLD_SECONDS_MAX = 10.0  # of one call; then it is asked again
TURN_SECONDS = 1.0  # where more wait than one call can name
GATHER_SECONDS = 0.005  # newcomers of the same moment
PER_JOB_SECONDS = 0.0001  # and longer, the more jobs a call has to name again
AGE_SECONDS, AGE_SECONDS_MAX = 0.02, 1.0  # of a call that is given up: it may be about to answer
REPLY_SECONDS = 5.0  # past what it was asked to wait
UNKNOWN = frozenset({"NOT_FOUND", "METHOD_NOT_ALLOWED", "UNEXPECTED_REPLY"})  # an older server

Decode = Callable[[bytes], JobsEnded]
Answer = JobView | FairwayError | None  # None: ask for this job alone


class Waiter:
    """One caller: its job, until when it waits, and where."""

    __slots__ = ("_future", "_loop", "ends_at", "job")

    def __init__(self, job: str, ends_at: float, loop: asyncio.AbstractEventLoop) -> None:
        self.job = job
        self.ends_at = ends_at
        self._loop = loop
        self._future: asyncio.Future[Answer] = loop.create_future()

    async def answered(self) -> Answer:
        return await self._future

    @property
    def has_left(self) -> bool:
        return self._future.done()

    def tell(self, answer: Answer) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake, answer)
        except RuntimeError:  # its loop was closed: nobody waits there any more
            pass

    def _wake(self, answer: Answer) -> None:
        if not self._future.done():
            self._future.set_result(answer)


class SharedWaits:
    """One server and one key. Safe for any thread and any event loop, and after a fork."""

    def __init__(
        self,
        addresses: Addresses,
        open_asked: Callable[[], Asked],
        decode: Decode,
        patience_seconds: float,
    ) -> None:
        """`open_asked` is called on the loop that makes the calls."""
        self._addresses = addresses
        self._open_asked = open_asked
        self._decode = decode
        share_seconds = addresses.share_seconds(patience_seconds)
        self._hold_seconds = min(HOLD_SECONDS_MAX, share_seconds / 2)
        self._line: WaitLine | None = None

    async def ended(self, job: str, seconds: float) -> JobView | None:
        """The job when it has ended, or as it is after so long; None: ask for it alone, as of a
        server that has no such call, and of a job that may have become another, or says why not.

        What is no id at all is refused here: it would spoil the call of everybody else.
        """
        known = parse_job_id(job)
        if known is None:
            raise NotFound(f"There is no job {job}.")
        waiter = Waiter(known, time.monotonic() + seconds, asyncio.get_running_loop())
        self._own_line().add(waiter)
        answer = await waiter.answered()
        if isinstance(answer, FairwayError):
            raise answer
        return answer

    def close(self) -> None:
        if self._line is not None:
            self._line.close()

    def _own_line(self) -> WaitLine:
        """Of this process: what was under way when it was forked is its parent's."""
        driver, line = blocking.driver(), self._line
        if line is None or line.driver is not driver:
            line = self._line = WaitLine(
                driver, self._addresses, self._open_asked, self._decode, self._hold_seconds
            )
        return line


class WaitLine:
    """Who waits, and the one call under way: on one event loop, but for `add`."""

    def __init__(
        self,
        driver: Driver,
        addresses: Addresses,
        open_asked: Callable[[], Asked],
        decode: Decode,
        hold_seconds: float,
    ) -> None:
        self.driver = driver
        self._loop = driver.loop
        self._addresses = addresses
        self._open_asked = open_asked
        self._decode = decode
        self._hold_seconds = hold_seconds
        self._asked: Asked | None = None
        self._caller = os.urandom(12).hex()
        self._waiters: dict[str, list[Waiter]] = {}
        self._news = asyncio.Event()  # somebody came
        self._running: asyncio.Task[None] | None = None
        self._tries = 0  # in a row that brought no answer
        self._last_error: FairwayError | None = None
        self._age_seconds = AGE_SECONDS

    def add(self, waiter: Waiter) -> None:
        try:
            self._loop.call_soon_threadsafe(self._add, waiter)
        except RuntimeError:
            raise Unreachable("this program is ending: it sends nothing any more") from None

    def close(self) -> None:
        if self._asked is not None and self.driver is blocking.driver():
            try:
                self._loop.call_soon_threadsafe(self._asked.close_idle)
            except RuntimeError:  # the loop was closed, and with it what was open
                pass

    def _add(self, waiter: Waiter) -> None:
        self._waiters.setdefault(waiter.job, []).append(waiter)
        self._news.set()
        if self._running is None or self._running.done():
            self._running = self._loop.create_task(self._run(), name="shared waits")

    async def _run(self) -> None:
        try:
            while self._waiters:
                await asyncio.sleep(GATHER_SECONDS + PER_JOB_SECONDS * len(self._waiters))
                self._news.clear()
                await self._round()
        except Exception as error:  # nobody may wait for what will never be
            wrong = f"the client could not ask or read it: {error!r}"
            self._tell_all(FairwayError(wrong))
            raise

    async def _round(self) -> None:
        self._forget_those_who_left()
        ids = list(self._waiters)[:IDS_MAX]
        if not ids:
            return
        now = time.monotonic()
        next_end = min(one.ends_at for some in self._waiters.values() for one in some)
        hold_seconds = min(max(next_end - now, 0.0), self._hold_seconds)
        if (
            len(self._waiters) > IDS_MAX
        ):  # more than one call can name: these are the last next time
            hold_seconds = min(hold_seconds, TURN_SECONDS)
            for job in ids:
                self._waiters[job] = self._waiters.pop(job)
        wanted = WaitForJobs(ids=ids, wait_seconds=hold_seconds, caller=self._caller)
        try:
            reply = await self._ask_until_news(wanted)
            if reply is not None:
                await self._told(reply)
                self._tries, self._last_error = 0, None
        except NotNow as not_now:
            self._tries, self._last_error = self._tries + 1, not_now.error
            await self._rest(not_now)
        except FairwayError as error:
            self._tell_all(None if error.code in UNKNOWN else error)
        await self._end_patience()

    async def _ask_until_news(self, wanted: WaitForJobs) -> JobsEnded | None:
        """None: somebody came meanwhile, and is to be asked for as well."""
        call, began = self._loop.create_task(self._ask(wanted)), time.monotonic()
        coming = self._loop.create_task(self._news.wait())
        try:
            await asyncio.wait({call, coming}, return_when=asyncio.FIRST_COMPLETED)
            age_seconds = time.monotonic() - began
            if not call.done() and age_seconds < self._age_seconds:
                await asyncio.wait({call}, timeout=self._age_seconds - age_seconds)
            if call.done():
                self._age_seconds = AGE_SECONDS
                return call.result()
            # A stream of newcomers must not keep every call from its answer.
            self._age_seconds = min(2 * self._age_seconds, AGE_SECONDS_MAX)
            return None
        finally:
            coming.cancel()
            call.cancel()

    async def _ask(self, wanted: WaitForJobs) -> JobsEnded:
        seconds = wanted.wait_seconds
        question = Question("POST", "/v1/jobs/wait", encode(wanted), JSON, wait_seconds=seconds)
        return self._decode(await self._ask_for(question, seconds))

    async def _ask_for(self, question: Question, wait_seconds: float) -> bytes:
        if self._asked is None:
            self._asked = self._open_asked()
        return await self._asked.attempt(question, wait_seconds + REPLY_SECONDS)

    async def _rest(self, not_now: NotNow) -> None:
        """A server that was not asked yet is asked at once; nobody's end is slept through."""
        if not_now.is_elsewhere and not self._addresses.are_all_tried(self._tries):
            return
        rounds = self._addresses.rounds(self._tries)
        pause = pause_seconds(rounds, not_now.retry_after_seconds, random.random())
        next_end = min(one.ends_at for some in self._waiters.values() for one in some)
        await asyncio.sleep(max(min(pause, next_end - time.monotonic()), 0.0))

    # -- telling -----------------------------------------------------------------------------

    async def _told(self, reply: JobsEnded) -> None:
        for view in reply.jobs:
            if BY_LABEL[view.state].is_final:
                self._tell(view.id, view)
        for job in reply.missing:
            self._tell(job, await self._by_itself(job))

    async def _by_itself(self, job: str) -> Answer:
        """A missing job may have become another, or been refused late: asked for alone it says so.
        None: it goes on. NotNow is for all who wait: with hundreds each would take as long."""
        try:
            view = decode_view(await self._ask_for(Question("GET", f"/v1/jobs/{job}"), 0))
        except FairwayError as error:
            return error
        return view if BY_LABEL[view.state].is_final else None

    async def _end_patience(self) -> None:
        """Those whose time is over hear how their jobs stand, in one question for all."""
        now = time.monotonic()
        late = [job for job, some in self._waiters.items() if any(w.ends_at <= now for w in some)]
        for start in range(0, len(late), IDS_MAX):
            some = late[start : start + IDS_MAX]
            found = {} if self._tries else await self._how_they_stand(some)
            for job in some:
                self._tell(job, found.get(job) or self._last_error, now)

    async def _how_they_stand(self, jobs: Collection[str]) -> dict[str, JobView]:
        found: dict[str, JobView] = {}
        try:
            while rest := [job for job in jobs if job not in found]:
                reply = await self._ask(WaitForJobs(ids=rest, all=True))
                if not reply.jobs:
                    break
                found |= {view.id: view for view in reply.jobs}
        except NotNow as not_now:
            self._last_error = not_now.error
        except FairwayError as error:
            self._last_error = error
        return found

    def _tell(self, job: str, answer: Answer, ends_by: float | None = None) -> None:
        """All who wait for the job; or those whose time is over by then."""
        waiters = self._waiters.pop(job, [])
        for waiter in waiters:
            if ends_by is None or waiter.ends_at <= ends_by:
                own = copy.copy(answer) if isinstance(answer, FairwayError) else answer
                waiter.tell(own)
            else:
                self._waiters.setdefault(job, []).append(waiter)

    def _tell_all(self, answer: Answer) -> None:
        for job in list(self._waiters):
            self._tell(job, answer)

    def _forget_those_who_left(self) -> None:
        for job, waiters in list(self._waiters.items()):
            if all(waiter.has_left for waiter in waiters):
                del self._waiters[job]
