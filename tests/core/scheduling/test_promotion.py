"""Promotion caps: held over every span of time, shared evenly, never piling up."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import TenantId
from fairway.core.scheduling.promotion import BURST_PER_SECOND, Allowances, PromotionCaps

rates = st.integers(1, 5000)
tenants = st.sets(st.integers(1, 30), min_size=1)
rounds = st.lists(st.tuples(st.integers(0, 300_000), tenants), min_size=1, max_size=40)


def burst(rate: int) -> int:
    return max(rate // BURST_PER_SECOND, 1)


@given(rates, rates, rounds)
def test_caps_hold_over_any_span(
    total: int, each: int, steps: list[tuple[int, set[TenantId]]]
) -> None:
    allowances = Allowances(
        PromotionCaps(jobs_per_second=total, tenant_jobs_per_second=each), now_us=0
    )
    now_us = 0
    moved: Counter[int] = Counter()
    for rest_us, due in steps:
        now_us += rest_us
        shares = allowances.allot(due, now_us)
        assert set(shares) <= due
        allowances.spend(shares, now_us)
        moved.update(shares)
        assert sum(moved.values()) <= total * now_us // 1_000_000 + burst(total)
        for tenant in moved:
            assert moved[tenant] <= each * now_us // 1_000_000 + burst(each)


@given(rates, rates, tenants)
def test_what_there_is_is_given_out_and_evenly(total: int, each: int, due: set[TenantId]) -> None:
    caps = PromotionCaps(jobs_per_second=total, tenant_jobs_per_second=each)
    shares = Allowances(caps, now_us=0).allot(due, 0)
    most = burst(each) * len(due)
    assert sum(shares.values()) == min(burst(total), most), "nothing is held back"
    given_out = [shares.get(tenant, 0) for tenant in due]
    assert max(given_out) - min(given_out) <= 1


def test_an_unused_share_is_not_spent() -> None:
    allowances = Allowances(PromotionCaps(jobs_per_second=100, tenant_jobs_per_second=100), 0)
    assert allowances.allot({TenantId(1)}, 0) == {1: 10}
    allowances.spend({TenantId(1): 1}, 0)
    assert allowances.allot({TenantId(1)}, 0) == {1: 9}
    assert allowances.allot({TenantId(1)}, 10**9) == {1: 10}, "an outage saves nothing up"


def test_a_tenant_over_its_cap_leaves_the_rest_to_others() -> None:
    allowances = Allowances(PromotionCaps(jobs_per_second=1000, tenant_jobs_per_second=100), 0)
    allowances.spend(allowances.allot({TenantId(1)}, 0), 0)
    assert allowances.allot({TenantId(1), TenantId(2)}, 1000) == {2: 10}
