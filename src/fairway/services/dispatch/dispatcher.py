"""The dispatcher: who runs what next, for the shards this server owns.

The one owner of its state: sessions, leases, windows and fair share change only here, inside one
event loop, in synchronous steps; so there are no locks. Others ask it and tell it, by its verbs. It
does no I/O: what must be written or read goes through its `Ports`, and loops call back. Who goes
next is decided in `core/fair_share/fairness.py`, what follows a failure in `services/failure`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.holds import Holds
from fairway.core.backlog.streams import StreamKey, WindowLimits
from fairway.core.backlog.tombstones import Tombstones
from fairway.core.fair_share.entitlements import FREE
from fairway.core.fair_share.fairness import PoolShare
from fairway.core.fair_share.standings import ShareStandings
from fairway.core.ids import Epoch, PoolId, ShardId, TenantId, Term, TypeId
from fairway.core.job import QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.pools import PoolTable
from fairway.core.run.lease_token import LeaseTokens
from fairway.core.run.outcome import Outcome
from fairway.core.tenant import Tenant
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.granting import Granting, Memory
from fairway.services.dispatch.lease_table import LeaseTable, StaleLeases
from fairway.services.dispatch.letting_go import LettingGo
from fairway.services.dispatch.owned_shards import OwnedShards
from fairway.services.dispatch.pool_shares import Shares
from fairway.services.dispatch.ports import Ports
from fairway.services.dispatch.presence import Presence
from fairway.services.dispatch.pulled_leases import PulledLeases
from fairway.services.dispatch.restored_leases import RestoredLeases
from fairway.services.dispatch.run_ends import SILENT, RunEnds, requeued
from fairway.services.dispatch.wait_facts import WaitFacts
from fairway.services.dispatch.window_feed import WindowFeed
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.services.sessions.closed_workers import ClosedWorkers
from fairway.services.sessions.offers import Offers
from fairway.services.sessions.session_table import SessionTable
from fairway.services.sessions.sessions import End, Holding, Lease, News, Session
from fairway.store.leases import Origin

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchSettings:
    limits: WindowLimits
    tokens: LeaseTokens  # of the cluster: another owner must know them
    inline_bytes_max: int  # a larger result is a success only when storage has it
    scheduler: type[PoolShare] = PoolShare
    grace_seconds: float = 30.0  # past a time limit, or after a silence
    tenant_shards: TenantShards = field(default_factory=lambda: TenantShards(1))


class Dispatcher:
    def __init__(
        self,
        settings: DispatchSettings,
        ports: Ports,
        failure_policy: FailurePolicy,
        pools: PoolTable,
        *,
        clock: Clock,
        metrics: Metrics,
        spans: JobSpans | None = None,
    ) -> None:
        self._clock = clock
        self._metrics = metrics
        self._ports = ports
        self._tokens = settings.tokens
        self._hinted_us: int | None = None  # when another server last told of jobs
        self.pools = pools
        self.failure_policy = failure_policy
        self.shards = OwnedShards(settings.tenant_shards)
        self.tombstones = Tombstones()
        self.shares = Shares(pools, settings.scheduler)
        self.backlog = Backlog(settings.limits, self.shares.is_crowded, self.shards.tenants)
        self.sessions = SessionTable(clock, pools, round(settings.grace_seconds * 1e6))
        self.leases = LeaseTable(self.backlog, self.shares, self.sessions.held, ports.lazy_lease)
        memory = Memory(pools, self.shards, self.sessions, self.leases, self.backlog, self.shares)
        self._granting = Granting(memory, settings.tokens, ports, clock, metrics, spans)
        self._windows = WindowFeed(memory, self._granting, ports, clock)
        self._presence = Presence(memory, ports, clock)
        self._letting_go = LettingGo(memory, self._granting, clock)
        self._restored = RestoredLeases(memory, settings.tokens, clock)
        self._wait_facts = WaitFacts(memory, clock)
        self._pulled = PulledLeases(memory, settings.tokens, ports, clock, metrics, spans)
        self._runs = RunEnds(
            self.leases,
            failure_policy,
            ports,
            settings.inline_bytes_max,
            clock=clock,
            metrics=metrics,
        )

    # -- shards ------------------------------------------------------------------------------

    def owns(self, shard: ShardId) -> bool:
        return shard in self.shards.terms

    def owns_any(self) -> bool:
        return bool(self.shards.terms)

    def term_of(self, shard: ShardId) -> Term | None:
        """Under which this server owns it; None when it does not."""
        return self.shards.terms.get(shard)

    def restored_term_of(self, shard: ShardId) -> Term | None:
        """As `term_of`, once all written leases of the shard are known here."""
        return self.shards.restored_term(shard)

    def homes(self) -> TenantShards:
        """Where tenants are, and their jobs."""
        return self.shards.tenants

    def terms(self) -> Mapping[ShardId, Term]:
        """By shard, as they are at any time; nobody changes them by this."""
        return self.shards.terms_view

    def is_open(self, shard: ShardId) -> bool:
        """Whether its jobs are given out: it is owned, and what ran before is known."""
        return shard in self.shards.open

    def open_shards(self) -> list[ShardId]:
        return sorted(self.shards.open)

    def has_windows(self, shard: ShardId) -> bool:
        """Whether it is open and its jobs wait in windows, as an owner's do."""
        return self.shards.has_windows(shard)

    def pulled_shards(self) -> list[ShardId]:
        """Those open in degraded mode."""
        return sorted(self.shards.pulled)

    def is_degraded(self) -> bool:
        return bool(self.shards.pulled)

    def restored_shards(self) -> list[ShardId]:
        """Those owned of which it is known who holds what."""
        return sorted(self.shards.terms.keys() - self.shards.restoring)

    def is_restoring(self) -> bool:
        return bool(self.shards.restoring)

    async def until_restored(self) -> None:
        """While leases are being read from the store nobody can tell what a worker holds."""
        await self.shards.all_restored.wait()

    def claims(self) -> int:
        """How often a shard was claimed so far: whoever waits can tell that one came meanwhile."""
        return self.shards.claims

    def trust_until(self, until_us: int) -> None:
        """Past this moment another server may own what this one does: nothing is granted then."""
        self.shards.trust(until_us)

    def claim_shard(self, shard: ShardId, term: Term, *, is_whole: bool = False) -> None:
        """This server owns it from now on; its leases must be found before anybody is judged.

        Workers say hello again: what they run of it is not known, unless the store has it whole.
        """
        is_whole = self.shards.claim(shard, term, is_whole=is_whole)
        self._letting_go.forget_starts(shard, term)
        if not is_whole:
            self._presence.forget_greetings()

    def leases_restored(self, shard: ShardId) -> None:
        """Every written lease of the shard is here, or it is another's: workers may be heard."""
        if self.shards.restored(shard):
            self._presence.forget_greetings()  # which could say nothing of this shard

    def leases_delayed(self, shard: ShardId) -> None:
        """They cannot be read now: workers are heard all the same, and once more afterwards."""
        self.shards.delay(shard)

    def open_shard(self, shard: ShardId) -> None:
        self.shards.open.add(shard)

    def open_for_pulls(self, shard: ShardId) -> None:
        """As `open_shard`, in degraded mode: its jobs are pulled from the store."""
        self.shards.open_for_pulls(shard)

    def close_shard(self, *shards: ShardId, is_whole: bool = False) -> None:
        """Other servers own these now: forget all of them, write nothing. The next owner must hear
        what workers run; unless it finds all of that on disk."""
        self.shards.close(*shards)
        self._ports.forget_ends(shards)
        self.backlog.forget_shard(*shards)
        foreign = [lease for lease in self.leases.values() if lease.shard in shards]
        self.leases.release(foreign, self._clock.now_us())
        if not is_whole:
            self._presence.forget_greetings()

    def letting_go(self) -> LettingGo:
        """For whoever renews terms, and hands shards over."""
        return self._letting_go

    # -- jobs arrive -------------------------------------------------------------------------

    def inserting(self, ids: Iterable[str]) -> None:
        """These are being written here: a read must not bring them before they are announced."""
        self.backlog.underway.inserting_ids.update(ids)

    def inserted(self, ids: Iterable[str]) -> None:
        """They are written and announced, or they are not written."""
        self.backlog.underway.inserting_ids.difference_update(ids)

    def arrived(self, shards: Collection[ShardId], jobs: Sequence[QueuedJob]) -> None:
        """Jobs of these shards are on disk and due."""
        if there := self.shards.of_windows(shards, jobs):
            alive = self.tombstones.without_dead(there)
            self._granting.wake(self.backlog.arrived(alive, self._clock.now_us()))

    def looking(self) -> AbstractContextManager[int]:
        """For whoever brings rows otherwise than by a read: what ends meanwhile is remembered."""
        return self.backlog.reading.looking()

    def promoted(self, shard: ShardId, jobs: Sequence[QueuedJob], look: int) -> None:
        """Jobs of one shard came due; a read may have brought some of them already."""
        if self.shards.has_windows(shard):
            alive = self.tombstones.without_dead(self.shards.at_home(shard, jobs))
            now_us = self._clock.now_us()
            self._granting.wake(self.backlog.promoted(alive, self.leases, look, now_us))

    def hinted(self, shard: ShardId, firsts: Mapping[StreamKey, str]) -> None:
        """Another server wrote jobs, here the oldest of each stream; they are read from there."""
        self._hinted_us = self._clock.now_us()
        if self.shards.has_windows(shard):
            for key, first in self.shards.heads_in(shard, firsts):
                self.backlog.hinted(key, first)
            self._ports.want_reads()

    def hinted_us(self) -> int | None:
        """When another server last told of jobs."""
        return self._hinted_us

    def depth_of(self, tenant: TenantId) -> int:
        """How many jobs of the tenant wait."""
        return self.backlog.counts.depth(tenant, self.pools.by_number)

    def wait_facts(self) -> WaitFacts:
        """For whoever explains why a job waits."""
        return self._wait_facts

    def windows(self) -> WindowFeed:
        """For those that read the store into the windows."""
        return self._windows

    def pulls(self) -> PulledLeases:
        """For whoever pulls jobs from the store, in degraded mode."""
        return self._pulled

    # -- jobs go otherwise than by a run --------------------------------------------------------

    def cancel(self, tenant: TenantId, job: str) -> bool:
        """Ask the run of a job to stop; False when it does not run."""
        return self.leases.cancel(tenant, job)

    def cancelled(self, jobs: Sequence[tuple[str, StreamKey]]) -> None:
        """Waiting jobs are cancelled on disk: they must not start here any more."""
        now_us = self._clock.now_us()
        for job, _ in jobs:
            self.tombstones.raise_for(job, now_us)
        self.backlog.remove_all(jobs)
        for job, _ in jobs:
            lease = self.leases.get(job)
            if lease is not None:  # granted while that was written: the cancellation stands
                self.revoke(lease)

    def expired(self, jobs: Sequence[tuple[str, StreamKey]]) -> None:
        """Waiting jobs were ended on disk, for their last moment has passed."""
        self.backlog.remove_all(jobs)

    def forget_cancelled(self, now_us: int) -> None:
        """Upkeep: nobody can bring back what was cancelled a minute ago."""
        self.tombstones.clear_old(now_us)

    # -- leases ------------------------------------------------------------------------------

    def lease_of(self, session: Session, job: str, epoch: Epoch, token: str) -> Lease | None:
        """The lease in force, if this is its holder; anything else can write nothing."""
        return self.leases.held_by(session, job, epoch, token)

    def lease_on(self, job: str) -> Lease | None:
        """The lease in force of a job, whoever holds it."""
        return self.leases.get(job)

    def stands(self, lease: Lease) -> bool:
        """Whether it is still in force."""
        return self.leases.stands(lease)

    def all_leases(self) -> list[Lease]:
        return list(self.leases.values())

    def is_underway(self, job: str) -> bool:
        """Whether it runs, or its end is on its way to disk: the row may show it as waiting."""
        return job in self.leases or job in self.backlog.underway.unrecorded_ids

    def is_real(self, job: str, epoch: Epoch, token: str) -> bool:
        """Whether a server of this cluster granted such a lease."""
        return self._tokens.is_real(job, epoch, token)

    def take_over(self, session: Session, job: str, epoch: Epoch, token: str) -> None:
        """The next life of a worker shows the token of a lease: it is this session's now."""
        self.leases.take_over(session, job, epoch, token)

    def note_progress(self, session: Session, holding: Holding) -> bool:
        """What a run says of itself; False when it says nothing, or its lease is another's."""
        return self.leases.note_progress(session, holding)

    def unnamed(self, session: Session, named: Collection[tuple[str, Epoch]]) -> list[Lease]:
        """A worker listed all (job, epoch) that it runs: what it was sent and never names."""
        return self.leases.unnamed(session, named, self._clock.now_us())

    def written(self, lease: Lease) -> None:
        """The lease is on disk: now its worker may hear of it."""
        if not self.leases.stands(lease):
            return  # its worker is gone since, and the lease with it
        lease.written = True
        if lease.cancelling:  # asked to stop before it began: it never does
            self._runs.never_began(lease)
            return
        lease.session.send(lease)
        lease.session.wake()

    def not_written(self, lease: Lease) -> None:
        """The job was no longer free to run; nobody heard of this lease."""
        self.leases.release([lease], self._clock.now_us())

    def written_late(self, lease: Lease, *, is_written: bool) -> None:
        """The lease of a run that goes on was written down, or found its job cancelled."""
        lease.written = is_written
        if not is_written and self.leases.stands(lease) and self.owns(lease.shard):
            self.revoke(lease)

    def take_stale_leases(self, older_than_us: int) -> StaleLeases:
        """Lazily granted leases that still run and are due to be written down."""
        return self.leases.take_stale(older_than_us)

    def send_whole(self, lease: Lease, payload: bytes) -> None:
        """A lease that never reached its worker goes out again; its payload was read anew."""
        self.leases.send_whole(lease, payload)

    def revoke(self, lease: Lease) -> None:
        """The job is no longer this worker's to run; tell it so."""
        self.leases.release([lease], self._clock.now_us())
        lease.session.revoke(lease.job.id, lease.epoch)
        lease.session.wake()

    def outlasts(self, lease: Lease) -> bool:
        """It outlasts its pool, where it counts until there is room for it; True the first time."""
        return self.leases.outlasts(lease)

    def rehome(self, lease: Lease, pool: PoolId, now_us: int) -> None:
        """Count a run's slot in another pool, if its worker has one there to give."""
        session = lease.session
        if not session.has_slot(pool):
            return
        self.leases.rehome(lease, pool, now_us)
        self._granting.serve(session)
        if session.outbox:
            session.wake()

    def adopt(self, session: Session, job: QueuedJob, holding: Holding) -> bool:
        """A worker runs a job under a lease that an earlier owner granted and never wrote."""
        return self._restored.adopt(session, job, holding)

    def restore_written(
        self, session: Session, job: QueuedJob, token: str, running_seconds: float
    ) -> None:
        """A lease that the store has and this memory lacks: it stands."""
        lease = self._restored.written(session, job, token, running_seconds)
        if not session.may_run(job.tenant):
            self.lost([lease])  # its session is another tenant's worker by now: nobody runs it

    # -- runs end ----------------------------------------------------------------------------

    def succeeded(self, ends: list[End]) -> None:
        """Runs that ended well, as one session says."""
        self._runs.succeeded(ends)

    def ended(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """A run ended otherwise than by success."""
        self._runs.ended(lease, number, outcome)

    def reported(self, lease: Lease) -> None:
        """A run is over, and its end cannot be taken yet: its lease stands, others use its slot."""
        self._runs.reported(lease)

    def given_up(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """The end that was reported cannot be taken at all; unless the lease is over by now."""
        self._runs.given_up(lease, number, outcome)

    def lost(self, leases: Iterable[Lease], error: bytes = SILENT) -> None:
        """Nobody runs them any more: costs a delivery, never an attempt."""
        self._runs.lost(leases, error)

    def take_back(self, lease: Lease, outcome: Outcome) -> None:
        """End a run on the platform's own word; its worker is told to stop it."""
        self._runs.taken_back(lease, outcome)

    def result_kept(self, lease: Lease) -> None:
        """A large result is in storage: its run counts as a success from now on."""
        if self.failure_policy.watched:
            self.failure_policy.succeeded([lease.job])

    def result_not_kept(self, lease: Lease, number: int | None, outcome: Outcome) -> End:
        """A large result cannot be kept: how its run ends instead."""
        return self.failure_policy.end_of(lease, number, outcome)

    def recorded(self, ids: Sequence[str]) -> None:
        """The ends of these jobs' runs are on disk, or were refused there."""
        self.backlog.ended(ids)

    def settled(self, end: End) -> None:
        """The end of a run is on disk; a job that goes back to its queue is free again."""
        job = requeued(end)
        has_windows = self.shards.has_windows(end.lease.shard)
        if job is not None and has_windows and job.id not in self.tombstones:
            self.backlog.put_back(job, self._clock.now_us())
            self._granting.wake([(job.pool, job.tenant)])

    # -- sessions ----------------------------------------------------------------------------

    def session(
        self,
        key: str,
        worker: str,
        tenant: TenantId | None,
        opener: str = "",
        only: frozenset[TenantId] | None = None,
    ) -> Session:
        """The session of this name, whose worker speaks just now; a new one must find a place."""
        return self.sessions.heard(key, worker, tenant, opener, only)

    def found_session(self, key: str, origin: Origin | None) -> Session:
        """The session of a lease that the store has; `origin` is who opened it, if that is known.
        One of this name that another key opened here is over: the name was not its own."""
        known = self.sessions.get(key)
        if origin is None or known is None:
            return self.sessions.restored(key, origin)
        if known.is_known and known.opener != origin.opener:
            self.end_session(known)
        return self.sessions.restored(key, origin)

    def session_of(self, key: str) -> Session | None:
        return self.sessions.get(key)

    def grace_us(self) -> int:
        """Past a time limit, or after a silence."""
        return self.sessions.grace_us

    def has(self, session: Session) -> bool:
        """Whether the session is here still."""
        return self.sessions.has(session)

    def all_sessions(self) -> list[Session]:
        return list(self.sessions.values())

    def closed_workers(self) -> ClosedWorkers:
        """Those that are to be spared."""
        return self.sessions.closed

    def offer_slots(self, session: Session, slots: int) -> None:
        """A hello names so many: those of one tenant's own workers are bounded together."""
        self.sessions.offer_slots(session, slots)

    def offers(self) -> Offers:
        """What workers that serve several owners have for this one."""
        return self.sessions.offers

    def equip(self, session: Session, slots: dict[PoolId, int]) -> None:
        """A session has said hello: its slots count towards the capacity of the pools."""
        self._presence.equip(session, slots)

    def serve(self, session: Session) -> None:
        """Give a session what its free slots can start."""
        self._granting.serve(session)

    def hold_open(self, session: Session) -> None:
        """Its call is held: an arrival may answer it."""
        self.sessions.hold_open(session)

    def let_go(self, session: Session) -> None:
        self.sessions.held.let_go(session)

    def news(self, session: Session) -> News:
        """What there is to say to a session, once."""
        return self.sessions.news(session)

    def end_session(self, session: Session) -> None:
        """Its process is gone: whatever it still held is lost."""
        self.drop_session(session)
        self.recount()

    def drop_session(self, session: Session) -> None:
        """As `end_session`, of many: whoever ends them recounts once."""
        self.sessions.forget(session)
        self.lost(session.leases.values())
        session.ended()

    def recount(self) -> None:
        """Let what workers came and went change who gets how much, and what may wait in memory."""
        self._presence.recount()

    def hear_anew(self, types: set[TypeId]) -> None:
        """These were let go: whoever runs them greets again, and so they are counted."""
        self._presence.hear_anew(types)

    def lapses(self) -> int:
        """How often names were let go so far: a hello can tell that one was meanwhile."""
        return self._presence.lapses

    # -- what operators and failures decide ------------------------------------------------------

    def set_entitlement(self, tenant: Tenant) -> None:
        """A tenant's terms, for the backlog already queued too; and where it is at home."""
        if self.shards.learn(tenant):
            self.backlog.forget_tenant(tenant.id)  # what waits is found where it is now
        self.shares.set_entitlement(tenant, self._clock.now_us())
        for pool in self.pools.by_number:
            self.sessions.held.stir(pool, tenant.id)  # it may run more than before
        streams = self.backlog.counts.streams_of(tenant.id, self.pools.by_number)
        self.backlog.reading.set_deferrable(tenant.id, tenant.fair_group == FREE, streams)

    def holds(self) -> Holds:
        """What must not start."""
        return self.backlog.runnable.holds

    def set_holds(self, holds: Holds) -> None:
        """What must not start from now on; what runs, runs on."""
        now_us = self._clock.now_us()
        for pool, tenant in self.backlog.runnable.set_holds(holds):
            self.shares[pool].sleep(tenant, now_us)
        if self.backlog.reads.are_wanted or self.backlog.runnable.is_reviewing:
            self._ports.want_reads()

    def asks_for_policies(
        self, tenant: TenantId | None, policies: Mapping[TypeId, dict[str, Any]]
    ) -> None:
        """How often a job of each type may fail, as its workers say."""
        self.failure_policy.policies.asked(tenant, policies)

    def together(self) -> AbstractContextManager[None]:
        """What many ends lead to is told once, after the last."""
        return self.failure_policy.together()

    def worker_died(self, jobs: list[QueuedJob]) -> None:
        """A runner died under these jobs."""
        self.failure_policy.worker_died(jobs)

    def counting_restraints(self, found: dict[str, int]) -> Iterator[None]:
        """Add how many of each kind of restraint are in force."""
        return self.failure_policy.counting(found)

    # -- fair share ----------------------------------------------------------------------------

    def share_of(self, pool: PoolId) -> ShareStandings:
        """What there is to know of how a pool is shared out."""
        return self.shares[pool].standings

    def all_shares(self) -> list[tuple[PoolId, PoolShare]]:
        """By pool, for those who keep them going."""
        return list(self.shares.items())

    def forget_type(self, type_id: TypeId) -> None:
        """Nobody uses this job type any more."""
        for share in self.shares.values():
            share.forget_type(type_id)
