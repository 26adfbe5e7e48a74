"""What a region does by what it hears of the others."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import DirectoryClaim, DirectoryTerm, Home, HomeTerm
from fairway.core.regions.region_map import region_map
from fairway.runtime.clock import SystemClock
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import RegionAway, RegionPeers
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.regions.watch import LONG_AGO, AskedChanges, Changes, RegionState, RegionWatch
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store
from fairway.store.registry.tenants import found_cluster

SHARDS = 4


class Peers:
    """The other region, which has more shards."""

    refusing: frozenset[str] = frozenset()

    def __init__(self, name: str = "eu", names: tuple[str, ...] = ()) -> None:
        self._told = name, list(names)
        self.away: set[str] = set()

    async def ask_any(self, region: str, path: str, seconds: float) -> bytes:
        name, names = self._told
        return msgspec.json.encode(RegionState(name, "us", DirectoryTerm(1), 1, SHARDS, names))

    def missed(self, region: str) -> None:
        self.away.add(region)

    def heard(self, region: str) -> None:
        pass


class Unheard(Peers):
    """The directory says who it is, and nothing more: its store is away."""

    async def ask_one(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        raise RegionAway(region, is_open=True)


class Homes:
    row = None

    async def read(self, connection: Any) -> None:
        pass


def watching(
    database: Database, peers: Peers, tenant_shards: TenantShards, here: str = "us"
) -> RegionWatch:
    """Of `us`, beside `eu`; or the other way round."""
    regions = region_map(here, "us=http://127.0.0.1:8;eu=http://127.0.0.1:9")
    assert regions is not None
    return RegionWatch(
        database,
        regions,
        cast(RegionPeers, peers),
        cast(HomeTable, Homes()),
        RegionMetrics(CollectorRegistry()),
        SystemClock(),
        tenant_shards=tenant_shards,
    )


async def test_a_shard_that_a_tenant_came_with_has_a_row_too(
    database: Database, connection: Connection
) -> None:
    """The tenant was pulled before its region's word of how many shards there are."""
    await found_cluster(connection, 1, "secret")
    tenant_shards = TenantShards(1)
    tenant_shards.learn(TenantId(1), ShardId(SHARDS - 1))
    watch = watching(database, Peers(), tenant_shards)
    await watch.run_once(0)
    assert await connection.fetchval("SELECT count(*) FROM shards") == SHARDS
    assert await connection.fetchval("SELECT shards FROM cluster") == SHARDS


async def test_a_server_knows_no_homes_because_another_asked_for_them_in_vain(
    database: Database, connection: Connection
) -> None:
    """Two of a region that comes back: the second took the first one's question for an answer."""
    await found_cluster(connection, SHARDS, "secret")
    servers = [watching(database, Unheard("us"), TenantShards(SHARDS), here="eu") for _ in range(2)]
    for watch in servers * 2:
        await watch.run_once(0)
        assert not await watch.make_sure()


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


async def test_two_directories_of_one_term_end_with_one_word_on_every_home(
    database: Database, connection: Connection
) -> None:
    """`ap` and `us` took over from `eu` at once; this is `ap`, or whoever heard it first."""
    await store.found_region(connection, "ap", "eu")
    theirs = {"tenant": 1, "region": "us", "term": 1, "directory_term": 2}
    for term in (1, 2):  # as it moved it, and moved it again
        ours = {**theirs, "region": "ap", "term": term}
        await store.store_changes(connection, "homes", [json.dumps(ours)])
    ap, us = (DirectoryClaim(DirectoryTerm(2), region) for region in ("ap", "us"))
    await store.follow(connection, ap)
    await store.follow(connection, us)
    assert not await store.hold_directory(connection, ap), "what it still says is not stored"
    assert await store.hold_directory(connection, us)
    await store.store_changes(connection, "homes", [json.dumps(theirs)])
    (home,) = (await store.homes(connection, LONG_AGO)).values()
    assert home.region == "us"
    await store.follow(connection, us)
    assert list((await store.homes(connection, LONG_AGO)).values()) == [home]


async def add(connection: Connection, **facts: Any) -> None:
    """A tenant that came from the directory, like one that is here."""
    await connection.execute("INSERT INTO tenants (name) VALUES ('like')")
    row = await connection.fetchval("SELECT row_to_json(tenants) FROM tenants WHERE name = 'like'")
    columns = json.loads(row) | facts
    await store.store_changes(connection, "tenants", [json.dumps(columns)])


