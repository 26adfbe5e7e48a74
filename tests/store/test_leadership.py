"""Leadership: one owner a shard, under a term that only grows; the database's clock decides."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from tests.store.rows import is_blocked

from fairway.store.database import Connection
from fairway.store.leadership import (
    Owner,
    claim_shards,
    database_now,
    read_owners,
    release_shards,
    renew_shards,
)
from fairway.store.tenants import found_cluster


@pytest.fixture
async def shards(connection: Connection) -> Connection:
    await found_cluster(connection, 2, "secret")
    return connection


async def expire(connection: Connection) -> None:
    await connection.execute("UPDATE shards SET expires_at = now() - interval '1 ms'")


async def test_the_first_owner_takes_every_shard(shards: Connection) -> None:
    assert await claim_shards(shards, "a", "http://a", 60) == {0: 1, 1: 1}
    assert await read_owners(shards) == {
        0: Owner(0, 1, "a", "http://a"),
        1: Owner(1, 1, "a", "http://a"),
    }


async def test_a_held_shard_cannot_be_claimed(shards: Connection) -> None:
    await claim_shards(shards, "a", "", 60)
    assert await claim_shards(shards, "b", "", 60) == {}


async def test_every_take_over_has_a_greater_term(shards: Connection) -> None:
    terms = []
    for owner in "abab":
        terms.append((await claim_shards(shards, owner, "", 60))[0])
        await expire(shards)
    assert terms == [1, 2, 3, 4]


async def test_a_term_that_ran_out_has_no_owner(shards: Connection) -> None:
    await claim_shards(shards, "a", "", 60)
    await expire(shards)
    assert await read_owners(shards) == {}


async def test_a_renewal_extends_and_keeps_the_term(shards: Connection) -> None:
    held = await claim_shards(shards, "a", "", 0.001)
    assert await renew_shards(shards, held, 60) == held
    assert await claim_shards(shards, "b", "", 60) == {}


async def test_a_renewal_of_a_term_that_was_taken_over_gets_nothing(shards: Connection) -> None:
    old = await claim_shards(shards, "a", "", 60)
    await expire(shards)
    new = await claim_shards(shards, "b", "", 60)
    assert await renew_shards(shards, old, 60) == {}
    assert await renew_shards(shards, {0: new[0], 1: old[1]}, 60) == {0: new[0]}


async def test_a_release_hands_over_at_once_but_only_ones_own(shards: Connection) -> None:
    old = await claim_shards(shards, "a", "", 60)
    await release_shards(shards, old)
    new = await claim_shards(shards, "b", "", 60)
    assert new == {0: 2, 1: 2}
    await release_shards(shards, old)  # too late: not theirs any more
    assert await claim_shards(shards, "c", "", 60) == {}


async def test_of_two_claimers_at_once_one_wins(
    shards: Connection, other_connection: Connection
) -> None:
    async with shards.transaction():
        won = await claim_shards(shards, "a", "", 60)
        late = asyncio.create_task(claim_shards(other_connection, "b", "", 60))
        assert await is_blocked(shards, other_connection)
    assert (won, await late) == ({0: 1, 1: 1}, {})


async def test_the_clock_is_the_databases(shards: Connection) -> None:
    now = await database_now(shards)
    assert abs((now - datetime.now(UTC)).total_seconds()) < 5
