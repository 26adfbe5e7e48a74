"""Granting: which waiting jobs go to which worker, as leases.

Who goes next is decided in `core/fair_share/fairness.py`; here a worker's free slots meet the
windows, grants become leases, and leases go out: lazy ones at once, others when they are on disk.
What becomes of a lease afterwards is the dispatcher's. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, TypeAlias

from fairway.core.backlog.backlog import Backlog
from fairway.core.fair_share.fairness import Running
from fairway.core.ids import SHARD_DIGITS, Epoch, PoolId, ShardId, TenantId, TypeId, shard_of
from fairway.core.insight.buckets import sample_step
from fairway.core.job import QueuedJob, due_ms_of
from fairway.core.pools import Pool, PoolTable
from fairway.core.run.lease import next_epoch
from fairway.core.run.lease_token import LeaseTokens
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.lease_table import LeaseTable
from fairway.services.dispatch.owned_shards import OwnedShards
from fairway.services.dispatch.pool_shares import Shares
from fairway.services.dispatch.ports import Ports
from fairway.services.sessions.held_calls import HeldCall, Line
from fairway.services.sessions.session_table import LEASES_PER_REPLY, SessionTable
from fairway.services.sessions.sessions import Lease, Session

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

log = logger("granting")

#: A tenant's next job, or None.
Take: TypeAlias = Callable[[TenantId], QueuedJob | None]


@dataclass(frozen=True, slots=True)
class Memory:
    """What one owner knows. Made once; only the dispatcher and its parts hold it."""

    pools: PoolTable
    shards: OwnedShards
    sessions: SessionTable
    leases: LeaseTable
    backlog: Backlog
    shares: Shares


class Granting:
    def __init__(
        self,
        memory: Memory,
        tokens: LeaseTokens,
        ports: Ports,
        clock: Clock,
        metrics: Metrics,
        spans: JobSpans | None = None,
    ) -> None:
        self._pools = memory.pools
        self._shards = memory.shards
        self._sessions = memory.sessions
        self._held = memory.sessions.held
        self._leases = memory.leases
        self._backlog = memory.backlog
        self._shares = memory.shares
        self._tokens = tokens
        self._ports = ports
        self._clock = clock
        self._metrics = metrics
        self._spans = spans

    def wake(self, woken: Iterable[tuple[PoolId, TenantId]]) -> None:
        """These (pool, tenant) may have work now."""
        now_us = self._clock.now_us()
        pools: dict[PoolId, list[TenantId]] = {}
        for pool, tenant in woken:
            self._shares[pool].wake(tenant, now_us)
            self._held.stir(pool, tenant)
            pools.setdefault(pool, []).append(tenant)
        for pool, tenants in pools.items():
            self._serve_waiting(pool, now_us)
            if pool in self._sessions.offers.unoffered and self._shares[pool].has_work:
                self._sessions.there_is_work(pool, tenants)
        if self._backlog.reads.are_wanted or self._backlog.limited.wants_a_look:
            self._ports.want_reads()

    def _serve_waiting(self, pool: PoolId, now_us: int) -> None:
        """Whose call is held the longest goes first; before them, those that are warm for a job."""
        if now_us >= self._shards.last_trusted_until_us:
            return
        lines = self._held.lines(pool)
        if not (lines and self._shares[pool].has_work):
            return
        warm = [line for line in lines if line.is_warm]
        served = self._walk(warm, pool, now_us, only_warm=True) if warm else []
        served += self._walk(lines, pool, now_us)
        for session in dict.fromkeys(served) if warm else served:
            if session.outbox:
                session.wake_soon(now_us)

    def _walk(
        self, lines: list[Line], pool: PoolId, now_us: int, *, only_warm: bool = False
    ) -> list[Session]:
        """Serve from the heads of the lines; a line is over with the first that could take more."""
        share, served, passed = self._shares[pool], list[Session](), list[tuple[Line, HeldCall]]()
        heads = [(call.turn, line, call) for line in lines if (call := line.first()) is not None]
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
                heapreplace(heads, (following.turn, line, following))
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
        if self._backlog.reads.are_wanted or self._backlog.limited.wants_a_look:
            self._ports.want_reads()

    def _serve(
        self, session: Session, pool: PoolId, now_us: int, types: frozenset[TypeId] | None = None
    ) -> bool:
        """Answers whether it could have taken more than there was for it."""
        if now_us >= self._shards.last_trusted_until_us:
            return False  # perhaps no longer the owner: grant nothing until the term is renewed
        share = self._shares[pool]
        free = min(session.free(pool), LEASES_PER_REPLY - len(session.outbox))

        def asleep(tenant: TenantId) -> None:
            share.sleep(tenant, now_us)

        types = session.types if types is None else types
        take = self._backlog.taker(pool, types, self._leases, asleep, now_us)
        take = self._trusted(take, asleep, now_us)
        if session.tenant is None:
            lend = None
            if share.has_idle_reserve:
                fits = share.may_borrow
                lend = self._backlog.taker(pool, types, self._leases, asleep, now_us, fits)
                lend = self._trusted(lend, asleep, now_us)
            if (only := session.only_tenants) is not None:
                take, lend = _of(only, take), None if lend is None else _of(only, lend)
            granted = share.grant(free, take, now_us, lend=lend)
        else:
            granted = share.grant_own(session.tenant, free, take, now_us)
        if granted:
            self._lease(session, self._pools.by_number[pool], granted, now_us)
        return len(granted) < free

    def _trusted(self, take: Take, asleep: Callable[[TenantId], None], now_us: int) -> Take:
        """Of a shard that may be another's by now, or is about to be, nothing is taken.

        Its tenants rest until it is trusted again: else every grant would go through all of them.
        """
        if now_us < self._shards.trusted_until_us:
            return take

        def take_trusted(tenant: TenantId) -> QueuedJob | None:
            if self._shards.may_grant_to(tenant, now_us):
                return take(tenant)
            asleep(tenant)
            return None

        return take_trusted

    def _lease(
        self, session: Session, pool: Pool, granted: list[tuple[QueuedJob, Running]], now_us: int
    ) -> None:
        """Make grants into leases; lazy ones go out at once, others when they are on disk."""
        new = self._new_leases(session, granted, now_us)
        if not new:
            return
        session.in_use[pool.number] = session.in_use.get(pool.number, 0) + len(new)
        if any(job.timing for job, _ in granted):
            new = self._only_in_time(new, now_us)
        # A job that ran before is looked up first, in any pool: it may be over by now. Of one that
        # has limits the next owner must know that it runs; and it waits for those workers alone
        # that the store knows of.
        again = new
        if pool.lease_mode != "durable" and session.is_noted:
            again = [one for one in new if one.job.epoch or one.job.limits]
        if again:
            self._ports.write_leases(again)
        if len(again) < len(new):
            first = [one for one in new if not (one.job.epoch or one.job.limits)] if again else new
            session.outbox += first
            self._leases.write_later(first)
        unix_ms = self._clock.unix_ms()
        tell_started(self._metrics, pool, new, unix_ms)
        if self._spans is not None:
            traced = [lease.job for lease in new if lease.job.trace is not None]
            self._spans.granted(traced, pool.name, session.worker, unix_ms)

    def _new_leases(
        self, session: Session, granted: list[tuple[QueuedJob, Running]], now_us: int
    ) -> list[Lease]:
        """In force from now on, with epoch and token."""
        new, terms, leases, token_of = [], self._shards.terms, self._leases, self._tokens.make
        first_epochs: dict[str | ShardId, Epoch] = {}  # of jobs that never ran, by their shard
        homes = self._shards.tenants
        elsewhere = homes.elsewhere if homes.any_moved else None
        for job, running in granted:
            job_id = job.id
            home = None if elsewhere is None else elsewhere(job.tenant, job_id)
            shard = job_id[SHARD_DIGITS] if home is None else home
            epoch = first_epochs.get(shard)
            if job.epoch or epoch is None:
                term = terms.get(shard_of(job_id) if home is None else home)
                if term is None:
                    self._pass_over(job, running, now_us)
                    continue
                epoch = next_epoch(job.epoch, term)
                if not job.epoch:
                    first_epochs[shard] = epoch
            lease = Lease(job, epoch, token_of(job_id, epoch), session, now_us, running, home=home)
            leases[job_id] = session.leases[job_id] = lease
            new.append(lease)
        return new

    def _pass_over(self, job: QueuedJob, running: Running, now_us: int) -> None:
        """A job of a shard that is not ours is its owner's to grant; the others go on."""
        self._leases.undo(job, running, now_us)
        self._metrics.rows_set_aside.labels("grants").inc()
        log.error("a job of another's shard is not granted", job=job.id, tenant=job.tenant)

    def _only_in_time(self, leases: list[Lease], now_us: int) -> list[Lease]:
        """One that came too late ends here, before any worker hears of it."""
        in_time, late = self._ports.drop_expired(leases)
        for end in late:
            self._leases.end([end.lease], now_us)
            self._ports.record_ends([end])
        return in_time


def _of(tenants: frozenset[TenantId], take: Take) -> Take:
    """As `take`, for these tenants; of others there is nothing for the worker that asks."""
    return lambda tenant: take(tenant) if tenant in tenants else None


def tell_started(metrics: Metrics, pool: Pool, leases: list[Lease], unix_ms: int) -> None:
    """Count what was granted, and how long it waited."""
    waits_ms = _waits_ms(leases, unix_ms)
    metrics.granted.labels(pool.name).inc(len(leases))
    metrics.pickup.observe_many(pool.name, [ms / 1000 for ms in waits_ms])
    metrics.activity.started([lease.job for lease in leases], waits_ms)


def _waits_ms(leases: list[Lease], unix_ms: int) -> list[int]:
    """From acceptance or due time to grant: of every lease of a few, of one in eight of many."""
    step = sample_step(len(leases))
    return [max(unix_ms - due_ms_of(lease.job), 0) for lease in leases[::step]]