async def test_a_new_directory_gives_no_number_that_the_lost_one_may_have_given(
    database: Database, connection: Connection
) -> None:
    """Tenants that were made unheard come with the lost region, under their numbers."""
    await store.found_region(connection, "us", "eu")
    await add(connection, id=7, name="seven")
    await store.be_directory(connection, 1)
    new = await connection.fetchval("INSERT INTO tenants (name) VALUES ('new') RETURNING id")
    assert new > 7 + 10_000


async def test_a_key_opens_its_tenant_or_nothing(
    database: Database, connection: Connection
) -> None:
    """Both regions made a tenant under one number: one read the other's jobs."""
    await connection.execute("INSERT INTO tenants (id, name) VALUES (2, 'ours'), (3, 'both')")

    def key(id_: str, tenant: int | None, **named: str) -> str:
        facts = {"scope": "tenant" if tenant else "operator", "secret_hash": "\\x00", "name": id_}
        return json.dumps({"id": id_, "tenant": tenant, **facts, **named})

    keys = [
        key("theirs", 2, tenant_name="theirs"),
        key("good", 3, tenant_name="both"),
        key("old", 3),
        key("staff", None),
    ]
    await store.store_changes(connection, "keys", keys)
    stored = await connection.fetch("SELECT id FROM api_keys ORDER BY id")
    assert [row["id"] for row in stored] == ["good", "old", "staff"]
    page = await store.changes(connection, "keys", LONG_AGO, "", 10)
    names = {row["id"]: row["tenant_name"] for row in map(json.loads, page.rows)}
    assert names == {"good": "both", "old": "both", "staff": None}


async def test_regions_that_are_not_set_up_alike_are_told(
    database: Database, connection: Connection
) -> None:
    """The address of another was typed twice: a region answered itself, and was taken for it."""
    await found_cluster(connection, SHARDS, "secret")
    peers = Peers("us")
    watch = watching(database, peers, TenantShards(SHARDS))
    await watch.run_once(0)
    assert watch.troubles["eu"].startswith("is answered by the region us")
    assert (peers.away, watch.latencies_ms) == ({"eu"}, {})
    watch = watching(database, Peers("eu", ("eu", "us")), TenantShards(SHARDS))
    await watch.run_once(0)
    assert "in another order: ['eu', 'us']" in watch.troubles["eu"]
    watch = watching(database, Peers("eu", ("us", "eu", "ap")), TenantShards(SHARDS))
    await watch.run_once(0)
    assert watch.troubles["eu"].startswith("names ap, which this region does not: set")
    assert "eu" in watch.latencies_ms, "a new one is appended to one list after the other"
    watch = watching(database, Peers("eu", ("us",)), TenantShards(SHARDS))
    await watch.run_once(0)
    assert watch.troubles["eu"].startswith("does not name eu yet: set FAIRWAY_REGIONS there")


class Directory(Peers):
    """`eu` is it, and has two tenants; told are those that changed since."""

    def __init__(self, tenants: list[str]) -> None:
        super().__init__()
        self._tenants = tenants

    async def ask_any(self, region: str, path: str, seconds: float) -> bytes:
        return msgspec.json.encode(RegionState("eu", "eu", DirectoryTerm(2), 1, SHARDS))

    async def ask_one(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        asked = msgspec.json.decode(body, type=AskedChanges)
        is_told = asked.kind == "tenants" and asked.since is None
        claim = DirectoryTerm(2), "eu"
        page = Changes(claim, datetime.now(UTC), self._tenants if is_told else [], None)
        return msgspec.json.encode(page)


async def test_tenants_that_clash_are_told_for_as_long_as_they_do(
    database: Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are among what changed for some seconds alone; then they were counted no more."""
    await found_cluster(connection, SHARDS, "secret")
    await connection.execute("INSERT INTO tenants (id, name) VALUES (1, 'ours'), (2, 'mine')")
    row = await connection.fetchval("SELECT row_to_json(tenants) FROM tenants WHERE id = 1")
    named = ((1, "theirs"), (3, "mine"))
    told = [json.dumps(json.loads(row) | {"id": number, "name": name}) for number, name in named]
    watch = watching(database, Directory(told), TenantShards(SHARDS))

    async def clash() -> int:
        await connection.execute("UPDATE region_state SET pulled_at = '-infinity'")
        await watch.run_once(0)
        return (await store.read_region(connection)).conflicts

    assert [await clash() for _ in range(3)] == [2, 2, 2]
    await connection.execute("DELETE FROM tenants WHERE name = 'mine'")
    assert await clash() == 2, "nobody has looked at all of them since"
    monkeypatch.setattr("fairway.services.regions.watch.ALL_AGAIN_SECONDS", 0.0)
    assert await clash() == 1
    found = await connection.fetch("SELECT id FROM tenants WHERE name = 'mine'")
    assert [one["id"] for one in found] == [3], "what clashes no more is known here"
