"""Who has spent what it may is told, then started no more, and a pause of others' stays its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.services.billing.test_statements import add_price, use
from tests.services.platform_room import Hand, add_tenant, freeze, submit, told_events

from fairway.core.audit import PLATFORM
from fairway.core.backlog.holds import Hold
from fairway.core.billing.periods import month_of
from fairway.core.billing.pricing import ANY_POOL
from fairway.core.billing.spend_cap import SpendCap, Stage
from fairway.core.tenant import Tenant
from fairway.services.billing import spend_caps
from fairway.services.platform import Platform

THIS = month_of(datetime.now(UTC))


@pytest.fixture
async def still(platform: Platform) -> Platform:
    """Its loops do nothing by themselves."""
    await freeze(platform)
    return await priced(platform)


async def priced(platform: Platform) -> Platform:
    """A slot-second costs a millionth."""
    await platform.billing.roll_up.run_once(0)
    await add_price(platform, ANY_POOL, THIS.begins, 0, 1)
    return platform


async def spend(platform: Platform, tenant: Tenant, micros: int) -> None:
    await use(platform, tenant, datetime.now(UTC), micros * 1_000_000)
    await platform.billing.spend_caps.run_once(0)


async def cap(platform: Platform, tenant: Tenant, micros: int, grace_seconds: int = 0) -> None:
    await platform.billing.spend_caps.put(
        tenant.id, tenant.name, SpendCap(micros, grace_seconds), PLATFORM
    )
    await platform.billing.spend_caps.run_once(0)


async def heard(platform: Platform, tenant: Tenant) -> list[str]:
    return [event.kind for event in await told_events(platform, tenant)]


def held(platform: Platform, tenant: Tenant) -> bool:
    return bool(platform.holds.of("spend_cap", tenant.id))


async def test_near_reached_paused_raised(still: Platform, tenant: Tenant) -> None:
    other = await add_tenant(still, "other")
    await cap(still, other, 1)
    await cap(still, tenant, 100, grace_seconds=3600)
    await spend(still, tenant, 79)
    assert await heard(still, tenant) == []
    await spend(still, tenant, 1)
    await spend(still, tenant, 20)
    assert await heard(still, tenant) == ["spend.near", "spend.reached"]
    assert not held(still, tenant), "there is grace"
    await cap(still, tenant, 100, grace_seconds=0)
    assert held(still, tenant)
    await still.billing.spend_caps.run_once(0)
    assert await heard(still, tenant) == ["spend.near", "spend.reached", "spend.paused"]
    assert still.billing.spend_caps.held() == [tenant.id]
    await cap(still, tenant, 1000)
    assert not held(still, tenant)
    assert (await heard(still, tenant))[3:] == ["spend.resumed"]
    assert await heard(still, other) == []


async def test_nothing_starts_and_the_pause_of_a_person_stays(
    platform: Platform, tenant: Tenant
) -> None:
    still = await priced(platform)
    await submit(still, tenant)
    await cap(still, tenant, 10)
    await spend(still, tenant, 10)
    mine = Hold(tenant.id)
    await still.pauses.pause(mine)
    assert await still.pauses.resume(mine)
    hand = Hand(still)
    for _ in range(2):
        news = await hand.say(hello=True, wait_seconds=0.05)
        assert news is not None
        assert news.leases == [], "the person resumed; the cap still holds"
    await still.pauses.pause(mine)
    await cap(still, tenant, 1000)
    news = await hand.say(wait_seconds=0.05)
    assert news is not None
    assert news.leases == [], "the cap was raised; the person still pauses"
    assert await still.pauses.resume(mine)
    assert len(await hand.take()) == 1


async def test_a_new_month_begins_with_nothing_spent(still: Platform, tenant: Tenant) -> None:
    await cap(still, tenant, 0)
    assert held(still, tenant)
    async with still.database.people() as connection:
        await connection.execute(
            "UPDATE spend_caps SET month = '2020-01-01', cap_micros = 10, reached_at = '2020-01-31'"
        )
    await still.billing.spend_caps.run_once(0)
    assert not held(still, tenant)
    assert (await heard(still, tenant))[-1] == "spend.resumed"
    view = await still.billing.spend_caps.of(tenant.id, tenant.id)
    assert view is not None
    assert (view.row.stage, view.spent_micros) == (Stage.BELOW, 0)


async def test_without_a_cap_nothing_is_held(still: Platform, tenant: Tenant) -> None:
    await cap(still, tenant, 0)
    assert held(still, tenant)
    assert await still.billing.spend_caps.drop(tenant.id, tenant.name, PLATFORM)
    assert (await heard(still, tenant))[-1] == "spend.resumed"
    await still.billing.spend_caps.run_once(0)
    assert not held(still, tenant)
    assert await still.billing.spend_caps.of(tenant.id, None) is None
    assert not await still.billing.spend_caps.drop(tenant.id, tenant.name, PLATFORM)


async def test_a_tenant_that_cannot_be_looked_at_stops_no_other(
    still: Platform, tenant: Tenant
) -> None:
    """Its sums are beyond all numbers."""
    other = await add_tenant(still, "other")
    async with still.database.people() as connection:
        await connection.execute(
            "INSERT INTO usage_hours SELECT $1, $2::timestamptz + n * interval '1 hour', 1, 1,"
            " 9223372036854775807, 0, 0, 0 FROM generate_series(0, 1) AS n",
            tenant.id,
            THIS.begins,
        )
    for one in (tenant, other):
        await cap(still, one, 0)
    assert (held(still, tenant), held(still, other)) == (False, True)


async def test_a_long_look_is_taken_less_often(
    still: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until an operator says something new."""
    monkeypatch.setattr(spend_caps, "LONG_LOOK_US", -1)
    monkeypatch.setattr(spend_caps, "RESTS", 1_000_000)
    await cap(still, tenant, 100)
    await spend(still, tenant, 90)
    assert await heard(still, tenant) == []
    await cap(still, tenant, 100)
    assert await heard(still, tenant) == ["spend.near"]


async def test_money_is_told_in_the_currency_and_in_fields(still: Platform, tenant: Tenant) -> None:
    still.billing.spend_caps._currency = "EUR"
    await cap(still, tenant, 12_500_000)
    await spend(still, tenant, 11_000_001)
    await still.billing.spend_caps.drop(tenant.id, tenant.name, PLATFORM)
    (near,) = await told_events(still, tenant)
    assert near.data == {
        "amount": "11.000001",
        "cap": "12.5",
        "currency": "EUR",
        "detail": "You have spent 11.000001 EUR of the 12.5 EUR that you may this month.",
    }
