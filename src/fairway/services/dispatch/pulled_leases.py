"""Leases of degraded mode, put into force: who could run what, and what was pulled from the store.

A part of the dispatcher, got from it by `Dispatcher.pulls`; no I/O. Every lease is on disk before
its worker hears of it, under the term of whoever stands in: so an owner that comes back finds it
there, like any lease of a server before it. Of a pull whose end nobody heard the leases may be on
disk: they are written once more, as an owner's are, until that is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fairway.core.backlog.pulls import Taker
from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, TenantId, Term, TypeId
from fairway.core.job import QueuedJob
from fairway.core.pools import Pool
from fairway.core.run.lease import next_epoch
from fairway.core.run.lease_token import LeaseTokens
from fairway.core.scheduling.timing import Timing, may_start
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.granting import Memory, tell_started
from fairway.services.dispatch.ports import Ports
from fairway.services.sessions.session_table import LEASES_PER_REPLY
from fairway.services.sessions.sessions import Lease, Session

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

HEARD_US = 1_000_000  # a worker that reports all the time has no call that is held

Kind = tuple[frozenset[TypeId], TenantId | None, frozenset[TenantId] | None]


class Wanting(NamedTuple):
    """Workers that may be given the same, with what they can take."""

    taker: Taker
    places: deque[Session]  # one for each free slot, in turn


class PulledLeases:
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
        self._leases = memory.leases
        self._backlog = memory.backlog
        self._shares = memory.shares
        self._tokens = tokens
        self._ports = ports
        self._clock = clock
        self._metrics = metrics
        self._spans = spans

    # -- who could run what --------------------------------------------------------------------

    def pools_wanted(self) -> list[PoolId]:
        """Pools in which somebody has a free slot."""
        wanted = {pool for one in self._there() for pool in one.slots if _free(one, pool) > 0}
        return sorted(wanted)

    def wanting(self, pool: PoolId) -> list[Wanting]:
        """Workers with free slots in a pool, those of one kind together."""
        kinds: dict[Kind, list[Session]] = {}
        for session in self._there():
            if _free(session, pool) > 0:
                kind = (session.types, session.tenant, session.only_tenants)
                kinds.setdefault(kind, []).append(session)
        return [_together(kind, sessions, pool) for kind, sessions in kinds.items()]

    def _there(self) -> Iterable[Session]:
        """Sessions that will hear of a lease at once: nothing is given to who may be gone."""
        since_us = self._clock.now_us() - HEARD_US
        return [
            one
            for one in self._sessions.values()
            if one.greeted and (one.poll is not None or one.seen_us >= since_us)
        ]

    def rooms(self, pool: PoolId, tenants: Iterable[TenantId]) -> dict[TenantId, int]:
        """How many more jobs of each may run in a pool."""
        standings = self._shares[pool].standings
        return {tenant: standings.room(tenant) for tenant in tenants}

    def is_held(self, key: StreamKey) -> bool:
        """Whether a pause, an open circuit or a suspension keeps this stream from starting."""
        return self._backlog.runnable.holds.on(key) is not None

    def may_start(self, job: QueuedJob) -> bool:
        """Not what came too late, nor what waits for a limit of its key."""
        if job.id in self._leases or job.id in self._backlog.underway.unrecorded_ids:
            return False
        if job.timing and not may_start(Timing.of(job.timing), self._clock.unix_ms()):
            return False
        if job.limits is None:
            return True
        return self._backlog.limited.full(job.tenant, job.limits, self._clock.now_us()) is None

    # -- what was pulled -------------------------------------------------------------------------

    def new(self, session: Session, job: QueuedJob, term: Term) -> Lease:
        """To be written; nobody hears of it before that."""
        epoch = next_epoch(job.epoch, term)
        token = self._tokens.make(job.id, epoch)
        home = self._shards.tenants.elsewhere(job.tenant, job.id)
        return Lease(job, epoch, token, session, self._clock.now_us(), written=True, home=home)

    def granted(self, leases: list[Lease], pool: PoolId, term: Term) -> list[Lease]:
        """They are on disk: those that stand go out. Answers those whose worker left meanwhile.

        When the shard has an owner by now, it knows of them all, and they are its own.
        """
        there, lost = self._in_force(leases, term)
        for lease in there:
            lease.session.send(lease)
        now_us = self._clock.now_us()
        for session in {lease.session for lease in there}:
            session.wake_soon(now_us)
        self._tell(there, self._pools.by_number[pool])
        return lost

    def in_doubt(self, leases: list[Lease], term: Term) -> list[Lease]:
        """Nobody heard whether they are on disk. Answers those whose worker left meanwhile."""
        for lease in leases:
            lease.written = False
        there, lost = self._in_force(leases, term)
        if there:
            self._ports.write_leases(there)
        return lost

    def _in_force(self, leases: list[Lease], term: Term) -> tuple[list[Lease], list[Lease]]:
        """From now on; those whose worker is there, and those whose worker left."""
        now_us, there, lost = self._clock.now_us(), list[Lease](), list[Lease]()
        for lease in leases:
            if self._shards.terms.get(lease.shard) != term:
                continue
            if (older := self._leases.get(lease.job.id)) is not None:
                self._overtaken(older, now_us)
            self._leases.enforce(lease, now_us)
            lease.delivered = False
            (there if self._sessions.has(lease.session) else lost).append(lease)
        return there, lost

    def _overtaken(self, older: Lease, now_us: int) -> None:
        """One that its worker showed while the job was pulled: on disk, it is over."""
        self._leases.release([older], now_us)
        older.session.revoke(older.job.id, older.epoch)
        older.session.wake()

    def _tell(self, leases: list[Lease], pool: Pool) -> None:
        unix_ms = self._clock.unix_ms()
        tell_started(self._metrics, pool, leases, unix_ms)
        if self._spans is not None:
            for lease in leases:
                self._spans.granted([lease.job], pool.name, lease.session.worker, unix_ms)


def _free(session: Session, pool: PoolId) -> int:
    return min(session.free(pool), LEASES_PER_REPLY - len(session.outbox))


def _together(kind: Kind, sessions: list[Session], pool: PoolId) -> Wanting:
    types, tenant, only = kind
    left, places = deque((one, _free(one, pool)) for one in sessions), deque[Session]()
    while left:  # a slot of each in turn: work is spread over workers
        session, free = left.popleft()
        places.append(session)
        if free > 1:
            left.append((session, free - 1))
    tenants = only if tenant is None else frozenset((tenant,))
    return Wanting(Taker(types, tenants, len(places)), places)
