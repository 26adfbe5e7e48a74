"""Who gets the next slot of a pool: fair shares of slot-time between tenants.

Tenants with work wait in heaps ordered by the slot-time they have had, divided by their weight. A
grant prepays the expected run; a job that outlives it is charged while it runs; one that ends early
is refunded, but never into the time before its tenant last woke. So a wrong guess about a job is
settled as it happens, and an idle tenant saves up nothing, while debts are kept. In this order:

    1  reservations   slots promised to their owner, uncharged
    2  floors         whoever holds fewer slots than its floor; then the free group, up to its slice
    3  weights        the smallest virtual time whose node is not yet over its fair slots
    4  free work      beyond its slice, only while no paid tenant has work a worker could run

The last few slots (the headroom) go by the same order, but to nobody who holds more than its part
while others are away for a moment: who comes and goes need not wait for a neighbour's job to end.

It knows tenants, types and times as numbers. It does not read a clock, hold a queue of jobs, or
decide the order of jobs inside a tenant: `take` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from fairway.core.fair_share import saved_state
from fairway.core.fair_share.choice import Choice
from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.estimates import Estimates
from fairway.core.fair_share.ledger import Ledger
from fairway.core.fair_share.queue import DONE, LENT, OWN, RESERVED, Running, ShareNode
from fairway.core.fair_share.standings import ShareStandings
from fairway.core.ids import TenantId, TypeId

__all__ = ["Entitlement", "Grantable", "PoolShare", "Running", "ShareSettings"]


PASSED_OVER_MAX = 8  # borrowers of headroom in one grant; whoever is behind them waits for a slot


class Grantable(Protocol):
    """What the scheduler reads of a job."""

    @property
    def type(self) -> TypeId: ...
    @property
    def timeout_ms(self) -> int | None: ...


JobT = TypeVar("JobT", bound=Grantable)


class PoolShare:
    """The fair-share scheduler of one pool."""

    def __init__(self, settings: ShareSettings) -> None:
        self._settings = settings
        self._estimates = Estimates(
            settings.first_estimate_us, settings.prepay_min_us, settings.prepay_max_us
        )
        self._competitors = Competitors(settings)
        self._choice = Choice(self._competitors)
        self._ledger = Ledger(self._competitors, self._estimates)
        self.standings = ShareStandings(self._competitors, self._estimates)

    # ---- what the dispatcher tells

    def set_entitlement(self, tenant: TenantId, entitlement: Entitlement, now_us: int) -> None:
        """New terms hold at once, for the backlog already queued and for jobs in flight."""
        self._competitors.set_entitlement(tenant, entitlement, now_us)

    def set_capacity(self, slots: int, now_us: int) -> None:
        """The slots of all live workers of the pool, busy ones included."""
        self._competitors.set_capacity(slots, now_us)

    def wake(self, tenant: TenantId, now_us: int) -> None:
        """The tenant has jobs to run."""
        self._competitors.wake(tenant, now_us)

    def sleep(self, tenant: TenantId, now_us: int) -> None:
        """The tenant has none, or must not run them."""
        self._competitors.sleep(tenant, now_us)

    def expect(self, type_id: TypeId, run_us: int) -> None:
        """Start a job type's estimate from a figure known from elsewhere."""
        self._estimates.expect(type_id, run_us)

    def forget_type(self, type_id: TypeId) -> None:
        """Nobody uses this job type any more."""
        self._estimates.forget(type_id)

    def tick(self, now_us: int) -> None:
        """Start charging jobs that outlived their prepayment; forget what is idle."""
        self._ledger.mark_overdue(now_us)
        self._competitors.sweep(now_us)

    # ---- granting

    def grant(
        self,
        free: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        *,
        lend: Callable[[TenantId], JobT | None] | None = None,
    ) -> list[tuple[JobT, Running]]:
        """Fill up to `free` slots of one worker.

        `take(tenant)` pops the tenant's next job this worker can run. `lend(tenant)` does the same,
        but only for a job that `may_borrow`; without it idle reserved slots are not lent.
        """
        self.tick(now_us)
        competitors, granted = self._competitors, list[tuple[JobT, Running]]()
        if competitors.reserve.open:
            self._grant_reserved(free, take, now_us, granted)
        left = free - len(granted)
        # A slot that is offered is free, even while jobs of a dead worker still count as running.
        idle = max(competitors.capacity - competitors.running - len(granted), left)
        shared = idle - competitors.reserve.idle
        headroom = competitors.headroom if now_us < competitors.recently_active.until_us else 0
        self._grant_shared(min(left, shared - headroom), take, now_us, granted)
        if headroom and (rest := min(free - len(granted), shared, headroom)) > 0:
            self._grant_headroom(rest, take, now_us, granted)
        if lend is not None and competitors.reserve.idle:
            self._grant_lent(free - len(granted), lend, now_us, granted)
        if self._choice.asides:
            self._choice.put_back()
        competitors.running += len(granted)
        return granted

    def grant_own(
        self, tenant: TenantId, free: int, take: Callable[[TenantId], JobT | None], now_us: int
    ) -> list[tuple[JobT, Running]]:
        """Fill slots of a worker that is the tenant's own, and no part of the pool's capacity."""
        node, granted = self._competitors.node(tenant), list[tuple[JobT, Running]]()
        while node.eligible and len(granted) < free:
            job = take(tenant)
            if job is None:
                break
            estimate = self._estimates.of(job.type)
            granted.append((job, self._ledger.start_uncharged(node, estimate, OWN, now_us)))
        return granted

    @property
    def has_work(self) -> bool:
        """Whether anybody could be granted anything, given the right worker."""
        return self._competitors.paid.eligible > 0 or self._competitors.free.eligible > 0

    @property
    def is_running(self) -> bool:
        """Whether a job runs: while none does, a tick has nothing to charge."""
        return self._competitors.running > 0

    @property
    def idle_slots(self) -> int:
        """As counted. Of those who offer no more than this, each is granted alike.

        Only beside jobs of a worker that died does anybody offer more.
        """
        return self._competitors.capacity - self._competitors.running

    @property
    def has_idle_reserve(self) -> bool:
        return self._competitors.reserve.idle > 0

    def may_borrow(self, job: Grantable) -> bool:
        """Whether a job ends soon enough, by an enforced limit, to run on a reserved slot."""
        limit_ms = job.timeout_ms
        return limit_ms is not None and limit_ms * 1000 <= self._settings.lend_max_us

    def _grant_reserved(
        self,
        free: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        owners = self._competitors.reserve.open
        while owners and len(granted) < free:
            node = next(iter(owners.values()))
            job = take(node.tenant)
            if job is None:
                self._choice.set_aside(node)
                continue
            estimate = self._estimates.of(job.type)
            granted.append((job, self._ledger.start_uncharged(node, estimate, RESERVED, now_us)))

    def _grant_shared(
        self,
        count: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        choice, choose, start = self._choice, self._choice.chooser(), self._ledger.start
        estimates, weights_decide = self._estimates.by_type, choose != choice.choose
        while count > 0:
            node = choose(now_us)
            if node is None:
                return
            job = take(node.tenant)
            if job is None:
                choice.set_aside(node)
                continue
            estimate = estimates.get(job.type) or self._estimates.of(job.type)
            granted.append((job, start(node, estimate, choice.by_floor, now_us)))
            count -= 1
            if weights_decide and count and node.queue.goes_on(node):
                count -= self._grant_turn(node, count, take, now_us, granted)

    def _grant_turn(
        self,
        node: ShareNode,
        most: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> int:
        """The rest of a turn: the queue would choose this node each time. Answers how many jobs."""
        end, tenant, before = node.queue.end_of_turn(node), node.tenant, len(granted)
        estimates, start = self._estimates.by_type, self._ledger.start_in_turn
        for _ in range(min(most, node.queue.room(node))):
            if node.v > end or not node.eligible:
                break
            job = take(tenant)
            if job is None:
                self._choice.set_aside(node)
                break
            estimate = estimates.get(job.type) or self._estimates.of(job.type)
            granted.append((job, start(node, estimate, now_us)))
        if node.queue.goes_on(node):
            node.queue.end_turn(node)
        return len(granted) - before

    def _grant_headroom(
        self,
        count: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        """The last slots, for whoever does not hold its part of the pool yet."""
        choice, choose, passed_over = self._choice, self._choice.chooser(), 0
        while count > 0 and passed_over < PASSED_OVER_MAX:
            node = choose(now_us)
            if node is None:
                return
            is_borrower = self._competitors.borrows(node)
            if is_borrower and node.parent is not None:
                return  # the free group borrows as one: its next child would, too
            job = None if is_borrower else take(node.tenant)
            if job is None:
                passed_over += is_borrower
                choice.set_aside(node)
                continue
            estimate = self._estimates.of(job.type)
            granted.append((job, self._ledger.start(node, estimate, choice.by_floor, now_us)))
            count -= 1

    def _grant_lent(
        self,
        free: int,
        lend: Callable[[TenantId], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        before = len(granted)
        self._grant_shared(min(free, self._competitors.reserve.idle), lend, now_us, granted)
        for _, running in granted[before:]:
            running.kind = LENT
            self._competitors.reserve.lent += 1

    # ---- ending and taking over

    def finish(self, running: Running, now_us: int) -> None:
        """The slot is free again: charge what really ran, and learn from it."""
        if running.phase == DONE:
            return
        if running.kind != OWN:
            self._competitors.running -= 1
        self._ledger.end(running, now_us)

    def adopt(
        self,
        tenant: TenantId,
        type_id: TypeId,
        granted_at_us: int,
        now_us: int,
        *,
        own: bool = False,
    ) -> Running:
        """Count a job that already runs under an earlier owner, which has charged for it."""
        node, estimate = self._competitors.node(tenant), self._estimates.of(type_id)
        if not own:
            self._competitors.running += 1
        if own or self._competitors.reserve.room(tenant):
            kind = OWN if own else RESERVED
            running = self._ledger.start_uncharged(node, estimate, kind, now_us)
            running.granted_at_us = granted_at_us
            return running
        return self._ledger.adopt(node, estimate, granted_at_us, now_us)

    def tenants(self) -> list[TenantId]:
        """All that the pool remembers anything of at this moment."""
        return list(self._competitors.nodes)

    def checkpoint(
        self, now_us: int, tenants: Iterable[TenantId] | None = None
    ) -> list[tuple[TenantId, int]]:
        """Debts that changed since the last call, of these tenants or of all; 0 is the group."""
        return saved_state.checkpoint(self._competitors, now_us, tenants)

    def restore(self, rows: Iterable[tuple[TenantId, int]], now_us: int) -> None:
        """Take over an earlier owner's debts, after the terms are set and before its jobs."""
        saved_state.restore(self._competitors, rows, now_us)
