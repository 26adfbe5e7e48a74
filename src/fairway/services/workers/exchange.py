"""One exchange with a worker: hear it out, give it work, hold the call until there is news.

The order matters: first what it runs, then what it finished, then new leases; so a report is never
judged before the lease it belongs to is known again after a failover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairway.core.errors import Unavailable
from fairway.core.ids import PoolId, ShardId, parse_job_id
from fairway.core.lifecycle import State
from fairway.core.pools import SHORT, missing_labels
from fairway.core.run.follow_ups import WantedFollowUps
from fairway.core.run.lease import RAN_SLACK_US, LeaseStanding, standing_of
from fairway.core.run.outcome import OutcomeKind
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.watchers import Watchers
from fairway.services.registry.job_types import Registry
from fairway.services.registry.type_names import Brought, Namer
from fairway.services.sessions.calls import Call, Report
from fairway.services.sessions.hello import Hello, read_greeting
from fairway.services.sessions.sessions import End, Holding, Lease, News, Session
from fairway.services.transient_errors import told_if_away
from fairway.services.workers.failure_reports import receive_failures
from fairway.services.workers.lease_reconciler import LeaseReconciler
from fairway.services.workers.lost_leases import lose_in_parts
from fairway.services.workers.offer_answers import await_work
from fairway.store import leases

log = logger("exchange")

WAIT_MAX_SECONDS = 20.0
HEARTBEATS_PER_LEASE = 3
DOUBT_SECONDS = 1.0
LIGHT_RESULT_BYTES = 1 << 10  # no more than is known of its job anyway
NAMES_LOGGED = 10
SUCCEEDED = OutcomeKind.SUCCEEDED.value
RESTORE_WAIT_SECONDS = 2.0  # of a hello; its worker waits a second longer, and tries again


class Intake(NamedTuple):
    """What the recorder can take just now."""

    has_room: Callable[[Lease, int, int], bool]  # for a large result; with its report's number
    is_behind: Callable[[], bool]  # with writing results down
    is_aside: Callable[[str], bool]  # a job that ended, which cannot be written
    take_parent: Callable[[End, WantedFollowUps], None]  # a success that starts others


class Exchange:
    def __init__(
        self,
        turns: HotTurns,
        registry: Registry,
        dispatcher: Dispatcher,
        watchers: Watchers,
        metrics: Metrics,
        settings: Settings,
        intake: Intake,
    ) -> None:
        self._registry = registry
        self._directory = registry.directory
        self._settings = settings
        self._dispatcher = dispatcher
        self._lease_reconciler = LeaseReconciler(turns, dispatcher)
        self._watchers = watchers
        self._metrics = metrics
        self._has_room, self._is_behind, self._is_aside, self._take_parent = intake

    async def call(self, call: Call) -> News | None:
        """The news for this worker; None when it must say hello first."""
        with told_if_away:
            return await self._converse(call)

    async def _converse(self, call: Call) -> News | None:
        if call.hello is not None and self._dispatcher.is_restoring():
            await self._until_restored()
        if call.hello is None and self._dispatcher.session_of(call.session) is None:
            return None  # only a hello makes a session
        session = self._dispatcher.session(
            call.session, call.worker, call.tenant, call.api_key, call.only_tenants
        )
        if 0 < call.number < session.hello_number:  # a worker need not number its calls
            # Given up by its worker; or it came more slowly than a hello beside it, and then nobody
            # has heard its reports: the next hello brings them.
            return None if call.successes or call.failures else _nothing(session)
        if call.wait_seconds > 0 or call.hello is not None:
            session.wake()  # an older call that is still held has nothing more to wait for
        if call.hello is not None:
            session.begin_hello(call.number)
            self._take_over(session, call)
        elif not session.greeted:
            return None
        hellos = session.hellos
        await self._listen(session, call)
        if session.hellos != hellos:
            return _nothing(session)
        if not session.greeted or not self._dispatcher.has(session):
            return None
        session.drain(is_draining=call.draining)
        if call.goodbye:
            session.drain()  # it gets nothing more while what it held is given up
            await lose_in_parts(self._dispatcher, list(session.leases.values()))
            self._dispatcher.end_session(session)
            return self._dispatcher.news(session)
        self._hear_offer(session, call)
        news = await self._answer(session, hellos, call.wait_seconds)
        return news if call.hello is None else news._replace(refused_types=session.take_refused())

    async def _listen(self, session: Session, call: Call) -> None:
        """What it runs, then what has ended; then what it no longer names, if it named all."""
        running, unknown = call.running or [], []
        for why, count in call.recycled.items():
            self._metrics.recycled.labels(why).inc(count)
        if call.hello is not None:
            await self._greet(session, call, call.hello)
            self._lease_reconciler.note_ended(session, running)
        elif running:
            unknown = self._note_running(session, running, is_whole=call.is_whole)
        if await self._receive(session, call):
            self._ask_again(session, call)
        if call.hello is None and call.is_whole:
            await self._lease_reconciler.agree(session, running, unknown)
        if call.on_heard is not None:
            call.on_heard()
        if session.refusal is not None:  # its key was revoked while it was heard
            raise session.refusal

    # -- hello -------------------------------------------------------------------------------

    async def _until_restored(self) -> None:
        """While leases are being read from the store nobody can tell what a worker holds."""
        try:
            async with asyncio.timeout(RESTORE_WAIT_SECONDS):
                await self._dispatcher.until_restored()
        except TimeoutError:
            raise Unavailable(code="NOT_OWNER") from None

    def _claimed(self, call: Call) -> list[Holding]:
        """The leases that the reports of a hello claim: they stand or fall with the others."""
        named = {(one.job, one.epoch) for one in call.running or ()}
        return [
            Holding(one.job, self._directory.id_of(one.tenant), one.epoch, one.token)
            for one in _reports(call)
            if (one.job, one.epoch) not in named and parse_job_id(one.job) is not None
        ]

    async def _greet(self, session: Session, call: Call, hello: Hello) -> None:
        holdings = [*(call.running or ()), *self._claimed(call)]
        self._dispatcher.offer_slots(session, sum(hello.slots.values()))
        claims, lapses = self._dispatcher.claims(), self._dispatcher.lapses()
        hellos = session.hellos
        brought = await self._bring_types(session, hello)
        greeting = await read_greeting(hello, brought.ids)
        if session.hellos == hellos:  # else a newer one was read meanwhile, and holds
            session.runs(frozenset(greeting.types), brought.refused)
            session.describes_itself(hello.build, hello.limits)
            self._dispatcher.asks_for_policies(session.tenant, greeting.policies)
        if session.tenant is None:  # a tenant's own worker does not speak for everybody's types
            await self._registry.register(greeting.facts)
        session.fits(hello.labels, self._registry.warm_types(session.types, hello.warm_keys))
        await self._lease_reconciler.greeted(session, holdings)
        if self._dispatcher.claims() != claims:  # a shard came to us meanwhile: begin again
            raise Unavailable(code="NOT_OWNER")
        slots = self._slots(hello)
        session.beat_every(self._heartbeat_ms(slots))
        self._dispatcher.equip(session, self._offered(session, call, slots))
        if self._dispatcher.lapses() != lapses:
            session.doubt()  # a name of its own may have been let go meanwhile: it says them again

    async def _bring_types(self, session: Session, hello: Hello) -> Brought:
        """What there is no room for keeps nobody out: the worker hears of it and runs the rest."""
        namer = Namer() if session.tenant is None else Namer(session.tenant, by_worker=True)
        brought = await self._directory.names.bring(namer, hello.types, all_or_none=False)
        if namer.is_house and brought.refused:  # a tenant's own workers do not fill our log
            log.warning(
                "no room for names of job types that a worker says",
                worker=session.worker,
                count=len(brought.refused),
                types=brought.refused[:NAMES_LOGGED],
            )
        return brought

    def _offered(self, session: Session, call: Call, whole: dict[PoolId, int]) -> dict[PoolId, int]:
        """All of its slots, unless it serves other owners, too."""
        if call.offer is None:
            self._dispatcher.offers().forget(session.key)
            return whole
        return self._dispatcher.offers().hear(session, call.number, call.offer, whole)

    def _slots(self, hello: Hello) -> dict[PoolId, int]:
        """Slots by pool number; those of a pool whose labels the worker lacks do not count."""
        found = {}
        for name, slots in hello.slots.items():
            pool = self._dispatcher.pools.named(name, "/hello/slots")
            lacking = missing_labels(pool, hello.labels)
            if lacking:
                log.warning("slots do not count: labels missing", pool=name, labels=lacking)
            found[pool.number] = 0 if lacking else slots
        return found

    def _heartbeat_ms(self, slots: dict[PoolId, int]) -> int:
        """Three beats fit into the shortest lease of the pools that it serves."""
        pools = [self._dispatcher.pools.by_number[number] for number in slots] or [SHORT]
        return round(min(map(self._settings.lease_seconds_of, pools)) * 1000 / HEARTBEATS_PER_LEASE)

    def _take_over(self, session: Session, call: Call) -> None:
        """A worker's next life reports what the last one finished: the token proves its right."""
        for one in _reports(call):
            self._dispatcher.take_over(session, one.job, one.epoch, one.token)

    def _note_running(
        self, session: Session, holdings: list[Holding], *, is_whole: bool
    ) -> list[Holding]:
        """Progress of runs. Answers those of a whole list that the memory does not know."""
        note = self._dispatcher.note_progress
        shown = [holding.job for holding in holdings if note(session, holding)]
        self._lease_reconciler.note_ended(session, holdings)
        self._watchers.notify(shown)
        return self._lease_reconciler.unknown(session, holdings) if is_whole else []

    def _hear_offer(self, session: Session, call: Call) -> None:
        """It has more slots for this owner than before, or fewer; a hello was heard already."""
        if call.offer is None or call.hello is not None:
            return
        slots = self._dispatcher.offers().hear(session, call.number, call.offer)
        if slots != session.slots:
            self._dispatcher.equip(session, slots)

    # -- reports -----------------------------------------------------------------------------

    async def _receive(self, session: Session, call: Call) -> bool:
        """Answers whether some report can be judged only after a hello."""
        successes = call.successes
        if call.follow_ups:
            successes = [one for one in successes if one.n not in call.follow_ups]
        doubtful = self._receive_successes(session, successes)
        if call.follow_ups:
            doubtful += self._receive_parents(session, call)
        if call.failures:
            doubtful += await receive_failures(self._dispatcher, session, call.failures)
        return await self._judge(session, doubtful) if doubtful else False

    def _ask_again(self, session: Session, call: Call) -> None:
        """A hello brings a report together with its lease. After one that did not help, rest."""
        if call.hello is None:
            session.doubt()
        else:
            self._ask_later(session)

    def _receive_successes(self, session: Session, successes: Sequence[Report]) -> list[Report]:
        """Take what is under a lease in force; answers what is not.

        A large result is taken when there is room for it, and asked for again later if not.
        """
        ends, doubtful, recording = [], [], session.recording
        find, inline_bytes_max = session.leases.get, self._settings.inline_bytes_max
        latest_us = session.seen_us + RAN_SLACK_US
        if successes and self._is_behind():
            successes = self._put_off_results(session, successes)
        for one in successes:
            lease = find(one.job)
            if lease is not None and lease.epoch == one.epoch and lease.token == one.token:
                result, most_us = bytes(one.result), latest_us - lease.granted_us
                if len(result) > inline_bytes_max and not self._has_room(lease, one.n, len(result)):
                    continue
                ran_us = one.ran_us if one.ran_us <= most_us else most_us
                ends.append(End(lease, one.n, ran_us, result))
            elif one.n not in recording:
                doubtful.append(one)
        if ends:
            self._dispatcher.succeeded(ends)
        return doubtful

    def _receive_parents(self, session: Session, call: Call) -> list[Report]:
        """The same of those that start others: each is let in by itself."""
        doubtful, latest_us = [], session.seen_us + RAN_SLACK_US
        parents = [one for one in call.successes if one.n in call.follow_ups]
        if self._is_behind():
            self._ask_later(session)
            return []
        for one in parents:
            lease = self._dispatcher.lease_of(session, one.job, one.epoch, one.token)
            if lease is None:
                if one.n not in session.recording:
                    doubtful.append(one)
                continue
            result = bytes(one.result)
            is_large = len(result) > self._settings.inline_bytes_max
            if not is_large or self._has_room(lease, one.n, len(result)):
                ran_us = min(one.ran_us, latest_us - lease.granted_us)
                self._take_parent(End(lease, one.n, ran_us, result), call.follow_ups[one.n])
        return doubtful

    def _put_off_results(self, session: Session, successes: Sequence[Report]) -> list[Report]:
        """The store is behind: who brings results keeps them, and its slots with them.

        So nobody is given more to do than can be written down. They are said again with a hello.
        """
        light = [one for one in successes if len(one.result) <= LIGHT_RESULT_BYTES]
        if len(light) < len(successes):
            self._ask_later(session)
        return light

    def _ask_later(self, session: Session) -> None:
        asyncio.get_running_loop().call_later(DOUBT_SECONDS, session.doubt)

    async def _judge(self, session: Session, reports: list[Report]) -> bool:
        """Reports without a lease: recorded before and heard again, or too late.

        The job's row tells: it carries the epoch of the run that was recorded last. A lease that
        stands although the memory lacks it is put into force by a hello; then its report counts.
        """
        in_doubt = False
        asked = []
        for report in reports:
            if parse_job_id(report.job) is None:
                session.refuse([report.n])
            else:
                asked.append(report)
        tenant_of = self._directory.id_of
        wanted = [
            leases.NamedJob(self._shard(one), tenant_of(one.tenant), one.job) for one in asked
        ]
        rows = await self._lease_reconciler.rows(session, wanted)
        for report in asked:
            in_doubt |= self._answer_report(session, report, rows.get(report.job))
        return in_doubt

    def _answer_report(self, session: Session, report: Report, row: leases.HeldJob | None) -> bool:
        """Answers True when it gives no answer and this server must."""
        if row is not None and self._is_proved(session, report, row):
            stored, term = row.stored, self._dispatcher.term_of(self._shard(report))
            if stored.epoch == report.epoch and _may_be_from(report, stored.state):
                session.acknowledge([report.n])
                return False
            is_over = standing_of(stored, report.epoch, report.token, term) is LeaseStanding.OVER
            lease = self._dispatcher.lease_on(report.job)  # its own: it was found again meanwhile
            is_granted_anew = lease is not None and not lease.is_of(session, report.epoch)
            if not (is_over or is_granted_anew or self._is_aside(report.job)):
                return self._dispatcher.letting_go().is_ours_to_answer(self._shard(report))
        session.refuse([report.n])
        self._metrics.fenced.inc()
        return False

    def _shard(self, report: Report) -> ShardId:
        return self._dispatcher.homes().of_job(self._directory.id_of(report.tenant), report.job)

    def _is_proved(self, session: Session, report: Report, row: leases.HeldJob) -> bool:
        """Whether it may speak of this job, and was given the lease that it speaks of."""
        if not session.may_run(row.job.tenant):
            return False
        if (row.stored.epoch, row.stored.token) == (report.epoch, report.token):
            return True  # written by a server that made tokens in another way
        return self._dispatcher.is_real(report.job, report.epoch, report.token)

    # -- answer ------------------------------------------------------------------------------

    async def _answer(self, session: Session, hellos: int, wait_seconds: float) -> News:
        """What a hello has overtaken is heard by nobody, so it may take no news away."""
        self._dispatcher.serve(session)
        if not session.has_news and wait_seconds > 0:
            await self._hold(session, min(wait_seconds, WAIT_MAX_SECONDS))
            if session.refusal is not None:
                raise session.refusal
        return self._dispatcher.news(session) if session.hellos == hellos else _nothing(session)

    async def _hold(self, session: Session, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        poll = loop.create_future()
        session.hold_call(poll)
        over = loop.call_later(seconds, _give_up, poll)
        self._dispatcher.hold_open(session)
        await_work(self._dispatcher, session)
        try:
            await poll
        finally:
            over.cancel()
            if session.call_over(poll):
                self._dispatcher.let_go(session)


def _give_up(poll: asyncio.Future[None]) -> None:
    if not poll.done():
        poll.set_result(None)


def _nothing(session: Session) -> News:
    return News([], [], [], [], [], [], heartbeat_ms=session.heartbeat_ms)


def _reports(call: Call) -> list[Report]:
    return [*call.successes, *(report for report, _ in call.failures)]


def _may_be_from(report: Report, state: int) -> bool:
    """A lost lease leaves its epoch behind as well, on a job that waits: no success did that."""
    return state == State.SUCCEEDED if report.kind == SUCCEEDED else state != State.RUNNING
