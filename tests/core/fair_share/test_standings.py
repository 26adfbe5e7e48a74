"""What people are told of a pool: why a tenant waits; and asking changes no decision."""

from __future__ import annotations

from hypothesis import given
from tests.core.fair_share.test_competitors import Step, play, steps
from tests.core.fair_simulation import PLAIN, SECOND, SimJob
from tests.properties import tried

from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.fairness import PoolShare, Running
from fairway.core.fair_share.standings import Waiting
from fairway.core.ids import TenantId, TypeId


def always(tenant: int) -> SimJob:
    return SimJob(tenant, TypeId(1), 0, None)


def pool(slots: int, *tenants: int) -> PoolShare:
    share = PoolShare(PLAIN)
    share.set_capacity(slots, 0)
    for tenant in tenants:
        share.wake(TenantId(tenant), 0)
    return share


class Asked(PoolShare):
    """All that can be asked is asked all the time."""

    def finish(self, running: Running, now_us: int) -> None:
        self._ask(now_us)
        super().finish(running, now_us)

    def wake(self, tenant: int, now_us: int) -> None:
        self._ask(now_us)
        super().wake(TenantId(tenant), now_us)

    def _ask(self, now_us: int) -> None:
        self.standings.pool()
        self.standings.estimate(TypeId(1))
        self.standings.totals(map(TenantId, range(9)), now_us)
        for tenant in range(1, 9):
            self.standings.standing(TenantId(tenant), now_us)


@tried(100)
@given(steps)
def test_asking_changes_no_decision(steps: list[Step]) -> None:
    quiet, asked = PoolShare(ShareSettings()), Asked(ShareSettings())
    for share in (quiet, asked):
        share.set_capacity(8, 0)
    left = [[one.node.tenant for one in play(share, steps)] for share in (quiet, asked)]
    assert left[0] == left[1]
    assert quiet.standings.pool() == asked.standings.pool()


def test_each_reason_to_wait() -> None:
    share = pool(4, 1, 2, 3)
    share.set_entitlement(TenantId(3), Entitlement(cap=0), 0)
    share.expect(TypeId(1), 1_000)
    share.expect(TypeId(2), SECOND)
    share.grant(2, lambda who: SimJob(1, TypeId(1), 0, None) if who == 1 else None, 0)
    for _ in range(2):  # the second time it is not the turn of 2, but 1 has all that is its own
        share.grant(1, lambda who: SimJob(2, TypeId(2), 0, None) if who == 2 else None, 0)
    waiting = {who: share.standings.standing(TenantId(who), 0).waiting for who in (1, 2, 3, 4)}
    assert waiting == {
        1: Waiting.FAIR_SLOTS,
        2: Waiting.TURN,
        3: Waiting.CAP,
        4: Waiting.NO_WORK,
    }


def test_slots_that_one_may_expect_are_by_weight_and_within_its_cap() -> None:
    share = pool(12, 1, 2)
    share.set_entitlement(TenantId(1), Entitlement(weight=20), 0)
    assert share.standings.standing(TenantId(1), 0).fair_slots_milli == 8_000
    assert share.standings.standing(TenantId(2), 0).fair_slots_milli == 4_000
    share.set_entitlement(TenantId(1), Entitlement(weight=20, cap=3), 0)
    assert share.standings.standing(TenantId(1), 0).fair_slots_milli == 3_000
    assert share.standings.standing(TenantId(9), 0).fair_slots_milli == 3_000, (
        "a newcomer, beside the others"
    )


def test_what_was_received_is_told_after_its_tenant_was_forgotten() -> None:
    share = pool(1, 1)
    ((_, running),) = share.grant(1, always, 0)
    share.finish(running, 5 * SECOND)
    share.sleep(TenantId(1), 5 * SECOND)
    before = share.standings.standing(TenantId(1), 5 * SECOND)
    for hour in (1, 2):
        share.tick(hour * 3600 * SECOND)
    assert 1 not in share._competitors.nodes
    after = share.standings.standing(TenantId(1), 3 * 3600 * SECOND)
    assert after.received_us == before.received_us == 5 * SECOND
    assert after.entitled_us == before.entitled_us == 5 * SECOND


def test_nobody_stands_before_itself() -> None:
    """Entries that a tenant left behind are no tenants whose turn comes first."""
    share = pool(8)
    for moment in range(8):  # one job after the other, and all of them run on
        share.wake(TenantId(1), moment * SECOND)
        share.grant(1, always, moment * SECOND)
        share.sleep(TenantId(1), moment * SECOND)
    share.wake(TenantId(1), 8 * SECOND)
    assert share.standings.standing(TenantId(1), 9 * SECOND).ahead == 0
    share.wake(TenantId(2), 9 * SECOND)
    assert share.standings.standing(TenantId(1), 9 * SECOND).ahead == 1


def test_the_room_below_a_cap() -> None:
    share = pool(4, 1)
    assert share.standings.room(TenantId(1)) > 1000
    share.set_entitlement(TenantId(1), Entitlement(cap=2), 0)
    share.set_entitlement(TenantId(2), Entitlement(cap=3), 0)
    assert share.standings.room(TenantId(2)) == 3, "it has not been here yet"
    assert share.standings.room(TenantId(1)) == 2
    assert share.grant(1, always, 0)
    assert share.standings.room(TenantId(1)) == 1
