"""The sessions of a server: who is there, whose call is held open, what there is to say to each.

Plain state in one event loop; what sessions may run is decided in
`services/dispatch/dispatcher.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairway.core.errors import LimitReached, Unavailable
from fairway.core.fair_share.capacity import Headcount
from fairway.core.fair_share.own_slots import TENANT_SLOTS_MAX, OwnSlots
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.pools import PoolTable, missing_labels
from fairway.runtime.clock import Clock
from fairway.services.sessions.closed_workers import ClosedWorkers
from fairway.services.sessions.held_calls import HeldCalls
from fairway.services.sessions.offers import Offers
from fairway.services.sessions.sessions import Lease, News, Session
from fairway.store.leases import Origin

LEASES_PER_REPLY = 512
REPLY_BYTES = 4 << 20  # of payloads; the rest comes with the next reply
FEW_LEASES = 64  # weigh no more than that
TENANT_SESSIONS_MAX = 200  # of the worker keys of one tenant
TENANTS_SESSIONS_MAX = 5_000  # of all tenants' own workers: shared ones always find a place
SESSIONS_MAX = 10_000
RETRY_SECONDS = 5  # a session that ended without a word is forgotten after some seconds


class SessionTable(dict[str, Session]):
    """By the session's key."""

    def __init__(self, clock: Clock, pools: PoolTable, grace_us: int) -> None:
        super().__init__()
        self._clock = clock
        self._pools = pools
        self.grace_us = grace_us  # past a time limit, or after a silence
        self.held = HeldCalls()
        self.closed = ClosedWorkers()
        self._of_tenant: Counter[TenantId] = Counter()  # tenant → sessions of its own workers
        self._of_tenants = 0  # of all of them
        self._own_slots = OwnSlots()
        self.headcount = Headcount()
        self.offers = Offers()

    def heard(
        self,
        key: str,
        worker: str,
        tenant: TenantId | None,
        opener: str = "",
        only: frozenset[TenantId] | None = None,
    ) -> Session:
        """The session of this name, whose worker speaks just now; a new one must find a place.

        `opener` is the id of the API key that it showed, `tenant` whose key that is, and `only` the
        tenants that it serves where it is nobody's.
        """
        if key not in self:
            self._check_room(tenant)
        session = self.restored(key)
        before = session.tenant if session.is_claimed else None
        session.claim(worker, tenant, opener, only)
        if before != tenant:
            self._count_tenant(before, -1)
            self._count_tenant(tenant, 1)
            self._own_slots.forget(key)
            session.equip({})
            session.greeted = False  # a hello says what it offers to whom it is now
            self.held.review(session)
        session.heard(self._clock.now_us(), self.grace_us)
        return session

    def has(self, session: Session) -> bool:
        """Whether it is here still; another of the same name may have come since."""
        return self.get(session.key) is session

    def hold_open(self, session: Session) -> None:
        """Its call waits for jobs; not if it ended while the call was heard: it is given none."""
        if self.has(session):
            self.held.hold(session)

    def there_is_work(self, pool: PoolId, tenants: Iterable[TenantId]) -> None:
        """Of these tenants, for those who offer no slot of the pool here and could."""
        for key in list(self.offers.take_unoffered(pool, tenants)):
            if (session := self.get(key)) is not None:
                session.wake()

    def forget(self, session: Session) -> None:
        if self.pop(session.key, None) is not None:
            if session.is_claimed:
                self._count_tenant(session.tenant, -1)
            self._own_slots.forget(session.key)
        self.held.forget(session)
        self.headcount.forget(session.key)
        self.offers.forget(session.key)

    def _count_tenant(self, tenant: TenantId | None, change: int) -> None:
        if tenant is None:
            return
        self._of_tenants += change
        self._of_tenant[tenant] += change
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]

    def _check_room(self, tenant: TenantId | None) -> None:
        if tenant is not None and self._of_tenant[tenant] >= TENANT_SESSIONS_MAX:
            raise LimitReached(
                f"The tenant has {TENANT_SESSIONS_MAX} worker sessions, as many as there may be."
                " Run fewer workers with more slots each; one that ended is forgotten soon.",
                code="TOO_MANY_SESSIONS",
                retry_after_seconds=RETRY_SECONDS,
            )
        is_full = tenant is not None and self._of_tenants >= TENANTS_SESSIONS_MAX
        if is_full or len(self) >= SESSIONS_MAX:
            raise Unavailable("As many workers are here as may be.", code="OVERLOADED")

    def offer_slots(self, session: Session, slots: int) -> None:
        """A hello names so many: those of one tenant's own workers are bounded together."""
        if session.tenant is None or not self.has(session):
            return
        if not self._own_slots.offer(session.key, session.tenant, slots):
            raise LimitReached(
                f"The tenant's own workers may have {TENANT_SLOTS_MAX} slots in all, and they have"
                f" {self._own_slots.of(session.tenant)} already: {slots} more do not fit. Offer"
                " fewer; those of a worker that ended are free again soon.",
                code="TOO_MANY_SLOTS",
                retry_after_seconds=RETRY_SECONDS,
            )

    def restored(self, key: str, origin: Origin | None = None) -> Session:
        """The session as it is. One that leases are found of and that is not here is of whom the
        store says, who alone can claim it; and nobody's, where the store does not know.

        It counts towards its tenant's sessions when it speaks: it may be dead, and its next life
        must find a place.
        """
        session = self.get(key)
        if session is None:
            session = self[key] = Session(key, self._clock.now_us())
        if origin is not None and not session.is_known:
            session.worker, session.tenant, session.opener, _ = origin
        return session

    def is_run(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> bool:
        """Whether a live worker could run such a job of this tenant."""
        return any(
            one.greeted
            and type_id in one.types
            and self.offers.slots_of(one).get(pool, 0) > 0
            and one.may_run(tenant)
            for one in self.values()
        )

    def lacking_labels(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> tuple[str, ...]:
        """What the nearest worker that offers the pool for this type lacks to serve it."""
        wanted = self._pools.by_number[pool]
        lacking = [
            tuple(missing_labels(wanted, one.labels))
            for one in self.values()
            if one.greeted and type_id in one.types and pool in one.slots and one.may_run(tenant)
        ]
        return min(lacking, key=len, default=())

    def has_slots(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> bool:
        """Whether one of these workers has slots for us, not only for other owners of shards."""
        return any(
            one.greeted
            and type_id in one.types
            and one.slots.get(pool, 0) > 0
            and one.may_run(tenant)
            for one in self.values()
        )

    def free_slots(self, type_id: TypeId, pool: PoolId, tenant: TenantId) -> int:
        """Slots that nothing runs on, of workers that could run such a job of this tenant."""
        return sum(
            max(one.free(pool), 0)
            for one in self.values()
            if one.greeted and type_id in one.types and one.may_run(tenant)
        )

    def news(self, session: Session) -> News:
        """What there is to say to a session, once; `more` says that it should call again at once.

        So many leases at a time, no more: while a worker starts some, the next ones are granted.
        """
        held = session.leases  # what was taken back since must not go out
        leases = [lease for lease in session.outbox if held.get(lease.job.id) is lease]
        leases, later = (leases, []) if len(leases) <= FEW_LEASES else _cut(leases)
        now_us = self._clock.now_us() if leases else 0
        for lease in leases:
            lease.delivered, lease.sent_us = True, now_us
        has_room = len(leases) >= LEASES_PER_REPLY and any(
            session.free(pool) > 0 for pool in session.slots
        )
        more = bool(later) or has_room
        news = News(
            leases,
            session.recorded,
            session.refused,
            session.cancels,
            list(session.revoked),
            list(session.revoked.values()),
            more,
            session.must_drain,
            session.heartbeat_ms,
            dead=session.died,
        )
        session.outbox, session.recorded, session.refused = later, [], []
        session.cancels, session.revoked, session.died = [], {}, []
        return news


def _cut(leases: list[Lease]) -> tuple[list[Lease], list[Lease]]:
    """What one reply carries, and what is left for the next: it is encoded in one go."""
    left_bytes = REPLY_BYTES
    for index, lease in enumerate(leases):
        left_bytes -= len(lease.job.payload)
        if left_bytes < 0:
            return leases[: index or 1], leases[index or 1 :]
    return leases, []
