"""The dispatcher: who runs what next, for the shards this server owns.

It is the one owner of its state: sessions, leases, windows and fair share live in memory and change
only here, inside one event loop, in plain synchronous steps; so there are no locks. It does no I/O:
leases that must be on disk first go to `write_leases`, ends of runs to `record_ends`, and the loops
beside it read the store and call back. Who goes next is decided in `core/fair_share/fairness.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from msgspec.structs import replace

from fairway.core.backlog.holds import Holds
from fairway.core.backlog.streams import key_of
from fairway.core.fair_share.capacity import Said
from fairway.core.fair_share.entitlements import FREE
from fairway.core.ids import shard_of
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.lease import may_adopt
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.dispatch.granting import Granting
from fairway.services.sessions.sessions import End, Holding, Lease, Session
from fairway.store.leases import Origin

SILENT = b'{"type":"WorkerLost","message":"The worker died or fell silent while it ran this."}'
UNNAMED = b'{"type":"WorkerLost","message":"The worker no longer names this among what it runs."}'


class Dispatcher(Granting):
    inline_bytes_max = sys.maxsize  # a larger result is a success only when storage has it

    # -- runs end ----------------------------------------------------------------------------

    def lease_of(self, session: Session, job: str, epoch: int, token: str) -> Lease | None:
        """The lease in force, if this is its holder; anything else can write nothing."""
        lease = self.leases.get(job)
        if lease is None or lease.epoch != epoch or lease.token != token:
            return None
        return lease if lease.session is session else None

    def succeeded(self, ends: list[End]) -> None:
        """Runs that ended well, as one session says."""
        self._end([end.lease for end in ends], self._clock.now_us())
        numbers = [end.number for end in ends if end.number is not None]
        ends[0].lease.session.recording.update(numbers)
        if self.aftermath.watched:
            most = self.inline_bytes_max
            kept = (end for end in ends if end.result is None or len(end.result) <= most)
            self.aftermath.succeeded(end.lease.job for end in kept)
        self.record_ends(ends)

    def ended(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """A run ended otherwise than by success."""
        end = self.aftermath.end_of(lease, number, outcome)  # should it fail, nothing is gone yet
        self._end([lease], self._clock.now_us())
        lease.session.recording.add(number)
        self.record_ends([end])

    def reported(self, lease: Lease) -> None:
        """A run is over, and its end cannot be taken yet: its lease stands, others use its slot."""
        if lease.reported or self.leases.get(lease.job.id) is not lease:
            return
        lease.session.free_slot(lease)
        lease.reported = True
        if self.backlog.has_lanes:
            self.backlog.run_ended(lease.job)
        if lease.running is not None:
            pool = lease.moved_to or lease.job.pool
            self.shares[pool].finish(lease.running, self._clock.now_us())
            lease.running = None
            self.held.stir(pool, lease.job.tenant)

    def given_up(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """The end that was reported cannot be taken at all; unless the lease is over by now."""
        if self.leases.get(lease.job.id) is lease and lease.reported:
            self.ended(lease, number, outcome)

    def lost(self, leases: Iterable[Lease], error: bytes = SILENT) -> None:
        """Nobody runs them any more: costs a delivery, never an attempt."""
        now_us, lost = self._clock.now_us(), list(leases)
        for lease in lost:
            outcome = _LOST._replace(ran_us=max(now_us - lease.granted_us, 0), error=error)
            end = self.aftermath.end_of(lease, None, outcome)
            self._end([lease], now_us)
            self.record_ends([end])
            self._metrics.lost.inc()

    def take_back(self, lease: Lease, outcome: Outcome) -> None:
        """End a run on the platform's own word; its worker is told to stop it."""
        if self.leases.get(lease.job.id) is not lease:
            return  # over since
        end = self.aftermath.end_of(lease, None, outcome)
        self._end([lease], self._clock.now_us())
        if lease.delivered:
            lease.session.revoke(lease.job.id, lease.epoch)
            lease.session.ring()
        self.record_ends([end])

    def settled(self, end: End) -> None:
        """The end of a run is on disk; a job that goes back to its queue is free again."""
        decision = end.decision
        if decision is not None and decision.state is State.QUEUED:
            tally = decision.tally
            job = replace(
                end.lease.job,
                epoch=end.lease.epoch,
                attempts=tally.attempts,
                deliveries=tally.deliveries,
                failures=tally.failures,
                place=None,  # its row was just written anew
            )
            if end.lease.shard in self.open_shards and job.id not in self.tombstones:
                self.backlog.put_back(job)
                self._wake([(job.pool, job.tenant)])

    # -- sessions ----------------------------------------------------------------------------

    def equip(self, session: Session, slots: dict[int, int]) -> None:
        """A session has said hello: its slots count towards the capacity of the pools."""
        session.equip(slots)
        session.greeted = True
        if session.there_since_us is None:
            session.there_since_us = self._clock.now_us()
        if self.sessions.get(session.key) is session:  # else it ended while its hello was read
            self.held.review(session)
            # A tenant's own workers add nothing to what all tenants share.
            shared = slots if session.tenant is None else {}
            self._headcount.count(session.key, Said(session.tenant, session.types, shared))
        self.recount()

    def end_session(self, session: Session) -> None:
        """Its process is gone: whatever it still held is lost."""
        self.drop_session(session)
        self.recount()

    def drop_session(self, session: Session) -> None:
        """As `end_session`, of many: whoever ends them recounts once."""
        self.forget_session(session)
        self._headcount.forget(session.key)
        self.lost(session.leases.values())
        session.outbox = []  # leases know their session: what was never sent must not keep it
        session.ring()

    def found_session(self, key: str, origin: Origin | None) -> Session:
        """The session of a lease that the store has; `origin` is who opened it, if that is known.

        Who opened one of this name here with another key took a name that was not its own: it is
        over, and the store's holds.
        """
        known = self.sessions.get(key)
        if origin is None or known is None:
            return self.restored_session(key, origin)
        if known.is_known and known.opener != origin.opener:
            self.end_session(known)
        return self.restored_session(key, origin)

    def recount(self) -> None:
        """Let what workers came and went change who gets how much, and what may wait in memory."""
        now_us, changes = self._clock.now_us(), self._headcount.changes()
        for number, slots in changes.capacity.items():
            self.shares[number].set_capacity(slots, now_us)
        if changes.types:
            self.backlog.set_runnable(changes.types)
        if self.backlog.wants_reads or self.backlog.is_reviewing:
            self.want_reads()

    def hear_anew(self, types: set[int]) -> None:
        """These were let go while nobody was seen to run them: whoever does says so again.

        Its hello counts them and learns their numbers, which may be new.
        """
        self.lapses += 1
        for session in self.sessions.values():
            if not session.types.isdisjoint(types):
                session.doubt()

    def adopt(self, session: Session, job: QueuedJob, holding: Holding) -> bool:
        """A worker runs a job under a lease that an earlier owner granted and never wrote.

        Its token proves the grant: what nobody was given, nobody can have run.
        """
        term = self.terms.get(shard_of(job.id))
        if not session.may_run(job.tenant) or term is None or job.id in self.leases:
            return False
        if not may_adopt(job.epoch, holding.epoch, term):
            return False
        if not self.tokens.is_real(job.id, holding.epoch, holding.token):
            return False
        self.backlog.remove(job.id, key_of(job))  # perhaps read as waiting before this was said
        self.restore(session, job, holding.epoch, holding.token, running_seconds=0.0)
        return True

    def restore_written(
        self, session: Session, job: QueuedJob, token: str, running_seconds: float
    ) -> None:
        """A lease that the store has and this memory lacks: it stands."""
        lease = self.restore(session, job, job.epoch, token, running_seconds=running_seconds)
        lease.written = True
        if not session.may_run(job.tenant):
            self.lost([lease])  # its session is another tenant's worker by now: nobody runs it

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
        self.fresh.append([lease])
        return lease

    # -- shards ------------------------------------------------------------------------------

    def claim_shard(self, shard: int, term: int) -> None:
        """This server owns it from now on; its leases must be found before anybody is judged.

        Whoever greeted before has not said what it runs of this shard: all say hello again.
        """
        self.terms[shard] = term
        self.open_shards.discard(shard)  # nothing of an earlier term holds
        self.claims += 1
        self.restoring.add(shard)
        self.all_restored.clear()
        self._forget_greetings()

    def _forget_greetings(self) -> None:
        for session in self.sessions.values():
            session.there_since_us = None  # what ended meanwhile is said after the hello
        if any(session.greeted for session in self.sessions.values()):
            for session in self.sessions.values():
                session.doubt()
            self._headcount.forget_all()
            self.recount()

    def leases_restored(self, shard: int) -> None:
        """Every written lease of the shard is here, or it is another's: workers may be heard."""
        self.restoring.discard(shard)
        if not self.restoring:
            self.all_restored.set()

    def open_shard(self, shard: int) -> None:
        self.open_shards.add(shard)

    def close_shard(self, shard: int) -> None:
        """Another server owns it now: forget all of it, write nothing."""
        self.open_shards.discard(shard)
        self.leases_restored(shard)
        self.terms.pop(shard, None)
        self.backlog.forget_shard(shard)
        foreign = [lease for lease in self.leases.values() if lease.shard == shard]
        self._release(foreign, self._clock.now_us())
        self._forget_greetings()  # the next owner, be it this server, must hear what they run

    # -- what operators decide -----------------------------------------------------------------

    def set_terms(self, tenant: Tenant) -> None:
        """A tenant's terms, for the backlog already queued too."""
        self.shares.set_terms(tenant, self._clock.now_us())
        for pool in self.pools.by_number:
            self.held.stir(pool, tenant.id)  # it may run more than before
        streams = self.backlog.streams_of(tenant.id, self.pools.by_number)
        self.backlog.reading.set_patience(tenant.id, tenant.fair_group == FREE, streams)

    def set_holds(self, holds: Holds) -> None:
        """What must not start from now on; what runs, runs on."""
        self._sleep(self.backlog.set_holds(holds))
        if self.backlog.wants_reads or self.backlog.is_reviewing:
            self.want_reads()

    def review(self) -> None:
        """Go on with what changed for very many streams: whoever reads the store calls this."""
        asleep, awake = self.backlog.review()
        self._sleep(asleep)
        if awake:
            self._wake(awake)

    def _sleep(self, places: Iterable[tuple[int, int]]) -> None:
        now_us = self._clock.now_us()
        for pool, tenant in places:
            self.shares[pool].sleep(tenant, now_us)


_LOST = Outcome(OutcomeKind.FAILED, 0, failure=FailureClass.WORKER_CRASH)
