"""What a region does by what it hears of the others."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
from prometheus_client import CollectorRegistry

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import DirectoryTerm, Home, HomeTerm
from fairway.core.regions.region_map import region_map
from fairway.runtime.clock import SystemClock
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import RegionPeers
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.regions.watch import LONG_AGO, RegionState, RegionWatch
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store
from fairway.store.registry.tenants import found_cluster

SHARDS = 4


class Peers:
    """The other region, which has more shards."""

    async def ask_any(self, region: str, path: str, seconds: float) -> bytes:
        return msgspec.json.encode(RegionState("eu", "us", DirectoryTerm(1), 1, SHARDS))

    def heard(self, region: str) -> None:
        pass


class Homes:
    row = None

    async def read(self, connection: Any) -> None:
        pass


async def test_a_shard_that_a_tenant_came_with_has_a_row_too(
    database: Database, connection: Connection
) -> None:
    """The tenant was pulled before its region's word of how many shards there are."""
    regions = region_map("us", "us=http://127.0.0.1:8;eu=http://127.0.0.1:9")
    assert regions is not None
    await found_cluster(connection, 1, "secret")
    tenant_shards = TenantShards(1)
    tenant_shards.learn(TenantId(1), ShardId(SHARDS - 1))
    watch = RegionWatch(
        database,
        regions,
        cast(RegionPeers, Peers()),
        cast(HomeTable, Homes()),
        RegionMetrics(CollectorRegistry()),
        SystemClock(),
        tenant_shards=tenant_shards,
    )
    await watch.run_once(0)
    assert await connection.fetchval("SELECT count(*) FROM shards") == SHARDS
    assert await connection.fetchval("SELECT shards FROM cluster") == SHARDS


async def test_a_new_directory_stands_by_the_homes_that_it_does_not_move(
    database: Database, connection: Connection
) -> None:
    """The old one, cut off, moved a tenant that was at home with the new one all along."""
    await store.found_region(connection, "us", "eu")
    row = {"tenant": 1, "region": "us", "term": 1, "directory_term": 1}
    await store.store_changes(connection, "homes", [json.dumps(row)])
    await store.be_directory(connection, 1)
    said_meanwhile = Home("eu", HomeTerm(2), DirectoryTerm(1))
    (home,) = (await store.homes(connection, LONG_AGO)).values()
    assert home.region == "us"
    assert home.is_newer_than(said_meanwhile)
