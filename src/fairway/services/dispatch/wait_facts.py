"""What keeps a job from starting, as far as the dispatcher's memory tells: for who explains it.

Answers questions and changes nothing; what follows from the answers is judged in `core/explain.py`.
"""

from __future__ import annotations

from fairway.core.backlog.key_limits import KeyLimit
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.runtime.clock import Clock
from fairway.services.dispatch.granting import Memory
from fairway.services.sessions.sessions import Lease


class WaitFacts:
    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._sessions = memory.sessions
        self._leases = memory.leases
        self._backlog = memory.backlog
        self._clock = clock

    def is_run(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> bool:
        """Whether a live worker could run such a job of this tenant."""
        return self._sessions.is_run(type_id, pool, tenant)

    def has_slots(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> bool:
        """Whether such a worker has slots for this server at the moment."""
        return self._sessions.has_slots(type_id, pool, tenant)

    def lacking_labels(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> tuple[str, ...]:
        """What the nearest worker that offers the pool for this type lacks to serve it."""
        return self._sessions.lacking_labels(type_id, pool, tenant)

    def free_slots(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> int:
        """Slots that nothing runs on, of workers that could run such a job of this tenant."""
        return self._sessions.free_slots(type_id, pool, tenant)

    def full_limit(self, tenant: TenantId, packed: bytes) -> KeyLimit | None:
        """Which of a job's own limits keeps it from starting now."""
        return self._backlog.limited.full(tenant, packed, self._clock.now_us())

    def unwritten(self) -> list[Lease]:
        """Jobs that run, though the store shows them as queued for a moment yet."""
        return [lease for lease in self._leases.values() if not lease.written]
