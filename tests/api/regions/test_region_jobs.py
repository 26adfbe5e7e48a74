"""Jobs for another region name their pools: each region has numbers of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from tests.services.platform_room import QUICK, SHORT, add_tenant, new, owner_on, platform_on

from fairway.api.passed_jobs import PassedJobs, RegionCalls, RegionJobs, decode_region_calls, encode
from fairway.api.region_lines import OnItsWay, RegionLines, _is_in_doubt
from fairway.api.regions.inlet import NOBODY, RegionInlet
from fairway.core.errors import InvalidRequest, LimitReached, Unavailable
from fairway.core.ids import FIRST_SHARD, JobId, PoolId, TenantId, ids_from
from fairway.core.pools import BUILT_IN, PoolTable
from fairway.core.regions.hand_over import home_answer
from fairway.core.regions.homes import Meant
from fairway.core.tenant import Tenant
from fairway.core.unique import WHILE_LIVE, UniqueWish, digest_of
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.regions.encoded_calls import (
    COUNT_AT,
    FIRST_AT,
    JOBS_AT,
    WHOLE_AT,
    apart,
    jobs_at,
)
from fairway.services.submit.submission_group import Accepted, NewJob, WholeKey

FIRST = JobId("0198c5a4-0000-7000-8000-000000000000")


decode_call = msgspec.msgpack.Decoder(RegionJobs).decode


async def sure() -> bool:
    return True


def call_with(**pools: int) -> RegionJobs:
    jobs = [NewJob("work", PoolId(number), 5, None, b"{}") for number in pools.values()]
    names = {PoolId(number): name for name, number in pools.items()}
    return RegionJobs(TenantId(1), len(jobs), False, 0, FIRST, None, jobs, names)


def test_pools_are_found_by_name_at_the_home() -> None:
    table = PoolTable([*BUILT_IN, replace(BUILT_IN[0], name="gpu", number=PoolId(9))])
    platform: Any = SimpleNamespace(directory=SimpleNamespace(pools=table))
    inlet = RegionInlet(platform, cast(Any, None), cast(Any, None))
    (call,) = decode_region_calls(encode(RegionCalls([call_with(gpu=4, short=1)], {}))).calls
    assert [new.pool for new in inlet._in_own_pools(call)] == [9, 1]
    with pytest.raises(InvalidRequest, match="no pool 'tape'"):
        inlet._in_own_pools(call_with(tape=4))


def test_what_is_held_is_read_as_any_call() -> None:
    held = msgspec.msgpack.decode(encode(call_with(short=1)), type=PassedJobs)
    assert (held.first, [new.type for new in held.jobs]) == (FIRST, ["work"])


def test_who_took_nothing_does_not_speak_for_a_server_that_hangs() -> None:
    not_home = Unavailable(code="NOT_HOME")
    assert _is_in_doubt(not_home, is_open=True)
    assert not _is_in_doubt(not_home, is_open=False)
    assert not _is_in_doubt([Accepted(FIRST)], is_open=True)
    assert _is_in_doubt(Unavailable(), is_open=False), "it does not know whether it was written"


def test_who_may_have_been_let_in_by_one_server_is_not_refused_by_the_next() -> None:
    """The first took the job and died before it said so: sent again it would be another."""
    limit = LimitReached("Too fast.", code="TENANT_RATE_LIMIT_EXCEEDED", retry_after_seconds=1)
    busy, wrong = Unavailable(code="OVERLOADED"), InvalidRequest("No such time zone.")
    for refusal in (limit, busy):
        assert _is_in_doubt(refusal, is_open=True)
        assert not _is_in_doubt(refusal, is_open=False)
    assert not _is_in_doubt(wrong, is_open=True), "the first would say so, too"


def inlet_of(platform: Platform) -> RegionInlet:
    """Of the home of everybody. Jobs are not passed on: who is asked writes them, and by no home,
    for its store is no region."""

    def submit(tenant: Tenant, jobs: list[NewJob], first: JobId, meant: Meant, **more: Any) -> Any:
        ids = ids_from(first, len(jobs))
        return platform.submissions.submit(tenant, jobs, ids=ids, **more)

    regions: Any = SimpleNamespace(
        watch=SimpleNamespace(make_sure=sure),
        elsewhere=lambda tenant: None,
        homes=SimpleNamespace(known=lambda tenant: None),
    )
    return RegionInlet(platform, regions, cast(Any, SimpleNamespace(submit=submit)))


async def test_what_found_no_owner_beside_others_is_taken_when_it_is_sent_again(
    database_url: str,
) -> None:
    """Held for a home that had just come back. It was told as refused, and lost."""
    replacing = new(unique=UniqueWish(digest_of("k"), WHILE_LIVE, replaces=True))
    jobs, pools = [new(), new(), replacing, new()], {SHORT: "short"}
    async with platform_on(database_url, replaced(QUICK, owns_shards=False)) as standby:
        tenant = await add_tenant(standby)
        ids = standby.submissions.ids.make(FIRST_SHARD, len(jobs))
        call = RegionJobs(tenant.id, len(jobs), True, 0, ids[0], None, jobs, pools)
        said = await inlet_of(standby)._take(call, NOBODY)
        assert [one["code"] for one in said if isinstance(one, dict)] == ["NOT_OWNER"]
        assert home_answer(ids[0], len(jobs), said).left == {2: None}
    async with owner_on(database_url) as owner:
        inlet = inlet_of(owner)
        again = await inlet._take(call, NOBODY)  # the answer was lost
        assert home_answer(ids[0], len(jobs), again).left == {2: None}
        alone = decode_call(*apart(encode(call), {2: ids[2]}))
        assert await inlet._take(alone, NOBODY) is None, "all are there under their ids"
        async with owner.database.background() as connection:
            there = await connection.fetch("SELECT id::text AS id FROM jobs ORDER BY id")
        assert [row["id"] for row in there] == ids


def test_one_job_of_a_call_is_read_and_goes_on_by_its_place() -> None:
    names = [field.name for field in msgspec.structs.fields(PassedJobs)]
    places_of = COUNT_AT, FIRST_AT, WHOLE_AT, JOBS_AT
    assert [names[place] for place in places_of] == ["count", "first", "whole", "jobs"]
    jobs = [NewJob(f"work-{n}", PoolId(1), 5, None, b"{}", marks=None) for n in range(50)]
    whole = WholeKey("k", b"hash")  # whoever came second with it would be the others' replay
    call = RegionJobs(TenantId(1), len(jobs), True, 0, FIRST, whole, jobs, {PoolId(1): "a"})
    encoded, places = encode(call), (0, 7, 49)
    assert jobs_at(encoded, places) == [jobs[n] for n in places]
    ids = dict(zip(places, ids_from(FIRST, len(places)), strict=True))
    for place, one in zip(places, apart(encoded, ids), strict=True):
        alone = {"count": 1, "first": ids[place], "whole": None, "jobs": [jobs[place]]}
        assert decode_call(one) == msgspec.structs.replace(call, **alone)


async def test_one_tenants_jobs_on_their_way_leave_room_for_others() -> None:
    """A home that is slow must not make a tenant's flood of batches everybody's refusals."""
    platform: Any = SimpleNamespace(
        settings=SimpleNamespace(submit_waiting_max=400, store_wait_seconds=1.0)
    )
    regions: Any = SimpleNamespace(peers=SimpleNamespace(is_away=lambda region: False))
    lines, on_their_way = RegionLines(platform, regions), list[OnItsWay]()
    silent: Any = SimpleNamespace(add=on_their_way.append)
    lines._line = lambda home, heavy, has_news: silent  # type: ignore[method-assign]

    def asked(tenant: int, count: int) -> asyncio.Task[Any]:
        call = RegionJobs(TenantId(tenant), count, False, 0, FIRST, None, ())
        return asyncio.create_task(lines._ask("eu", call))

    flood = [asked(1, 60) for _ in range(8)]
    neighbours = [asked(tenant, 60) for tenant in (2, 3, 4)]
    alone = asked(5, 101)  # however many it sends at once, the first call goes
    await asyncio.sleep(0)
    refused = [one for one in flood if one.done()]
    assert len(refused) == 7
    for one in refused:
        assert isinstance(error := one.exception(), Unavailable)
        assert error.code == "OVERLOADED"
    assert not any(one.done() for one in (*neighbours, alone))
    for sent in on_their_way:
        sent.told.set_result([])
    await asyncio.gather(flood[0], *neighbours, alone)
    again = asked(1, 60)
    await asyncio.sleep(0)
    assert not again.done()
    on_their_way[-1].told.set_result([])
    await again


async def test_new_types_of_one_tenant_travel_with_nobody_elses_jobs() -> None:
    """The home answers a call when the last of its jobs is judged; new names take their turn."""
    platform: Any = SimpleNamespace(
        settings=SimpleNamespace(submit_waiting_max=400, store_wait_seconds=1.0)
    )
    regions: Any = SimpleNamespace(peers=SimpleNamespace(is_away=lambda region: False))
    lines, went = RegionLines(platform, regions), list[bool]()

    def line(home: str, heavy: bool, has_news: bool) -> Any:
        went.append(has_news)
        return SimpleNamespace(add=lambda sent: sent.told.set_result([]))

    lines._line = line  # type: ignore[method-assign]

    async def pass_on(tenant: int, *types: str) -> RegionJobs:
        jobs = [NewJob(one, PoolId(1), 5, None, b"{}") for one in types]
        call = RegionJobs(TenantId(tenant), len(jobs), False, 0, FIRST, None, jobs)
        await lines._ask("eu", call)
        return call

    lines._learn_types(await pass_on(1, "calm"))
    for tenant, *types in ((1, "calm"), (2, "calm"), (1, "calm", "news"), (1, "calm")):
        await pass_on(tenant, *types)
    assert went == [True, False, True, True, False]
