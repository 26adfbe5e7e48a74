"""Leases of an earlier owner, put into force here: those it wrote, and those a worker proves.

A part of the dispatcher; no I/O: rows are read by those who ask.
"""

from __future__ import annotations

from fairway.core.backlog.streams import key_of
from fairway.core.job import QueuedJob
from fairway.core.run.lease import may_adopt
from fairway.core.run.lease_token import LeaseTokens
from fairway.runtime.clock import Clock
from fairway.services.dispatch.granting import Memory
from fairway.services.sessions.sessions import Holding, Lease, Session


class RestoredLeases:
    def __init__(self, memory: Memory, tokens: LeaseTokens, clock: Clock) -> None:
        self._shards = memory.shards
        self._leases = memory.leases
        self._backlog = memory.backlog
        self._tokens = tokens
        self._clock = clock

    def adopt(self, session: Session, job: QueuedJob, holding: Holding) -> bool:
        """A worker runs a job under a lease that an earlier owner granted and never wrote.

        Its token proves the grant: what nobody was given, nobody can have run.
        """
        term = self._shards.terms.get(self._shards.tenants.of_job(job.tenant, job.id))
        if not session.may_run(job.tenant) or term is None or job.id in self._leases:
            return False
        if not may_adopt(job.epoch, holding.epoch, term):
            return False
        if not self._tokens.is_real(job.id, holding.epoch, holding.token):
            return False
        self._backlog.remove(job.id, key_of(job))  # perhaps read as waiting before this was said
        now_us = self._clock.now_us()
        home = self._shards.tenants.elsewhere(job.tenant, job.id)
        lease = Lease(job, holding.epoch, holding.token, session, now_us, home=home)
        self._leases.restore(lease, now_us)
        return True

    def written(
        self, session: Session, job: QueuedJob, token: str, running_seconds: float
    ) -> Lease:
        """A lease that the store has and this memory lacks: it stands."""
        now_us = self._clock.now_us()
        granted_us = now_us - round(running_seconds * 1e6)
        home = self._shards.tenants.elsewhere(job.tenant, job.id)
        lease = Lease(job, job.epoch, token, session, granted_us, written=True, home=home)
        self._leases.restore(lease, now_us)
        return lease
