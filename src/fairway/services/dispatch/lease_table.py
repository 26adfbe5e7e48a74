"""All leases in force, by job, and what is given back when one is over: slot, share and lane.

Plain state in one event loop; who gets a lease is decided in `granting.py`, what its end means in
`dispatcher.py`. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.parked import Entry
from fairway.core.fair_share.fairness import Running
from fairway.core.ids import Epoch, PoolId, TenantId
from fairway.core.job import QueuedJob
from fairway.core.run.lease import judge_naming
from fairway.services.dispatch.pool_shares import Shares
from fairway.services.sessions.held_calls import HeldCalls
from fairway.services.sessions.sessions import Holding, Lease, Session


class StaleLeases(NamedTuple):
    """What is due to be written; and when the first was granted of what is not, if there is any."""

    leases: list[Lease]
    next_granted_us: int | None


class LeaseTable(dict[str, Lease]):
    """By the job's id."""

    def __init__(
        self, backlog: Backlog, shares: Shares, held: HeldCalls, on_fresh: Callable[[], None]
    ) -> None:
        super().__init__()
        self._on_fresh = on_fresh  # there were none of `write_later`, and now there are
        self._backlog = backlog
        self._shares = shares
        self._held = held
        self._fresh: deque[list[Lease]] = deque()  # granted lazily together, oldest first

    def stands(self, lease: Lease) -> bool:
        """Whether it is still in force; the job may have been granted anew since."""
        return self.get(lease.job.id) is lease

    def held_by(self, session: Session, job: str, epoch: Epoch, token: str) -> Lease | None:
        """The lease in force, if this is its holder."""
        lease = self.get(job)
        if lease is None or lease.epoch != epoch or lease.token != token:
            return None
        return lease if lease.session is session else None

    def take_over(self, session: Session, job: str, epoch: Epoch, token: str) -> None:
        """The next life of a worker shows the token of a lease: it is this session's now."""
        lease = self.get(job)
        if lease is None or (lease.epoch, lease.token) != (epoch, token):
            return
        if lease.session is not session and session.may_run(lease.job.tenant):
            session.take_over(lease)

    def cancel(self, tenant: TenantId, job: str) -> bool:
        """Ask a run to stop; False when there is none of this tenant's."""
        lease = self.get(job)
        if lease is None or lease.job.tenant != tenant:
            return False
        if not lease.cancelling:
            lease.cancelling = True
            lease.session.cancel(job)
            lease.session.wake()
        return True

    def note_progress(self, session: Session, holding: Holding) -> bool:
        """What a run says of itself; False when it says nothing, or its lease is another's."""
        lease = self.held_by(session, holding.job, holding.epoch, holding.token)
        if lease is None or holding.progress is None:
            return False
        lease.progress = holding.progress
        return True

    def unnamed(
        self, session: Session, named: Collection[tuple[str, Epoch]], now_us: int
    ) -> list[Lease]:
        """What a session was sent and has named in no list of all it runs, for too long."""
        sent = [(one.job.id, one.epoch) for one in session.leases.values() if one.delivered]
        grace_us = session.heartbeat_ms * 1000
        found = judge_naming(sent, named, session.missed_since_us, now_us, grace_us)
        session.missed_since_us = found.missed_since_us
        return [session.leases[job] for job in found.lost]

    def send_whole(self, lease: Lease, payload: bytes) -> None:
        """It never reached its worker; its payload was read anew."""
        lease.job = replace(lease.job, payload=payload)
        lease.session.send_again(lease)

    def write_later(self, leases: list[Lease]) -> None:
        """Granted together, and not on disk: should they still run in a while, they are written."""
        if not self._fresh:
            self._on_fresh()
        self._fresh.append(leases)

    def take_stale(self, older_than_us: int) -> StaleLeases:
        """Those of `write_later` that still run and are due."""
        fresh, stale = self._fresh, list[Lease]()
        while fresh and fresh[0][0].granted_us <= older_than_us:
            # Most are over long since.
            group = fresh.popleft()
            stale += [one for one in group if (one.running or one.reported) and not one.written]
        return StaleLeases(
            [lease for lease in stale if self.get(lease.job.id) is lease],
            fresh[0][0].granted_us if fresh else None,
        )

    def restore(self, lease: Lease, now_us: int) -> None:
        """Put a lease of an earlier owner into force here."""
        self.enforce(lease, now_us)
        self.write_later([lease])

    def enforce(self, lease: Lease, now_us: int) -> None:
        """Put a lease into force that was not granted from a window."""
        job, session = lease.job, lease.session
        lease.delivered = True
        lease.running = self._shares[job.pool].adopt(
            job.tenant, job.type, lease.granted_us, now_us, own=session.tenant is not None
        )
        if job.limits is not None:
            self._backlog.limited.runs(job, lease.granted_us)
        self[job.id] = lease
        session.hold(lease)

    def end(self, leases: list[Lease], now_us: int) -> None:
        """Runs are over; until their ends are on disk the store shows the jobs as they were."""
        self.release(leases, now_us)
        self._backlog.underway.ran([lease.job for lease in leases])

    def release(self, leases: Iterable[Lease], now_us: int) -> None:
        shares, backlog, own = self._shares, self._backlog, self._held.own
        for lease in leases:
            job, running = lease.job, lease.running
            if self.get(job.id) is not lease:
                continue  # over since; the job may have been granted anew
            del self[job.id]
            lease.session.drop(lease)
            if backlog.has_lanes:
                backlog.run_ended(job, now_us)
            if (
                job.limits is not None
                and not lease.reported
                and (freed := backlog.limited.ended(job, now_us))
            ):
                self._let_out(freed, now_us)
            if running is not None:
                pool = lease.moved_to or job.pool
                shares[pool].finish(running, now_us)
                lease.running = None
                if own:
                    self._held.stir(pool, job.tenant)

    def undo(self, job: QueuedJob, running: Running, now_us: int) -> None:
        """It was taken from its window, and gets no lease: share, lane and places are free."""
        if self._backlog.has_lanes:
            self._backlog.run_ended(job, now_us)
        if job.limits is not None:
            self._let_out(self._backlog.limited.ended(job, now_us), now_us)
        self._shares[job.pool].finish(running, now_us)

    def _let_out(self, freed: Iterable[Entry], now_us: int) -> None:
        """Who waited for a place under its keys may start: on the slot that it leaves, at once."""
        for pool, tenant in self._backlog.let_out(freed, now_us):
            self._shares[pool].wake(tenant, now_us)
            self._held.stir(pool, tenant)

    def free_slot(self, lease: Lease, now_us: int) -> None:
        """Its run is over and its end not taken yet: it stands, and others use its slot."""
        lease.session.free_slot(lease)
        lease.reported = True
        if self._backlog.has_lanes:
            self._backlog.run_ended(lease.job, now_us)
        if lease.job.limits is not None:
            self._let_out(self._backlog.limited.ended(lease.job, now_us), now_us)
        if lease.running is not None:
            pool = lease.moved_to or lease.job.pool
            self._shares[pool].finish(lease.running, now_us)
            lease.running = None
            self._held.stir(pool, lease.job.tenant)

    def outlasts(self, lease: Lease) -> bool:
        """It outlasts its pool, and counts there until there is room for it; True at first."""
        if lease.moved_to is not None:
            return False
        lease.moved_to = lease.job.pool
        return True

    def rehome(self, lease: Lease, pool: PoolId, now_us: int) -> None:
        """It runs on; the slot that it holds is counted in another pool from now on."""
        session, job = lease.session, lease.job
        session.in_use[job.pool] -= 1
        session.in_use[pool] = session.in_use.get(pool, 0) + 1
        if lease.running is not None:
            self._shares[job.pool].finish(lease.running, now_us)
            self._held.stir(job.pool, job.tenant)
            lease.running = self._shares[pool].adopt(
                job.tenant, job.type, now_us, now_us, own=session.tenant is not None
            )
        lease.moved_to = pool
