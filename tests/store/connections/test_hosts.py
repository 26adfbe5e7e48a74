"""Several hosts in one address: a silent one costs a connect at most, not the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.postgres import connected
from tests.services.gate import gate_to, silent_host

from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.connections.hosts import Hosts, OldHistory, identity_of, turned
from fairway.store.postgres.inspection import inspect_database
from fairway.store.schema.migrate import migrate_at

SHORT_SECONDS = 0.5
IN_TIME_SECONDS = 15  # less than a few connects of the usual length


@pytest.fixture
async def half_gone(database_url: str) -> AsyncIterator[str]:
    """An address whose first host takes connections and never answers."""
    async with gate_to(database_url) as gate, silent_host() as silent:
        head, at, rest = gate.dsn.partition("@")
        user = head + at if at else "postgresql://"
        rest = rest or head.removeprefix("postgresql://")
        yield f"{user}{silent},{rest}&target_session_attrs=read-write"


async def test_pools_reach_the_host_that_answers(half_gone: str) -> None:
    database = await Database.open(half_gone, wait_seconds=SHORT_SECONDS)
    try:
        async with asyncio.timeout(IN_TIME_SECONDS):
            while True:
                try:
                    async with database.people() as connection:
                        assert await connection.fetchval("SELECT 1") == 1
                        break
                except DISCONNECTED:
                    await asyncio.sleep(0.01)
            for use in (database.hot, database.background):  # they know by now whom to ask
                async with use() as connection:
                    assert await connection.fetchval("SELECT 1") == 1
    finally:
        database.terminate()


async def test_upkeep_waits_for_the_second_host(
    half_gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that starts asks once."""
    monkeypatch.setattr("fairway.store.connections.database.CONNECT_SECONDS", 1.5)
    database = await Database.open(half_gone)
    try:
        async with database.background() as connection:
            assert await connection.fetchval("SELECT 1") == 1
    finally:
        database.terminate()


async def test_whoever_tries_again_reaches_the_next_host(half_gone: str) -> None:
    database = await Database.open(half_gone)
    try:
        database.hosts.dsn = half_gone  # as if that host had gone just now
        with pytest.raises(TimeoutError):
            await database.dedicated(seconds=SHORT_SECONDS)
        leader = await database.dedicated()
        assert await leader.fetchval("SELECT 1") == 1
    finally:
        database.terminate()


async def test_a_server_starts_on_the_second_host(
    half_gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.connections.hosts.CONNECT_SECONDS", 1.5)
    assert await migrate_at(half_gone) == []


async def test_many_that_wait_for_the_same_host_turn_the_order_once(half_gone: str) -> None:
    hosts = Hosts(half_gone)
    tries = [hosts.connect(timeout=SHORT_SECONDS) for _ in range(4)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert all(isinstance(answer, TimeoutError) for answer in answers)
    assert hosts.dsn == turned(half_gone)


async def test_an_old_primary_that_comes_back_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be written to, and nobody would ever see what was written."""
    async with gate_to(database_url) as gate:
        host = gate.dsn.split("://")[1].split("/")[0].rpartition("@")[2]
        hosts = Hosts(gate.dsn.replace(host, f"{host},{host}"))
        await hosts.look_at_all()
        await (await hosts.connect()).close()
        monkeypatch.setattr("fairway.store.connections.hosts.TIMELINE", "SELECT 7")
        await (await hosts.connect()).close()
        monkeypatch.setattr("fairway.store.connections.hosts.TIMELINE", "SELECT 6")
        with pytest.raises(OldHistory, match="timeline 6, the newest is 7"):
            await hosts.connect_any()
        monkeypatch.setattr("fairway.store.connections.hosts.TIMELINE", "SELECT no_such_thing()")
        await (await hosts.connect()).close()  # an engine without timelines
        alone = Hosts(gate.dsn)
        await alone.look_at_all()
        await (await alone.connect()).close()


async def test_a_check_says_that_no_host_can_be_written_to(database_url: str) -> None:
    async with connected(database_url) as connection, gate_to(database_url) as gate:
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        host = gate.dsn.split("://")[1].split("/")[0].rpartition("@")[2]
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            (finding,) = await inspect_database(gate.dsn.replace(host, f"{host},{host}"))
        finally:
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert "attribute requirement" in finding.what


@pytest.mark.parametrize(
    ("dsn", "next_one"),
    [
        ("postgresql://u:p@a:1,b:2,c:3/db?x=1", "postgresql://u:p@b:2,c:3,a:1/db?x=1"),
        ("postgresql://a,[::1]:5/db", "postgresql://[::1]:5,a/db"),
        ("postgresql:///db?host=a,b&port=1,2&x=1,2", "postgresql:///db?host=b,a&port=2,1&x=1,2"),
        ("postgresql://u@/db?host=/a%2C/b&port=1", "postgresql://u@/db?host=/b,/a&port=1"),
        ("postgresql://u@a:1/db?options=x,y", "postgresql://u@a:1/db?options=x,y"),
        ("postgresql:///db", "postgresql:///db"),
    ],
)
def test_the_first_host_becomes_the_last(dsn: str, next_one: str) -> None:
    assert turned(dsn) == next_one


def test_of_several_hosts_one_that_can_be_written_to_is_meant() -> None:
    assert Hosts("postgresql://a,b/db").options == {"target_session_attrs": "read-write"}
    assert Hosts("postgresql://a,b/db?target_session_attrs=any").options == {}
    assert Hosts("postgresql://a/db").options == {}


async def test_two_addresses_of_one_database_are_told_from_two_databases(
    database_url: str, empty_database_url: str
) -> None:
    assert await identity_of(database_url) == await identity_of(database_url)
    assert await identity_of(database_url) != await identity_of(empty_database_url)
