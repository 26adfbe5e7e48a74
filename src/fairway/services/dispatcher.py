"""The dispatcher: who runs what next, for the shards this server owns.

It is the one owner of its state: sessions, leases, windows and fair share live in memory and
change only here, inside one event loop, in plain synchronous steps; so there are no locks. It does
no I/O: leases that must be on disk first go to `write_leases`, ends of runs to `record_ends`, and
the loops beside it read the store and call back. Who goes next is decided in `core/fairness.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from fairway.core.backlog import WindowLimits
from fairway.core.fairness import PoolShare, Running
from fairway.core.holds import Holds
from fairway.core.ids import shard_of
from fairway.core.job import QueuedJob
from fairway.core.lease import may_adopt, next_epoch
from fairway.core.lifecycle import State
from fairway.core.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.pools import Pool
from fairway.core.probing import ProbingBacklog
from fairway.core.retry import Decision
from fairway.core.streams import StreamKey, key_of
from fairway.core.tenant import Tenant
from fairway.core.tombstones import Tombstones
from fairway.runtime.clock import Clock
from fairway.runtime.identity import lease_tokens
from fairway.runtime.telemetry import Metrics
from fairway.services.aftermath import Aftermath, tally_of
from fairway.services.pool_shares import Shares
from fairway.services.session_book import LEASES_PER_REPLY, SessionBook
from fairway.services.sessions import End, Holding, Lease, Session, waits


class Dispatcher(SessionBook):
    def __init__(
        self,
        *,
        clock: Clock,
        metrics: Metrics,
        limits: WindowLimits,
        scheduler: type[PoolShare] = PoolShare,
    ) -> None:
        super().__init__(clock)
        self._metrics = metrics
        self.backlog = ProbingBacklog(limits, clock.now_us)
        self.shares = Shares(self.pools, scheduler)
        self.terms: dict[int, int] = {}  # shard → the term under which this server owns it
        self.open_shards: set[int] = set()  # owned, and past the adoption of running leases
        self.trusted_until_us = 0  # past this moment another server may have taken over
        self.leases: dict[str, Lease] = {}
        self.tombstones = Tombstones()
        self.fresh: deque[Lease] = deque()  # granted lazily, oldest first, not written yet
        self.aftermath = Aftermath(clock, self.pools)
        self.write_leases: Callable[[list[Lease]], None] = _unconnected
        self.record_ends: Callable[[list[End]], None] = _unconnected
        self.want_reads: Callable[[], None] = lambda: None
        self.sort_out: Callable[[list[Lease]], list[Lease]] = lambda leases: leases

    # -- jobs arrive -------------------------------------------------------------------------

    def arrived(self, shard: int, jobs: Sequence[QueuedJob]) -> None:
        """Jobs of one shard are on disk and due."""
        if shard in self.open_shards:
            self._wake(self.backlog.arrived(self.tombstones.without_dead(jobs)))

    def hinted(self, shard: int, keys: Iterable[StreamKey]) -> None:
        """Another server wrote jobs; they will be read from the store."""
        if shard in self.open_shards:
            for key in keys:
                self.backlog.hinted(key, shard)
            self.want_reads()

    def _wake(self, woken: Iterable[tuple[int, int]]) -> None:
        now_us = self._clock.now_us()
        pools = set()
        for pool, tenant in woken:
            self.shares[pool].wake(tenant, now_us)
            pools.add(pool)
        for pool in pools:
            self._serve_waiting(pool, now_us)
        if self.backlog.wants_reads:
            self.want_reads()

    def refilled(self, keys: Iterable[StreamKey]) -> None:
        """Reads put jobs into these windows."""
        self._wake({(key.pool, key.tenant) for key in keys})

    # -- leases are granted ------------------------------------------------------------------

    def _serve_waiting(self, pool: int, now_us: int) -> None:
        waiting = list(self._waiting.values())
        for session in waiting:
            if session.warm_types and session.free(pool) > 0:
                self._serve(session, pool, now_us, session.warm_types)  # warm workers go first
        for session in waiting:
            if session.free(pool) > 0:
                self._serve(session, pool, now_us)
            if session.outbox:
                session.ring_soon(now_us)

    def serve(self, session: Session) -> None:
        """Give a session what its free slots can start."""
        now_us = self._clock.now_us()
        for pool in session.slots:
            if session.free(pool) > 0:
                self._serve(session, pool, now_us)
        if self.backlog.wants_reads:
            self.want_reads()

    def _serve(
        self, session: Session, pool: int, now_us: int, types: frozenset[int] | None = None
    ) -> None:
        if now_us >= self.trusted_until_us:
            return  # perhaps no longer the owner: grant nothing until the term is renewed
        share = self.shares[pool]
        free = min(session.free(pool), LEASES_PER_REPLY - len(session.outbox))

        def asleep(tenant: int) -> None:
            share.sleep(tenant, now_us)

        types = session.types if types is None else types
        take = self.backlog.taker(pool, types, self.leases, asleep)
        if session.tenant is None:
            lend = None
            if share.has_idle_reserve:
                fits = share.may_borrow
                lend = self.backlog.taker(pool, types, self.leases, asleep, fits)
            granted = share.grant(free, take, now_us, lend=lend)
        else:
            granted = share.grant_own(session.tenant, free, take, now_us)
        if granted:
            self._lease(session, self.pools.by_number[pool], granted, now_us)

    def _lease(
        self, session: Session, pool: Pool, granted: list[tuple[QueuedJob, Running]], now_us: int
    ) -> None:
        """Make grants into leases; lazy ones go out at once, others when they are on disk."""
        new, terms, leases = [], self.terms, self.leases
        only = next(iter(terms.values())) if len(terms) == 1 else None  # spares a look-up a job
        for (job, running), token in zip(granted, lease_tokens(len(granted)), strict=True):
            term = terms[shard_of(job.id)] if only is None else only
            lease = Lease(job, next_epoch(job.epoch, term), token, session, now_us)
            lease.running = running
            leases[job.id] = session.leases[job.id] = lease
            new.append(lease)
        session.in_use[pool.number] = session.in_use.get(pool.number, 0) + len(new)
        if any(job.timing for job, _ in granted):
            new = self.sort_out(new)  # one that came too late ends here
        # A job that ran before is looked up first, in any pool: it may be over by now.
        again = new if pool.lease_mode == "durable" else [one for one in new if one.job.epoch]
        if again:
            self.write_leases(again)
        if len(again) < len(new):
            first = [one for one in new if not one.job.epoch] if again else new
            session.outbox += first
            self.fresh.extend(first)
        self._metrics.granted.labels(pool.name).inc(len(new))
        self._metrics.pickup.observe_many(pool.name, waits(new, self._clock.unix_ms()))

    def written(self, lease: Lease) -> None:
        """The lease is on disk: now its worker may hear of it."""
        lease.written = True
        if lease.cancelling:  # asked to stop before it began: it never does
            self._end(lease, self._clock.now_us())
            cancelled = Decision(State.CANCELLED, tally_of(lease.job))
            self.record_ends([End(lease, None, 0, None, cancelled, said="cancelled")])
            return
        lease.session.outbox.append(lease)
        lease.session.ring()

    def not_written(self, lease: Lease) -> None:
        """The job was no longer free to run; nobody heard of this lease."""
        self._release(lease, self._clock.now_us())

    def revoke(self, lease: Lease) -> None:
        """The job is no longer this worker's to run; tell it so."""
        self._release(lease, self._clock.now_us())
        lease.session.revoked.append(lease.job.id)
        lease.session.ring()

    def take_stale_leases(self, older_than_us: int) -> list[Lease]:
        """Lazily granted leases that still run and are due to be written down."""
        stale = []
        while self.fresh and self.fresh[0].granted_us <= older_than_us:
            lease = self.fresh.popleft()
            if self.leases.get(lease.job.id) is lease and not lease.written:
                stale.append(lease)
        return stale

    # -- runs end ----------------------------------------------------------------------------

    def lease_of(self, session: Session, job: str, epoch: int, token: str) -> Lease | None:
        """The lease in force, if this is its holder; anything else can write nothing."""
        lease = self.leases.get(job)
        if lease is None or lease.epoch != epoch or lease.token != token:
            return None
        return lease if lease.session is session else None

    def succeeded(self, ends: list[End]) -> None:
        """Runs that ended well."""
        now_us = self._clock.now_us()
        for end in ends:
            self._end(end.lease, now_us)
            if end.number is not None:
                end.lease.session.recording.add(end.number)
        if self.aftermath.watched:
            self.aftermath.succeeded(end.lease.job for end in ends)
        self.record_ends(ends)

    def ended(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """A run ended otherwise than by success."""
        self._end(lease, self._clock.now_us())
        lease.session.recording.add(number)
        self.record_ends([self.aftermath.end_of(lease, number, outcome)])

    def lost(self, leases: Iterable[Lease]) -> None:
        """Their worker died or fell silent: costs a delivery, never an attempt."""
        now_us = self._clock.now_us()
        for lease in list(leases):
            self._end(lease, now_us)
            outcome = _LOST._replace(ran_us=max(now_us - lease.granted_us, 0))
            self.record_ends([self.aftermath.end_of(lease, None, outcome)])
            self._metrics.lost.inc()

    def settled(self, end: End) -> None:
        """The end of a run is on disk; a job that goes back to its queue is free again."""
        decision = end.decision
        if decision is not None and decision.state is State.QUEUED:
            tally = decision.tally
            job = end.lease.job._replace(
                epoch=end.lease.epoch, attempts=tally.attempts, deliveries=tally.deliveries,
                failures=tally.failures,
            )  # fmt: skip
            if end.lease.shard in self.open_shards and job.id not in self.tombstones:
                self.backlog.put_back(job)
                self._wake([(job.pool, job.tenant)])

    def _end(self, lease: Lease, now_us: int) -> None:
        """The run is over; until its end is on disk the store shows the job as it was before."""
        self._release(lease, now_us)
        self.backlog.ending.add(lease.job.id)

    def _release(self, lease: Lease, now_us: int) -> None:
        job, running = lease.job, lease.running
        self.leases.pop(job.id, None)
        lease.session.drop(lease)
        if self.backlog.has_lanes:
            self.backlog.run_ended(job)
        if running is not None:
            self.shares[job.pool].finish(running, now_us)
            lease.running = None

    # -- sessions ----------------------------------------------------------------------------

    def equip(self, session: Session, slots: dict[int, int]) -> None:
        """A session has said hello: its slots count towards the capacity of the pools."""
        session.slots = slots
        session.greeted = True
        self._recount()

    def end_session(self, session: Session) -> None:
        """Its process is gone: whatever it still held is lost."""
        self.sessions.pop(session.key, None)
        self._waiting.pop(session.key, None)
        self.lost(session.leases.values())
        session.ring()
        self._recount()

    def _recount(self) -> None:
        now_us = self._clock.now_us()
        here = [session for session in self.sessions.values() if session.greeted]
        for number, share in self.shares.items():
            # A tenant's own workers add nothing to what all tenants share.
            shared = [one for one in here if one.tenant is None]
            share.set_capacity(sum(one.slots.get(number, 0) for one in shared), now_us)
        self.backlog.set_runnable(frozenset().union(*(one.types for one in here)))
        if self.backlog.wants_reads:
            self.want_reads()

    def adopt(self, session: Session, job: QueuedJob, holding: Holding) -> bool:
        """A worker runs a job under a lease that an earlier owner granted and never wrote."""
        is_foreign = session.tenant is not None and session.tenant != job.tenant
        term = self.terms.get(shard_of(job.id))
        if is_foreign or term is None or job.id in self.leases:
            return False
        if not may_adopt(job.epoch, holding.epoch, term):
            return False
        self.backlog.remove(job.id, key_of(job))  # perhaps read as waiting before this was said
        self.restore(session, job, holding.epoch, holding.token, running_seconds=0.0)
        return True

    def restore(
        self, session: Session, job: QueuedJob, epoch: int, token: str, *, running_seconds: float
    ) -> Lease:
        """Put a lease of an earlier owner into force here."""
        now_us = self._clock.now_us()
        lease = Lease(job, epoch, token, session, now_us - round(running_seconds * 1e6))
        lease.delivered = True
        lease.running = self.shares[job.pool].adopt(
            job.tenant, job.type, lease.granted_us, now_us, own=session.tenant is not None
        )
        self.leases[job.id] = lease
        session.hold(lease)
        self.fresh.append(lease)
        return lease

    # -- shards ------------------------------------------------------------------------------

    def open_shard(self, shard: int) -> None:
        self.open_shards.add(shard)

    def close_shard(self, shard: int) -> None:
        """Another server owns it now: forget all of it, write nothing."""
        self.open_shards.discard(shard)
        self.terms.pop(shard, None)
        self.backlog.forget_shard(shard)
        for lease in [lease for lease in self.leases.values() if lease.shard == shard]:
            self._release(lease, self._clock.now_us())
        for session in self.sessions.values():
            session.greeted = False  # the next owner, be it this server, must hear what it runs
            session.ring()
        self._recount()

    # -- what operators decide -----------------------------------------------------------------

    def set_terms(self, tenant: Tenant) -> None:
        """A tenant's terms, for the backlog already queued too."""
        self.shares.set_terms(tenant, self._clock.now_us())

    def set_holds(self, holds: Holds) -> None:
        """What must not start from now on; what runs, runs on."""
        now_us = self._clock.now_us()
        for pool, tenant in self.backlog.set_holds(holds):
            self.shares[pool].sleep(tenant, now_us)
        if self.backlog.wants_reads:
            self.want_reads()


_LOST = Outcome(
    OutcomeKind.FAILED,
    0,
    failure=FailureClass.WORKER_CRASH,
    error=b'{"type":"WorkerLost","message":"The worker died or fell silent while it ran this."}',
)


def _unconnected(_: object) -> None:
    raise RuntimeError("The dispatcher was not connected to its store.")
