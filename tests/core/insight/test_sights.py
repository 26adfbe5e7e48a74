"""What several servers see, joined: the order does not matter, and nothing is lost or doubled."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ids import PoolId, ShardId
from fairway.core.insight.activity import JobCounts
from fairway.core.insight.alarm_readings import AlarmReading
from fairway.core.insight.alarms import ALARMS, Raised
from fairway.core.insight.health import (
    NO_WORKER_MS,
    drain_seconds,
    health_of,
    is_near_knee,
    with_alarms,
)
from fairway.core.insight.rates import RateWindow
from fairway.core.insight.sight import (
    RATES,
    TOLD_MS_MAX,
    DeathSight,
    HeldCounts,
    PoolSight,
    ServerSight,
    ShareSight,
    fresh,
    joined,
    standing,
)

whole_rates = st.fixed_dictionaries({name: st.integers(0, 9).map(float) for name in RATES})
pools = st.builds(
    PoolSight,
    name=st.sampled_from(["short", "long"]),
    queued=st.integers(0, 99),
    running=st.integers(0, 9),
    slots=st.integers(0, 9),
    slo_seconds=st.just(0.5),
    oldest_ms=st.none() | st.integers(0, 9999),
    rates=st.none() | whole_rates,
    falling=st.none() | st.integers(-9, 9).map(float),
    pickup=st.lists(st.integers(0, 9), max_size=4),
    held=st.builds(HeldCounts, no_worker=st.integers(0, 9)),
    no_worker_ms=st.sampled_from([0, NO_WORKER_MS - 1, NO_WORKER_MS]),
    no_worker_types=st.lists(st.sampled_from("abcdef"), max_size=3, unique=True).map(sorted),
)
sights = st.builds(
    ServerSight,
    at_ms=st.integers(0, 10**6),
    pools=st.lists(pools, max_size=2, unique_by=lambda pool: pool.name),
    shares=st.lists(
        st.builds(
            ShareSight,
            tenant=st.integers(1, 9),
            pool=st.just("short"),
            weight=st.just(10),
            queued=st.integers(0, 9),
            running=st.integers(0, 9),
        ),
        max_size=3,
    ),
    workers_live=st.integers(0, 5),
    shards_owned=st.integers(0, 5),
    restraints=st.dictionaries(st.sampled_from(["circuit", "throttle"]), st.integers(0, 3)),
)


def by_name(seen: ServerSight) -> dict[str, PoolSight]:
    return {pool.name: pool for pool in seen.pools}


@given(st.lists(sights, min_size=1, max_size=4))
@tried(50)
def test_joining_is_adding(parts: list[ServerSight]) -> None:
    seen = joined(parts)
    assert by_name(seen) == by_name(joined(parts[::-1]))
    assert by_name(seen) == by_name(joined([joined(parts[:1]), *parts[1:]])), "in any grouping"
    for name, pool in by_name(seen).items():
        mine = [by_name(part)[name] for part in parts if name in by_name(part)]
        assert pool.queued == sum(one.queued for one in mine)
        assert pool.held.no_worker == sum(one.held.no_worker for one in mine)
        assert pool.no_worker_ms == max(one.no_worker_ms for one in mine)
        assert sum(pool.pickup) == sum(sum(one.pickup) for one in mine)
        assert (pool.rates is None) == all(one.rates is None for one in mine)
    assert seen.shards_owned == sum(part.shards_owned for part in parts)
    jobs = [share.queued + share.running for share in seen.shares]
    assert jobs == sorted(jobs, reverse=True)
    assert len(jobs) == sum(len(part.shares) for part in parts)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=ServerSight) == seen


@given(st.lists(sights), st.integers(0, 2 * 10**6))
@tried(50)
def test_what_was_said_long_ago_does_not_count(parts: list[ServerSight], now_ms: int) -> None:
    assert fresh(parts, now_ms) == [one for one in parts if one.at_ms >= now_ms - TOLD_MS_MAX]


@given(pools, st.integers(1, 9), st.integers(0, 9999))
@tried(50)
def test_who_is_near_the_knee_stays_so_with_more_work(
    pool: PoolSight, more: int, longer_ms: int
) -> None:
    busier = msgspec.structs.replace(
        pool,
        running=pool.running + more,
        queued=pool.queued + more,
        oldest_ms=(pool.oldest_ms or 0) + longer_ms,
    )
    assert is_near_knee(busier) or not is_near_knee(pool)
    idle = msgspec.structs.replace(pool, queued=0)
    assert not is_near_knee(idle), "nobody waits"


@given(st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_a_queue_drains_only_if_it_falls(queued: int, falling: float) -> None:
    found = drain_seconds(queued, falling)
    assert (found is not None) == (falling > 0 or not queued)
    assert found is None or found >= 0
    assert drain_seconds(5, None) is None


@given(sights, st.integers(1, 6))
@tried(50)
def test_the_status_is_that_of_the_worst_reason(seen: ServerSight, shards: int) -> None:
    status, reasons = health_of(seen, shards)
    ranks = ["critical", "warning", "ok"]
    assert [ranks.index(one.severity) for one in reasons] == sorted(
        ranks.index(one.severity) for one in reasons
    )
    assert status == (reasons[0].severity if reasons else "ok")
    codes = {one.code for one in reasons}
    assert ("SHARD_WITHOUT_OWNER" in codes) == (seen.shards_owned < shards)
    assert ("NO_WORKERS" in codes) == any(one.queued and not one.slots for one in seen.pools)
    unserved = [
        pool
        for pool in seen.pools
        if pool.held.no_worker
        and pool.no_worker_ms >= NO_WORKER_MS
        and (pool.slots or not pool.queued)
    ]
    told = [one.text for one in reasons if one.code == "NO_WORKER_FOR_TYPE"]
    assert len(told) == len(unserved)
    for pool, text in zip(unserved, told, strict=True):
        assert text.startswith(f"{pool.held.no_worker} job")
        assert all(name in text for name in pool.no_worker_types)


@given(st.lists(st.tuples(st.integers(1, 5_000_000), st.integers(0, 50)), min_size=1))
@tried(50)
def test_rates_are_what_came_over_the_time_in_which_it_came(
    steps: list[tuple[int, int]],
) -> None:
    window, counts, pool, now_us = RateWindow(), JobCounts(), PoolId(1), 0
    window.note({pool: counts}, {pool: 100}, now_us)
    assert window.of(pool).rates is None, "one look is none"
    for pause_us, came in steps:
        now_us += pause_us
        counts.accepted += came
        counts.pickup = [counts.accepted]
        window.note({pool: counts}, {pool: 100}, now_us)
    found = window.of(pool)
    assert found.rates is not None
    assert (found.rates["started"], found.falling) == (0.0, 0.0)
    most = max(came / (pause_us / 1e6) for pause_us, came in steps)
    assert 0 <= found.rates["accepted"] <= most * 1.001
    assert sum(found.pickup) <= counts.accepted


def owner(at_ms: int, *shards: int) -> ServerSight:
    return ServerSight(at_ms=at_ms, pools=[], shards=[ShardId(one) for one in shards])


def holding(at_ms: int, queued: int, *shards: int) -> ServerSight:
    pool = PoolSight(name="short", queued=queued, running=queued, slots=8, slo_seconds=0.5)
    owned = [ShardId(one) for one in shards]
    return ServerSight(at_ms=at_ms, pools=[pool], shards=owned, shards_owned=len(owned))


@tried(50)
@given(st.sets(st.integers(0, 15)), st.sets(st.integers(0, 15)), st.integers(0, 50))
def test_shards_that_moved_are_counted_once(before: set[int], moved: set[int], each: int) -> None:
    """Every shard has as many jobs as any other, so what is estimated is exact."""
    left = before - moved
    old = holding(1000, each * len(before), *before)
    new = holding(2000, each * len(moved), *moved)
    seen = joined(standing([old, new]))
    assert by_name(seen)["short"].queued == each * len(left | moved)
    assert by_name(seen)["short"].running == each * len(left | moved)
    assert seen.shards_owned == len(left | moved) == len(seen.shards)


deaths = st.builds(
    DeathSight,
    tenant=st.integers(1, 4),
    dead=st.integers(1, 9),
    ended=st.integers(9, 99),
    type=st.sampled_from(["", "a", "b"]),
)


@tried(30)
@given(st.lists(st.lists(deaths, max_size=4, unique_by=lambda one: one.tenant), min_size=1))
def test_deaths_of_a_tenant_are_added_over_servers(told: list[list[DeathSight]]) -> None:
    seen = joined([ServerSight(at_ms=0, pools=[], deaths=one) for one in told])
    everybody = [one for part in told for one in part]
    assert sum(one.dead for one in seen.deaths) == sum(one.dead for one in everybody)
    assert {one.tenant for one in seen.deaths} == {one.tenant for one in everybody}
    assert len({one.tenant for one in seen.deaths}) == len(seen.deaths)
    assert [one.dead for one in seen.deaths] == sorted(one.dead for one in seen.deaths)[::-1]


def test_what_an_alarm_tells_no_reason_does() -> None:
    pools = [
        PoolSight(name=name, queued=1, running=0, slots=8, slo_seconds=0.5, oldest_ms=9000)
        for name in ("short", "long")
    ]
    health = health_of(ServerSight(at_ms=0, pools=pools, shards_owned=1), 1)
    assert [one.subject for one in health.reasons] == ["pool short", "pool long"]
    alarms = {alarm.name: alarm for alarm in ALARMS}
    reading = AlarmReading(9.0, "It waits.")
    far = Raised(alarms["OLDEST_AGE_FAR_OVER_SLO"], "pool short", 0, reading)
    full = Raised(alarms["DISK_NEARLY_FULL"], "data folder", 0, reading)
    status, reasons = with_alarms(health, [far, full])
    assert (status, [one.subject for one in reasons]) == ("critical", ["pool long"])
    calm = health_of(ServerSight(at_ms=0, pools=[], shards_owned=1), 1)
    assert with_alarms(calm, [full]) == ("critical", []), "as bad as the worst of both"
    assert with_alarms(calm, []) == ("ok", [])


def test_what_was_said_before_all_of_it_was_taken_over_does_not_hold() -> None:
    old, new, other = owner(1000, 0, 1), owner(2000, 0, 1, 2), owner(1500, 3)
    assert standing([old, new, other]) == [new, other]
    assert standing([old, owner(1900, 0), owner(1800, 1)])[-1].at_ms == 1800, "by several"
    part = owner(2000, 1)
    left = msgspec.structs.replace(old, shards=[ShardId(0)], shards_owned=1)
    assert standing([old, part]) == [part, left], "some of it is nobody else's"
    nobody = owner(500)
    assert standing([new, nobody]) == [new, nobody], "who owns nothing has workers, maybe"


def test_without_its_database_no_platform_is_well() -> None:
    """What it counts is of before: all looked well for ten seconds while every call heard 503."""
    seen = ServerSight(at_ms=0, pools=[], shards_owned=1)
    assert health_of(seen, 1).status == "ok"
    health = health_of(seen, 1, is_store_away=True)
    assert (health.status, health.reasons[0].code) == ("critical", "STORE_AWAY")
