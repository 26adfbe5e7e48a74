"""Homes are moved by the directory alone, and only from where they were when that was decided."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from fairway.core.audit import Actor
from fairway.core.errors import Conflict
from fairway.core.ids import TenantId
from fairway.core.regions.homes import DirectoryClaim, DirectoryTerm, Home, HomeTerm
from fairway.core.regions.region_map import region_map
from fairway.services.regions.failover import RegionActs
from fairway.services.regions.watch import LONG_AGO
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store

ONE = TenantId(1)
AT_US = Home("us", HomeTerm(2), DirectoryTerm(1))
OPERATOR = Actor("op")


class Peers:
    """A region that has nothing left to hand over; something happens while it is asked."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._meanwhile = meanwhile

    async def call(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        await self._meanwhile()
        return msgspec.msgpack.encode({})


class Log:
    async def add(self, *_: Any) -> None:
        pass


class Watch:
    def __init__(self) -> None:
        self.latencies_ms = {"eu": 1.0, "ap": 1.0}
        state = SimpleNamespace(founded=1, directory_term=99)
        self.states = {"eu": state, "ap": state}

    async def run_once(self, now_us: int) -> float:
        return 1.0

    async def answer_of(self, region: str) -> str:
        return {"ap": "answers", "eu": ""}[region]


def acts(database: Database, meanwhile: Callable[[], Awaitable[None]]) -> RegionActs:
    """Of `us`, which is the directory, as far as it knows."""
    url = "http://127.0.0.1"
    regions: Any = region_map("us", f"us={url}:7;eu={url}:8;ap={url}:9")
    homes = SimpleNamespace(
        directory_region="us",
        row=None,
        home_of=lambda tenant: "us",
        known=lambda tenant: AT_US,
    )
    parts: list[Any] = [
        SimpleNamespace(tenant_ids={"acme": ONE}),
        regions,
        homes,
        Peers(meanwhile),
        Watch(),
        Log(),
    ]
    shards: Any = SimpleNamespace(founded=1)
    return RegionActs(database, *parts, tenant_shards=shards)


@pytest.fixture
async def us(database: Database) -> None:
    async with database.background() as connection:
        await store.found_region(connection, "us", "us")
        await connection.execute("INSERT INTO tenants (id, name) VALUES (1, 'acme')")
    await at(database, AT_US)


async def at(database: Database, home: Home) -> None:
    row = {"tenant": ONE, **home._asdict(), "came_from": "eu"}
    async with database.background() as connection:
        await store.store_changes(connection, "homes", [json.dumps(row)])


async def home_of(database: Database) -> Home:
    async with database.background() as connection:
        return (await store.homes(connection, LONG_AGO))[ONE]


async def nothing() -> None:
    pass


@pytest.mark.usefixtures("us")
async def test_a_home_that_moved_while_its_region_was_asked_stays(database: Database) -> None:
    """Another operator brought it back, and failed the region over anew: it is lost again."""
    again = AT_US._replace(term=HomeTerm(4))

    async def meanwhile() -> None:
        await at(database, again)

    asked = acts(database, meanwhile)
    moved = await asked.fail_back("eu", OPERATOR)
    assert (moved.tenants, moved.tenants_waiting) == (0, 1), "it is asked about anew"
    with pytest.raises(Conflict, match="moved meanwhile"):
        await asked.set_home("acme", "eu", OPERATOR)
    assert await home_of(database) == again
    assert (await acts(database, nothing).fail_back("eu", OPERATOR)).tenants == 1
    assert (await home_of(database)).region == "eu"


@pytest.mark.usefixtures("us")
async def test_who_is_not_the_directory_any_more_moves_nobody(database: Database) -> None:
    """What it wrote under the other's term nobody would ever hear of, nor would it be undone."""

    async def meanwhile() -> None:
        async with database.background() as connection:
            await store.follow(connection, DirectoryClaim(DirectoryTerm(7), "ap"))

    asked = acts(database, meanwhile)
    with pytest.raises(Conflict, match="ap is the directory by now"):
        await asked.set_home("acme", "eu", OPERATOR)
    for act in (asked.fail_back("eu", OPERATOR), asked.fail_over("eu", "us", OPERATOR)):
        with pytest.raises(Conflict, match="ap is the directory by now"):
            await act
    assert await home_of(database) == AT_US


@pytest.mark.usefixtures("us")
async def test_who_takes_over_from_the_directory_becomes_it(database: Database) -> None:
    async with database.background() as connection:
        await store.follow(connection, DirectoryClaim(DirectoryTerm(7), "eu"))
    moved = await acts(database, nothing).fail_over("eu", "us", OPERATOR)
    async with database.background() as connection:
        row = await store.read_region(connection)
    assert (row.directory, row.directory_term) == ("us", moved.directory_term)
    assert row.directory_term > 7


@pytest.mark.usefixtures("us")
async def test_a_region_that_answers_is_failed_over_by_force_alone(database: Database) -> None:
    asked = acts(database, nothing)
    before = await home_of(database)
    with pytest.raises(Conflict, match=r"The region ap answers: it is not lost\."):
        await asked.fail_over("ap", "us", OPERATOR)
    async with database.background() as connection:
        term = (await store.read_region(connection)).directory_term
    assert await home_of(database) == before
    assert (await asked.fail_over("ap", "us", OPERATOR, force=True)).directory_term > term


@pytest.mark.usefixtures("us")
async def test_a_directory_that_took_a_term_says_where_all_are(
    database: Database, connection: Connection
) -> None:
    """`us` failed `eu` over while `ap`, cut off from both, took over from `us`: of one term, or of
    a lower one, `ap` follows `us`; and what it had moved to itself must not stay there."""
    await connection.execute("INSERT INTO tenants (id, name) VALUES (2, 'still')")
    term = (await acts(database, nothing).fail_over("eu", "us", OPERATOR)).directory_term
    said = (await store.changes(connection, "homes", LONG_AGO, "-1", 10)).rows
    for lower in (0, 1):
        async with database.upkeep() as owner:
            await owner.execute("TRUNCATE region_state, tenant_homes")
        await as_ap_took_over(connection, DirectoryTerm(term - lower))
        await store.follow(connection, DirectoryClaim(term, "us"))
        await store.store_changes(connection, "homes", said)
        homes = await store.homes(connection, LONG_AGO)
        assert {one: home.region for one, home in homes.items()} == {1: "us", 2: "us"}


async def as_ap_took_over(connection: Connection, term: DirectoryTerm) -> None:
    await store.found_region(connection, "ap", "us")
    await store.follow(connection, DirectoryClaim(term, "ap"))
    taken = {"region": "ap", "term": 9, "directory_term": term, "came_from": "us"}
    rows = [json.dumps({"tenant": tenant, **taken}) for tenant in (1, 2)]
    await store.store_changes(connection, "homes", rows)
