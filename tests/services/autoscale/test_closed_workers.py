"""Workers that are to be spared: these are given nothing, at once and by every owner; no others."""

from __future__ import annotations

from tests.services.platform_room import Hand, add_tenant, new, owner_on, submit

from fairway.core.autoscale.facts import ScaleSettings
from fairway.services.platform import Platform
from fairway.store import autoscale as store

ON = ScaleSettings(mode="on", maximum_workers=9)


async def close(platform: Platform, *names: str) -> None:
    """As whoever decides does; the loop that would decide otherwise stands still."""
    await platform.loops["autoscale"].stop()
    async with platform.database.background() as connection:
        await store.put_settings(connection, "short", ON)
        (row,) = await store.all_pools(connection)
        decided = store.Decided("short", row.round, 1, 0, list(names), [])
        assert await store.put_decided(connection, decided) is not None
    await platform.insight.autoscaling.steps()["autoscale"](0)


async def test_a_closed_worker_is_given_nothing_and_no_other_of_its_name_is_closed(
    database_url: str,
) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        shared, bound, elsewhere = Hand(platform), Hand(platform), Hand(platform, medium=1)
        bound.only_tenants = frozenset((tenant.id,))
        for hand in (shared, bound, elsewhere):
            await hand.say(hello=True)
        await close(platform, "hand")
        found = {one.key: one for one in platform.dispatcher.all_sessions()}
        assert [found[hand.key].is_closed for hand in (shared, bound, elsewhere)] == [
            True,
            False,
            False,
        ]
        (job,) = await submit(platform, tenant, new())
        assert [lease.job.id for lease in await bound.take()] == [job]
        sights = {one.life: one for one in platform.worker_list.workers()}
        (closed,) = [one for one in sights.values() if one.closed_because]
        assert closed.closed_because == (
            "The pool short has more workers than it needs: this one gets no more jobs, and may go"
            " once it is idle."
        )
        assert closed.closed_seconds is not None
        assert closed.closed_seconds >= 0
        await close(platform)
        assert not any(one.is_closed for one in platform.dispatcher.all_sessions())


async def test_a_new_owner_gives_a_closed_worker_nothing_from_its_hello_on(
    database_url: str,
) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        await close(platform, "hand")  # every server reads it, before it owns anything
        await submit(platform, tenant, new())
        spared = Hand(platform)
        news = await spared.say(hello=True)
        assert news is not None
        assert (news.leases, platform.dispatcher.all_sessions()[0].is_closed) == ([], True)
