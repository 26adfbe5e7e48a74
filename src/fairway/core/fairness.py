"""Who gets the next slot of a pool: fair shares of slot-time between tenants.

Tenants with work wait in heaps ordered by the slot-time they have had, divided by their weight. A
grant prepays the expected run; a job that outlives it is charged while it runs; one that ends early
is refunded, but never into the time before its tenant last woke. So a wrong guess about a job is
settled as it happens, and an idle tenant saves up nothing, while debts are kept. In this order:

    1  reservations   slots promised to their owner, uncharged
    2  floors         whoever holds fewer slots than its floor; then the free group, up to its slice
    3  weights        the smallest virtual time whose node is not yet over its fair slots
    4  free work      beyond its slice, only while no paid tenant has work a worker could run

It knows tenants, types and times as numbers. It does not read a clock, hold a queue of jobs, or
decide the order of jobs inside a tenant: `take` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from fairway.core import share_record
from fairway.core.estimates import Estimates
from fairway.core.overdue import OverdueWheel
from fairway.core.share_insight import ShareInsight
from fairway.core.share_node import DONE, LENT, OVERTIME, PREPAID, RESERVED, Running, ShareNode
from fairway.core.share_roster import Roster
from fairway.core.share_terms import ShareSettings, Terms

__all__ = ["PoolShare", "Running", "ShareSettings", "Terms"]


class Grantable(Protocol):
    """What the scheduler reads of a job."""

    @property
    def type(self) -> int: ...
    @property
    def timeout_ms(self) -> int | None: ...


JobT = TypeVar("JobT", bound=Grantable)


class PoolShare:
    """The fair-share scheduler of one pool."""

    def __init__(self, settings: ShareSettings) -> None:
        self._settings = settings
        self._roster = Roster(settings)
        self._estimates = Estimates(
            settings.first_estimate_us, settings.prepay_min_us, settings.prepay_max_us
        )
        self._wheel: OverdueWheel[Running] = OverdueWheel(settings.overdue_tick_us)
        self._running = 0
        self._by_floor = False  # how the node that `_choose` returned was chosen
        self._asides: list[ShareNode] = []
        self.insight = ShareInsight(self._roster, self._estimates)

    # ---- what the dispatcher tells

    def set_terms(self, tenant: int, terms: Terms, now_us: int) -> None:
        """New terms hold at once, for the backlog already queued and for jobs in flight."""
        self._roster.set_terms(tenant, terms, now_us)

    def set_capacity(self, slots: int, now_us: int) -> None:
        """The slots of all live workers of the pool, busy ones included."""
        self._roster.set_capacity(slots, now_us)

    def wake(self, tenant: int, now_us: int) -> None:
        """The tenant has jobs to run."""
        self._roster.wake(tenant, now_us)

    def sleep(self, tenant: int, now_us: int) -> None:
        """The tenant has none, or must not run them."""
        self._roster.sleep(tenant, now_us)

    def expect(self, type_id: int, run_us: int) -> None:
        """Start a job type's estimate from a figure known from elsewhere."""
        self._estimates.expect(type_id, run_us)

    def tick(self, now_us: int) -> None:
        """Start charging jobs that outlived their prepayment; forget what is idle."""
        if now_us >= self._wheel.next_us:
            for running in self._wheel.due(now_us):
                if running.phase == PREPAID:
                    self._mark_over(running, now_us)
        self._roster.sweep(now_us)

    # ---- granting

    def grant(
        self,
        free: int,
        take: Callable[[int], JobT | None],
        now_us: int,
        *,
        lend: Callable[[int], JobT | None] | None = None,
    ) -> list[tuple[JobT, Running]]:
        """Fill up to `free` slots of one worker.

        `take(tenant)` pops the tenant's next job this worker can run. `lend(tenant)` does the same,
        but only for a job that `may_borrow`; without it idle reserved slots are not lent.
        """
        self.tick(now_us)
        granted: list[tuple[JobT, Running]] = []
        if self._roster.reserve.open:
            self._grant_reserved(free, take, now_us, granted)
        left = free - len(granted)
        busy = self._running + len(granted)
        room = max(self._roster.capacity - busy, left) - self._roster.reserve.idle
        self._grant_shared(min(left, room), take, now_us, granted)
        if lend is not None and self._roster.reserve.idle:
            self._grant_lent(free - len(granted), lend, now_us, granted)
        if self._asides:
            self._put_back()
        self._running += len(granted)
        return granted

    def may_borrow(self, job: Grantable) -> bool:
        """Whether a job ends soon enough, by an enforced limit, to run on a reserved slot."""
        limit_ms = job.timeout_ms
        return limit_ms is not None and limit_ms * 1000 <= self._settings.lend_max_us

    def _grant_reserved(
        self,
        free: int,
        take: Callable[[int], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        owners = self._roster.reserve.open
        while owners and len(granted) < free:
            node = next(iter(owners.values()))
            job = take(node.tenant)
            if job is None:
                self._set_aside(node)
            else:
                granted.append((job, self._start_reserved(node, job.type, now_us)))

    def _grant_shared(
        self,
        count: int,
        take: Callable[[int], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        choose = self._chooser()
        while count > 0:
            node = choose(now_us)
            if node is None:
                return
            job = take(node.tenant)
            if job is None:
                self._set_aside(node)
                continue
            granted.append((job, self._start(node, job.type, now_us)))
            count -= 1

    def _grant_lent(
        self,
        free: int,
        lend: Callable[[int], JobT | None],
        now_us: int,
        granted: list[tuple[JobT, Running]],
    ) -> None:
        before = len(granted)
        self._grant_shared(min(free, self._roster.reserve.idle), lend, now_us, granted)
        for _, running in granted[before:]:
            running.kind = LENT
            self._roster.reserve.lent += 1

    # ---- choosing

    def _chooser(self) -> Callable[[int], ShareNode | None]:
        """Where nobody has a floor or is free, weights alone decide: skip the other questions."""
        self._by_floor = False
        roster = self._roster
        return self._choose if roster.floors.heap or roster.free.eligible else roster.paid.pick

    def _choose(self, now_us: int) -> ShareNode | None:
        """The node whose job the next shared slot should run."""
        roster = self._roster
        self._by_floor = True
        if roster.floors.heap and (node := roster.floors.neediest()) is not None:
            return node
        group = roster.group
        if group.running < roster.free_floor and (node := self._pick_free(now_us)) is not None:
            return node
        self._by_floor = False
        node = roster.paid.pick(now_us)
        if node is None:
            ceiling = roster.paid.slots * roster.settings.free_ceiling_share
            return self._pick_free(now_us) if group.running * 1000 < ceiling else None
        if node is not group:
            return node
        child = self._pick_free(now_us)
        if child is None:
            # Its children have nothing for this worker: the group steps aside with them.
            self._set_aside(group)
            return self._choose(now_us)
        return child

    def _pick_free(self, now_us: int) -> ShareNode | None:
        roster = self._roster
        if not roster.free.eligible:
            return None
        return roster.free.pick(now_us)

    def _set_aside(self, node: ShareNode) -> None:
        node.aside = True
        self._asides.append(node)
        node.queue.withdraw(node)
        node.floor_key = None
        self._roster.reserve.review(node)

    def _put_back(self) -> None:
        for node in self._asides:
            node.aside = False
            node.queue.put_back(node)
            if node.eligible and node.parent is None:
                if node.floor_share:
                    self._roster.floors.offer(node)
                self._roster.reserve.review(node)
        self._asides.clear()

    # ---- charging

    def _start(self, node: ShareNode, type_id: int, now_us: int) -> Running:
        estimate = self._estimates.by_type.get(type_id) or self._estimates.of(type_id)
        prepaid_us = estimate.prepaid_us
        charge = prepaid_us * node.stride
        if self._by_floor and node.parent is None:
            self._roster.floors.grants += 1
            node.start_by_floor(charge, now_us)
            node.queue.refresh(node)
        else:
            node.queue.serve(node, charge, now_us)
            if node.parent is not None:
                self._start_in_group(node.parent, prepaid_us, now_us)
        running = Running(node, estimate, now_us, prepaid_us, charge)
        self._wheel.add(running, running.over_at_us)
        if node.running + node.reserved_running >= node.cap:
            self._roster.admit(node, now_us)
        return running

    def _start_in_group(self, group: ShareNode, prepaid_us: int, now_us: int) -> None:
        if self._by_floor:
            group.start_by_floor(prepaid_us * group.stride, now_us)
            group.queue.refresh(group)
        else:
            group.accrue(now_us)
            group.queue.serve(group, prepaid_us * group.stride, now_us)
        self._roster.admit(group, now_us)

    def _start_reserved(self, node: ShareNode, type_id: int, now_us: int) -> Running:
        running = Running(node, self._estimates.of(type_id), now_us, 0, 0)
        running.kind = RESERVED
        node.busy_us -= now_us
        self._roster.reserve.start(node)
        self._roster.reserve.review(node)
        self._roster.admit(node, now_us)
        return running

    def _mark_over(self, running: Running, now_us: int) -> None:
        running.phase = OVERTIME
        node = running.node
        node.mark_over(running.over_at_us, now_us)
        if node.parent is not None:
            node.parent.mark_over(running.over_at_us, now_us)

    def finish(self, running: Running, now_us: int) -> None:
        """The slot is free again: charge what really ran, and learn from it."""
        if running.phase == DONE:
            return
        node = running.node
        self._running -= 1
        self._estimates.learn(running.estimate, now_us - running.granted_at_us)
        if running.kind == RESERVED:
            node.busy_us += now_us
            self._roster.reserve.end(node)
        else:
            node.end(running, running.charged, now_us)
            if node.parent is not None:
                self._end_in_group(node.parent, running, now_us)
            if running.kind == LENT:
                self._roster.reserve.lent -= 1
        running.phase = DONE
        if node.eligible and node.plain and not node.held:
            if node.v < node.key:
                node.queue.push(node)
        else:
            self._reposition(node, now_us)

    def _end_in_group(self, group: ShareNode, running: Running, now_us: int) -> None:
        prepaid_us = running.over_at_us - running.granted_at_us
        group.end(running, prepaid_us * group.stride, now_us)
        self._reposition(group, now_us)

    def _reposition(self, node: ShareNode, now_us: int) -> None:
        """After a job ended: smaller v, fewer slots held, perhaps nothing left to do."""
        if node.eligible:
            node.queue.refresh(node)
            if node.floor_share:
                self._roster.floors.offer(node)
            self._roster.reserve.review(node)
        elif node.awake:
            self._roster.admit(node, now_us)
        else:
            self._roster.rest(node)

    # ---- failover

    def adopt(self, tenant: int, type_id: int, granted_at_us: int, now_us: int) -> Running:
        """Count a job that already runs under an earlier owner, which has charged for it."""
        node = self._roster.node(tenant)
        if self._roster.reserve.room(tenant):
            running = self._start_reserved(node, type_id, now_us)
            running.granted_at_us = granted_at_us
        else:
            running = self._adopt_shared(node, type_id, granted_at_us, now_us)
        self._running += 1
        self._roster.admit(node, now_us)
        return running

    def _adopt_shared(
        self, node: ShareNode, type_id: int, granted_at_us: int, now_us: int
    ) -> Running:
        estimate = self._estimates.of(type_id)
        prepaid_us = estimate.prepaid_us
        running = Running(node, estimate, granted_at_us, prepaid_us, prepaid_us * node.stride)
        if running.over_at_us <= now_us:
            running.phase = OVERTIME
        for each in (node, node.parent):
            if each is not None:
                each.adopt(running, now_us)
        if running.phase == PREPAID:
            self._wheel.add(running, running.over_at_us)
        return running

    def checkpoint(self, now_us: int) -> list[tuple[int, int]]:
        """Virtual times that changed since the last call; tenants below 1 are the pool's own."""
        return share_record.checkpoint(self._roster, now_us)

    def restore(self, rows: Iterable[tuple[int, int]], now_us: int) -> None:
        """Take over from an earlier owner, after the terms are set and before any job."""
        share_record.restore(self._roster, rows, now_us)
