"""What is refused before anything is written: a full queue, and what that costs."""

from __future__ import annotations

import pytest
from tests.services.dispatch.test_pool_shares import tenant_with
from tests.services.platform_room import (
    MEDIUM,
    Hand,
    add_tenant,
    new,
    submit,
)
from tests.services.submit.test_submission import count

from fairway.core.errors import LimitReached, Unavailable
from fairway.services.platform import Platform


async def test_a_full_queue_refuses_and_others_see_nothing(platform: Platform) -> None:
    full, other = await add_tenant(platform, "full", depth_limit=5), await add_tenant(platform, "o")
    await submit(platform, full, *[new()] * 3, new(pool=MEDIUM))
    with pytest.raises(LimitReached) as refused:
        await submit(platform, full, new(), new())
    assert refused.value.code == "QUEUE_DEPTH_EXCEEDED"
    assert refused.value.retry_after_seconds > 0
    assert len(await submit(platform, full)) == 1
    assert len(await submit(platform, other, *[new()] * 50)) == 50
    hand = Hand(platform)
    leases = [one for one in await hand.take(4) if one.job.tenant == full.id]
    assert len(await submit(platform, full, *[new()] * len(leases))) == len(leases)  # room again


async def test_a_refusal_costs_no_tokens(platform: Platform) -> None:
    tenant = await tenant_with(platform, "t", depth_limit=1, rate_per_second=1, burst=5)
    for _ in range(20):
        with pytest.raises(LimitReached) as refused:
            await submit(platform, tenant, new(), new())
        assert refused.value.code == "QUEUE_DEPTH_EXCEEDED"
    assert platform.admission.quota(tenant).left == 5


async def test_the_tenants_depth_limit_refuses_before_any_write(platform: Platform) -> None:
    tenant = await add_tenant(platform, "small", depth_limit=3)
    await submit(platform, tenant, new(), new())
    with pytest.raises(LimitReached) as refusal:
        await submit(platform, tenant, new(), new())
    assert refusal.value.code == "QUEUE_DEPTH_EXCEEDED"
    assert refusal.value.retry_after_seconds > 0
    assert refusal.value.message.startswith("2 jobs wait and the limit is 3; come back with 2 more")
    with pytest.raises(LimitReached, match="at most 3 of yours may wait: send fewer at once"):
        await submit(platform, tenant, *(new() for _ in range(4)))
    assert len(await submit(platform, tenant, new())) == 1
    assert await count(platform) == 3


async def test_a_server_that_stops_takes_nothing_new_and_says_so(platform: Platform) -> None:
    """What was taken runs on, and is what a drain waits for."""
    tenant = await add_tenant(platform, "t")
    await submit(platform, tenant, new())
    platform.admission.close()
    platform.readiness.close()
    with pytest.raises(Unavailable) as refused:
        await submit(platform, tenant, new())
    assert refused.value.code == "STOPPING"
    assert (await platform.readiness.checks())["takes_jobs"] is False
    assert len(await Hand(platform).take(1)) == 1


async def test_a_refusal_tells_what_was_left_when_it_was_judged(platform: Platform) -> None:
    """There was a reading of the clock between the two: now and then the next token came there."""
    tenant = await tenant_with(platform, "t", rate_per_second=20_000, burst=1)
    told = []
    for _ in range(2000):
        try:
            platform.admission.admit(tenant, 1, 0)
        except LimitReached as refused:
            told.append(refused.quota)
    assert {quota and quota.left for quota in told} == {0}
