"""What every job costs its tenant: prepaid at the start, charged while it runs, settled at the end.

The ledger books starts and ends and puts nodes back in order after each. It chooses nobody.
"""

from __future__ import annotations

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.estimates import Estimate, Estimates
from fairway.core.fair_share.queue import (
    DONE,
    LENT,
    OVERTIME,
    OWN,
    PREPAID,
    RESERVED,
    SHARED,
    Running,
    ShareNode,
)
from fairway.core.fair_share.timer_wheel import TimerWheel


class Ledger:
    """The accounts of one pool."""

    def __init__(self, competitors: Competitors, estimates: Estimates) -> None:
        self._competitors = competitors
        self._estimates = estimates
        self._wheel: TimerWheel[Running] = TimerWheel(competitors.settings.overdue_tick_us)

    # ---- starting

    def start(self, node: ShareNode, estimate: Estimate, by_floor: bool, now_us: int) -> Running:
        """A job on a shared slot."""
        prepaid_us = estimate.prepaid_us
        charge = prepaid_us * node.stride
        running = Running(node, estimate, now_us, now_us + prepaid_us, charge)
        self._wheel.add(running, running.over_at_us)
        if node.plain:
            node.queue.serve(node, charge, now_us)
        elif node.parent is None:
            self._prepay(node, charge, by_floor, now_us)
        else:
            self._prepay(node, charge, False, now_us)
            self._prepay(node.parent, prepaid_us * node.parent.stride, by_floor, now_us)
        return running

    def start_in_turn(self, node: ShareNode, estimate: Estimate, now_us: int) -> Running:
        """One more job of a plain node whose turn goes on: it stays where it is in its queue."""
        prepaid_us = estimate.prepaid_us
        over_at_us, charge = now_us + prepaid_us, prepaid_us * node.stride
        running = Running(node, estimate, now_us, over_at_us, charge)
        self._wheel.add(running, over_at_us)
        node.v += charge
        node.running += 1
        node.busy_us -= now_us
        return running

    def _prepay(self, node: ShareNode, charge: int, by_floor: bool, now_us: int) -> None:
        node.accrue(now_us)
        if by_floor:
            self._competitors.floors.grants += 1
            node.start_by_floor(charge, now_us)
            node.queue.refresh(node)
        else:
            node.queue.serve(node, charge, now_us)
        self._competitors.admit(node, now_us)  # it may have reached its cap

    def start_uncharged(
        self, node: ShareNode, estimate: Estimate, kind: int, now_us: int
    ) -> Running:
        """A job on a slot that is the tenant's anyway."""
        running = Running(node, estimate, now_us, now_us, 0, kind=kind)
        node.busy_us -= now_us
        node.uncharged_running += 1
        if kind == RESERVED:
            self._competitors.reserve.start(node)
            self._competitors.reserve.review(node)
        self._competitors.admit(node, now_us)
        return running

    def adopt(
        self, node: ShareNode, estimate: Estimate, granted_at_us: int, now_us: int
    ) -> Running:
        """A job on a shared slot that an earlier owner started and charged for."""
        prepaid_us = estimate.prepaid_us
        over_at_us = granted_at_us + prepaid_us
        running = Running(node, estimate, granted_at_us, over_at_us, prepaid_us * node.stride)
        if running.over_at_us <= now_us:
            running.phase = OVERTIME
        else:
            self._wheel.add(running, running.over_at_us)
        for each in (node, node.parent):
            if each is not None:
                each.adopt(running, now_us)
                self._competitors.admit(each, now_us)
        return running

    # ---- running

    def mark_overdue(self, now_us: int) -> None:
        if now_us < self._wheel.next_us:
            return
        for bucket in self._wheel.due(now_us):
            for running in [one for one in bucket if one.phase == PREPAID]:  # mostly none is left
                self._mark_over(running, now_us)

    def _mark_over(self, running: Running, now_us: int) -> None:
        running.phase = OVERTIME
        node = running.node
        node.mark_over(running.over_at_us, now_us)
        if node.parent is not None:
            node.parent.mark_over(running.over_at_us, now_us)

    # ---- ending

    def end(self, running: Running, now_us: int) -> None:
        node = running.node
        if running.kind != OWN:  # a tenant's own workers say nothing about everybody's
            self._estimates.learn(running.estimate, now_us - running.granted_at_us)
        if running.kind == SHARED:
            node.end(running, running.charged, now_us)
        else:
            self._end_special(node, running, now_us)
        if not node.plain or not node.eligible or node.held:
            if node.parent is not None:
                self._end_in_group(node.parent, running, now_us)
            self._reposition(node, now_us)
        elif node.v < node.key:
            node.queue.push(node)
        running.phase = DONE

    def _end_special(self, node: ShareNode, running: Running, now_us: int) -> None:
        if running.kind == LENT:
            self._competitors.reserve.lent -= 1
            node.end(running, running.charged, now_us)
            return
        node.busy_us += now_us
        node.uncharged_running -= 1
        if running.kind == RESERVED:
            self._competitors.reserve.end(node)

    def _end_in_group(self, group: ShareNode, running: Running, now_us: int) -> None:
        if running.kind >= RESERVED:
            return  # uncharged to the tenant, so to the group
        prepaid_us = running.over_at_us - running.granted_at_us
        group.end(running, prepaid_us * group.stride, now_us)
        self._reposition(group, now_us)

    def _reposition(self, node: ShareNode, now_us: int) -> None:
        """After a job ended: smaller v, fewer slots held, perhaps nothing left to do."""
        if node.eligible:
            node.queue.refresh(node)
            if node.floor_share:
                self._competitors.floors.offer(node)
            self._competitors.reserve.review(node)
        elif node.awake:
            self._competitors.admit(node, now_us)
        else:
            self._competitors.rest(node)
