"""One competitor for slots (a tenant, or the free group), and one job in flight.

A node's `v` is its virtual time: slot-microseconds received, times SCALE, over its weight. It is
an integer and every change is exact, so that what was charged equals what ran, to the microsecond.
The low TENANT_BITS of `v` never change: they hold the tenant's number, which breaks ties and leads
from a heap entry back to the node. Nodes keep accounts; who goes next is decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from fairway.core.fair_share.entitlements import Entitlement
from fairway.core.ids import TenantId

if TYPE_CHECKING:
    from fairway.core.fair_share.estimates import Estimate
    from fairway.core.fair_share.queue import ShareQueue

TENANT_BITS = 32
TENANT_MASK = (1 << TENANT_BITS) - 1
# Divisible by every power of ten up to WEIGHT_MAX and by 1..12 beside it: the weights people
# choose divide it, for others the stride is off by less than weight/SCALE (36 in a million).
SCALE = 2_772_000_000
UNCAPPED = 1 << 60
ABSENT = -1  # a key no entry can have

# The phases of a job in flight, and on whose slot it runs. Plain numbers: this is the hot path.
PREPAID, OVERTIME, DONE = range(3)
# Shared and lent slots are charged for; from RESERVED on, the slot is the tenant's anyway.
SHARED, LENT, RESERVED, OWN = range(4)


class ShareNode:
    """Fair-share account of one tenant in one pool."""

    __slots__ = (
        "accrued_at_us", "adjusted", "aside", "awake", "busy_us", "cap", "eligible",
        "entitled_from", "entitled_us", "floor_key", "floor_share", "held", "idle_listed", "key",
        "lift", "over", "parent", "plain", "queue", "running", "saved", "stride", "tenant",
        "uncharged_running", "v", "weight",
    )  # fmt: skip

    def __init__(self, tenant: TenantId, entitlement: Entitlement, queue: ShareQueue) -> None:
        self.tenant = tenant
        self.queue = queue
        self.parent: ShareNode | None = None
        self.v = queue.v + tenant
        self.lift = self.v  # refunds never take v below this
        self.running = 0  # charged jobs in flight
        self.uncharged_running = 0  # on its reservation or its own workers
        self.over = 0  # of the charged: those past their prepayment
        self.accrued_at_us = 0  # v includes the overtime until here
        self.awake = False  # has jobs to run
        self.eligible = False  # awake and below its cap
        self.key = ABSENT  # its live entry in the queue: v, or a smaller v it once had
        self.held = False  # waits behind the occupancy guard
        self.aside = False  # has nothing for the worker that is asking now
        self.idle_listed = False
        self.floor_key: tuple[int, int] | None = None  # its live entry among the floors
        self.adjusted = 0  # sum of lifts and clamps: v - adjusted is pure charge
        self.busy_us = 0  # see received_us
        self.entitled_us = 0
        self.entitled_from = 0
        self.saved = 0  # v as last written to a checkpoint
        self.set_entitlement(entitlement)

    def set_entitlement(self, entitlement: Entitlement) -> None:
        self.weight = entitlement.weight
        self.stride = SCALE // entitlement.weight << TENANT_BITS
        self.floor_share = entitlement.floor_share
        self.cap = UNCAPPED if entitlement.cap is None else entitlement.cap
        self.plain = entitlement.is_plain

    def accrue(self, now_us: int) -> None:
        """Charge overtime up to now."""
        if self.over:
            self.v += self.over * (now_us - self.accrued_at_us) * self.stride
        self.accrued_at_us = now_us

    def start_by_floor(self, charge: int, now_us: int) -> None:
        """Prepay one job owed by the floor: entitled use must not become a debt."""
        self.accrue(now_us)
        self.v += charge
        self.running += 1
        self.busy_us -= now_us
        self.lower_to(self.queue.v + charge)

    def mark_over(self, over_at_us: int, now_us: int) -> None:
        """A job outlived its prepayment: from now on it is charged as it runs."""
        self.accrue(now_us)
        self.v += (now_us - over_at_us) * self.stride
        self.over += 1

    def adopt(self, running: Running, now_us: int) -> None:
        """Count a job that was charged up to now elsewhere."""
        self.accrue(now_us)
        self.running += 1
        self.over += running.phase == OVERTIME
        self.busy_us -= now_us

    def end(self, running: Running, charged: int, now_us: int) -> None:
        """Settle one charged job: overtime up to now, or a refund of what it did not use."""
        self.running -= 1
        self.busy_us += now_us
        if running.phase == OVERTIME:
            self.accrue(now_us)
            self.over -= 1
        elif now_us < running.over_at_us:
            # Used time counts at today's weight: a change of terms acts on jobs in flight too.
            unused = charged - (now_us - running.granted_at_us) * self.stride
            if unused > 0:
                self.refund(unused)
        else:
            self.v += (now_us - running.over_at_us) * self.stride

    def refund(self, unused: int) -> None:
        """Never below the last wake-up: a prepayment is no way to carry credit through a sleep."""
        v = self.v - unused
        if v < self.lift:
            self.adjusted += self.lift - v
            v = self.lift
        self.v = v

    def raise_to(self, moment: int) -> None:
        """Not before that moment of the queue's virtual time."""
        v = moment + self.tenant
        if self.v < v:
            self.adjusted += v - self.v
            self.v = v

    def lower_to(self, moment: int) -> None:
        """Forgive what lies beyond that moment, which is not before the present."""
        v = moment + self.tenant
        if self.v > v:
            self.adjusted -= self.v - v
            self.v = v
            # Refunds of older jobs must not dig into the past: it has just been settled.
            self.lift = self.queue.v + self.tenant

    def received_us(self, now_us: int) -> int:
        """Slot-microseconds received so far, running jobs included; never falls."""
        return self.busy_us + (self.running + self.uncharged_running) * now_us


class Running(Struct, eq=False, gc=False):
    """One job in flight, as the scheduler sees it."""

    node: ShareNode
    estimate: Estimate
    granted_at_us: int
    over_at_us: int  # when its prepayment ends
    charged: int  # virtual time prepaid
    phase: int = PREPAID
    kind: int = SHARED
