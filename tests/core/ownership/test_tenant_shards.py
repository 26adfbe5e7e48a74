"""Where a tenant is: by its number, or where it was put; and it stays there, whatever comes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.laws.source import PACKAGE

from fairway.core.ids import ShardId, TenantId, make_job_id
from fairway.core.ownership.tenant_shards import TenantShards

COUNTS = st.integers(1, 64)
TENANTS = st.integers(1, 10**6).map(TenantId)


@given(TENANTS, COUNTS)
def test_tenants_spread_evenly_over_the_shards(tenant: TenantId, count: int) -> None:
    shards = TenantShards(count)
    assert {shards.of(TenantId(tenant + step)) for step in range(count)} == set(range(count))


@given(COUNTS, st.lists(TENANTS, unique=True, max_size=20), st.lists(st.integers(1, 4096)))
def test_nobody_moves_when_the_shards_become_more(
    founded: int, tenants: list[TenantId], counts: list[int]
) -> None:
    """Not even for a moment, and in whatever order a server hears of it."""
    shards = TenantShards(founded)
    placed = {one: ShardId(one % 4096) for one in tenants[::2]}
    for one in tenants:
        shards.learn(one, placed.get(one))
    homes = {one: shards.of(one) for one in tenants}
    assert homes == {one: placed.get(one, one % founded) for one in tenants}
    for count in counts:
        shards.counted(count)
        assert {one: shards.of(one) for one in tenants} == homes
        assert shards.count > max(homes.values(), default=ShardId(0))
    assert shards.count == max([founded, *counts, *(one + 1 for one in placed.values())])


def test_nobody_else_finds_the_shard_of_a_tenant() -> None:
    """A second formula would be right until the shards become more."""
    by_number = re.compile(r"(tenant|\bid)\w*(\.id)? % :?\w*\.?_?(shard|count)\w*")
    homes = {
        str(path.relative_to(PACKAGE))
        for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("queries/*.sql"))
        if any(
            by_number.search(line) and "coalesce(" not in line
            for line in path.read_text("utf-8").splitlines()
        )
    }
    assert homes == {"core/ownership/tenant_shards.py"} or homes == set()


@given(TENANTS, st.integers(0, 4095), st.integers(0, 4095))
def test_a_job_is_where_its_id_says_unless_its_tenant_was_moved(
    tenant: TenantId, named: int, home: int
) -> None:
    shards, job = TenantShards(64), make_job_id(ShardId(named), 1_800_000_000_000, 0, 0)
    assert shards.of_job(tenant, job) == named, "also of one that nobody has heard of"
    shards.learn(tenant, ShardId(home))
    assert (shards.of_job(tenant, job), shards.any_moved) == (named, False)
    shards.learn(tenant, ShardId(home), moved_from=(ShardId(named),))
    assert shards.of_job(tenant, job) == shards.moved(tenant) == shards.of(tenant) == home
    other = TenantId(tenant + 1)
    assert (shards.of_job(other, job), shards.moved(other)) == (named, None)


def test_the_shard_that_a_tenant_is_moved_to_needs_no_owner() -> None:
    """Else an alarm is raised, and pools are not scaled, for as long as a move takes."""
    shards = TenantShards(4)
    shards.learn(TenantId(1), None, is_moving=True)
    assert (shards.count, shards.to_be_owned) == (4, 3)
    shards.learn(TenantId(1), ShardId(3), (ShardId(1),))
    assert shards.to_be_owned == 4
