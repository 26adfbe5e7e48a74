"""Granting: which waiting jobs go to which worker, as leases. The first half of the dispatcher.

Who goes next is decided in `core/fair_share/fairness.py`; here a worker's free slots meet the
windows, grants become leases, and leases go out: lazy ones at once, others when they are on disk.
No I/O.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from fairway.core.backlog.backlog import WindowLimits
from fairway.core.backlog.probing import ProbingBacklog
from fairway.core.backlog.streams import StreamKey
from fairway.core.backlog.tombstones import Tombstones
from fairway.core.failure.retry import Decision
from fairway.core.fair_share.fairness import PoolShare, Running
from fairway.core.ids import shard_of
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.pools import Pool
from fairway.core.run.lease import next_epoch
from fairway.runtime.clock import Clock
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.pool_shares import Shares
from fairway.services.failure.failure_policy import Aftermath, tally_of
from fairway.services.sessions.held_calls import HeldCall, Line
from fairway.services.sessions.session_table import LEASES_PER_REPLY, SessionBook
from fairway.services.sessions.sessions import End, Lease, Session, waits


class Granting(SessionBook):
    def __init__(
        self,
        *,
        clock: Clock,
        metrics: Metrics,
        limits: WindowLimits,
        scheduler: type[PoolShare] = PoolShare,
        grace_seconds: float = 30.0,
    ) -> None:
        super().__init__(clock, grace_seconds)
        self._metrics = metrics
        self.backlog = ProbingBacklog(limits, clock.now_us)
        self.shares = Shares(self.pools, scheduler)
        self.backlog.reading.is_crowded = self.shares.is_crowded
        self.terms: dict[int, int] = {}  # shard → the term under which this server owns it
        self.restoring: set[int] = set()  # owned; their written leases are not all here yet
        self.all_restored = asyncio.Event()
        self.all_restored.set()
        self.claims = 0  # of shards so far
        self.lapses = 0  # times that names of types were let go, so far
        self.open_shards: set[int] = set()  # owned, and past the adoption of running leases
        self.trusted_until_us = 0  # past this moment another server may have taken over
        self.leases: dict[str, Lease] = {}
        self.tombstones = Tombstones()
        self.hinted_us: int | None = None  # when another server last told of jobs
        self.fresh: deque[list[Lease]] = deque()  # granted lazily together, oldest first
        self.tokens = lease_tokens()  # unless it is told the cluster's secret
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

    def promoted(self, shard: int, jobs: Sequence[QueuedJob], look: int) -> None:
        """Jobs of one shard came due; a read may have brought some of them already."""
        if shard in self.open_shards:
            alive = self.tombstones.without_dead(jobs)
            self._wake(self.backlog.promoted(alive, self.leases, look))

    def hinted(self, shard: int, firsts: Mapping[StreamKey, str]) -> None:
        """Another server wrote jobs, here the oldest of each stream; they are read from there."""
        self.hinted_us = self._clock.now_us()
        if shard in self.open_shards:
            for key, first in firsts.items():
                self.backlog.hinted(key, first)
            self.want_reads()

    def _wake(self, woken: Iterable[tuple[int, int]]) -> None:
        now_us = self._clock.now_us()
        pools = set()
        for pool, tenant in woken:
            self.shares[pool].wake(tenant, now_us)
            self.held.stir(pool, tenant)
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
        """Whose call is held the longest goes first; before them, those that are warm for a job."""
        if now_us >= self.trusted_until_us:
            return
        lines = self.held.lines(pool)
        if not (lines and self.shares[pool].has_work):
            return
        warm = [line for line in lines if line.is_warm]
        served = self._walk(warm, pool, now_us, only_warm=True) if warm else []
        served += self._walk(lines, pool, now_us)
        for session in dict.fromkeys(served) if warm else served:
            if session.outbox:
                session.ring_soon(now_us)

    def _walk(
        self, lines: list[Line], pool: int, now_us: int, *, only_warm: bool = False
    ) -> list[Session]:
        """Serve from the heads of the lines; a line is over with the first that could take more."""
        share, served, passed = self.shares[pool], list[Session](), list[tuple[Line, HeldCall]]()
        heads = [(call.place, line, call) for line in lines if (call := line.first()) is not None]
        heapify(heads)
        while heads:
            _, line, call = heads[0]
            session = call.session
            served.append(session)
            lacks = self._serve(session, pool, now_us, session.warm_types if only_warm else None)
            if not share.has_work:
                break
            if lacks and (line.tenant is not None or share.idle_slots >= line.widest):
                heappop(heads)
                continue
            if session.free(pool) > 0:  # and those behind it may be given something all the same
                passed.append((line, line.take_first()))
            following = line.first()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following.place, line, following))
        for line, call in passed:
            line.put_back(call)
        return served

    def serve(self, session: Session) -> None:
        """Give a session what its free slots can start."""
        now_us = self._clock.now_us()
        for pool in session.slots:
            if session.free(pool) > 0:
                self._serve(session, pool, now_us)
        if session.held is not None and session.held.full:
            session.held.look_again()  # it may have more slots now, or take jobs again
        if self.backlog.wants_reads:
            self.want_reads()

    def _serve(
        self, session: Session, pool: int, now_us: int, types: frozenset[int] | None = None
    ) -> bool:
        """Answers whether it could have taken more than there was for it."""
        if now_us >= self.trusted_until_us:
            return False  # perhaps no longer the owner: grant nothing until the term is renewed
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
        return len(granted) < free

    def _lease(
        self, session: Session, pool: Pool, granted: list[tuple[QueuedJob, Running]], now_us: int
    ) -> None:
        """Make grants into leases; lazy ones go out at once, others when they are on disk."""
        new, terms, leases, token_of = [], self.terms, self.leases, self.tokens.make
        only = next(iter(terms.values())) if len(terms) == 1 else None  # spares a look-up a job
        first_epoch = 0 if only is None else next_epoch(0, only)  # of a job that never ran
        for job, running in granted:
            epoch = first_epoch
            if job.epoch or only is None:
                epoch = next_epoch(job.epoch, terms[shard_of(job.id)])
            lease = Lease(job, epoch, token_of(job.id, epoch), session, now_us, running)
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
            self.fresh.append(first)
        self._metrics.granted.labels(pool.name).inc(len(new))
        self._metrics.pickup.observe_many(pool.name, waits(new, self._clock.unix_ms()))

    def written(self, lease: Lease) -> None:
        """The lease is on disk: now its worker may hear of it."""
        if self.leases.get(lease.job.id) is not lease:
            return  # its worker is gone since, and the lease with it
        lease.written = True
        if lease.cancelling:  # asked to stop before it began: it never does
            self._end([lease], self._clock.now_us())
            cancelled = Decision(State.CANCELLED, tally_of(lease.job))
            self.record_ends([End(lease, None, 0, None, cancelled, said="cancelled")])
            return
        lease.session.outbox.append(lease)
        lease.session.ring()

    def not_written(self, lease: Lease) -> None:
        """The job was no longer free to run; nobody heard of this lease."""
        self._release([lease], self._clock.now_us())

    def revoke(self, lease: Lease) -> None:
        """The job is no longer this worker's to run; tell it so."""
        self._release([lease], self._clock.now_us())
        lease.session.revoke(lease.job.id, lease.epoch)
        lease.session.ring()

    def withdraw_unheard(self) -> None:
        """Grants that no worker heard of and the store does not know are as if they never were."""
        now_us = self._clock.now_us()
        for session in self.sessions.values():
            unheard = [lease for lease in session.outbox if not lease.written]
            session.outbox = [lease for lease in session.outbox if lease.written]
            self._release(unheard, now_us)

    def take_stale_leases(self, older_than_us: int) -> list[Lease]:
        """Lazily granted leases that still run and are due to be written down."""
        stale: list[Lease] = []
        while self.fresh and self.fresh[0][0].granted_us <= older_than_us:
            # Most are over long since.
            group = self.fresh.popleft()
            stale += [one for one in group if (one.running or one.reported) and not one.written]
        return [lease for lease in stale if self.leases.get(lease.job.id) is lease]

    def _end(self, leases: list[Lease], now_us: int) -> None:
        """Runs are over; until their ends are on disk the store shows the jobs as they were."""
        self._release(leases, now_us)
        self.backlog.ending.update([lease.job.id for lease in leases])

    def _release(self, leases: Iterable[Lease], now_us: int) -> None:
        held, shares, backlog, own = self.leases, self.shares, self.backlog, self.held.own
        for lease in leases:
            job, running = lease.job, lease.running
            if held.get(job.id) is not lease:
                continue  # over since; the job may have been granted anew
            del held[job.id]
            lease.session.drop(lease)
            if backlog.has_lanes:
                backlog.run_ended(job)
            if running is not None:
                pool = lease.moved_to or job.pool
                shares[pool].finish(running, now_us)
                lease.running = None
                if own:
                    self.held.stir(pool, job.tenant)


def _unconnected(_: object) -> None:
    raise RuntimeError("The dispatcher was not connected to its store.")
