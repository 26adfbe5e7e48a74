"""Leadership: one owner a shard, under a term that only grows; the database's clock decides."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from fairway.core.ids import ShardId, Term
from fairway.store import leadership
from fairway.store.connections.database import Connection
from fairway.store.leadership import (
    CHANNEL,
    Heartbeat,
    Owner,
    RateRow,
    beat,
    count_open,
    database_now,
    forget_servers,
    leave,
    read_owners,
    read_rates,
    read_shards,
    release_shards,
    renew_shards,
    stand_in,
    write_rates,
)
from fairway.store.registry.tenants import found_cluster
from fairway.store.schedules import hold_shard


@pytest.fixture
async def shards(connection: Connection) -> Connection:
    await found_cluster(connection, 2, "secret")
    return connection


async def claim_shards(connection: Connection, *terms: Any, **more: Any) -> dict[ShardId, Term]:
    """Shard → term of what was taken."""
    found = await leadership.claim_shards(connection, *terms, **more)
    return {shard: claim.term for shard, claim in found.items()}


async def expire(connection: Connection) -> None:
    await connection.execute("UPDATE shards SET expires_at = now() - interval '1 ms'")


async def test_the_first_owner_takes_every_shard(shards: Connection) -> None:
    assert await claim_shards(shards, "a", "http://a", 60) == {0: 1, 1: 1}
    assert await read_owners(shards) == {
        0: Owner(ShardId(0), Term(1), "a", "http://a"),
        1: Owner(ShardId(1), Term(1), "a", "http://a"),
    }


async def test_a_held_shard_cannot_be_claimed(shards: Connection) -> None:
    await claim_shards(shards, "a", "", 60)
    assert await claim_shards(shards, "b", "", 60) == {}


async def test_every_take_over_has_a_greater_term(shards: Connection) -> None:
    terms = []
    for owner in "abab":
        terms.append((await claim_shards(shards, owner, "", 60))[ShardId(0)])
        await expire(shards)
    assert terms == [1, 2, 3, 4]


async def test_a_term_that_ran_out_has_no_owner(shards: Connection) -> None:
    await claim_shards(shards, "a", "", 60)
    await expire(shards)
    assert await read_owners(shards) == {}


async def test_a_renewal_extends_and_keeps_the_term(shards: Connection) -> None:
    held = await claim_shards(shards, "a", "", 0.001)
    assert await renew_shards(shards, held, 60) == {0: True, 1: True}
    assert await claim_shards(shards, "b", "", 60) == {}


async def test_a_renewal_of_a_term_that_was_taken_over_gets_nothing(shards: Connection) -> None:
    old = await claim_shards(shards, "a", "", 60)
    await expire(shards)
    new = await claim_shards(shards, "b", "", 60)
    assert await renew_shards(shards, old, 60) == {}
    assert await renew_shards(
        shards, {ShardId(0): Term(new[ShardId(0)]), ShardId(1): Term(old[ShardId(1)])}, 60
    ) == {0: True}


async def test_a_renewal_does_not_wait_for_the_owners_own_writes(
    shards: Connection, other_connection: Connection
) -> None:
    held = await claim_shards(shards, "a", "", 60)
    await expire(shards)
    async with shards.transaction():
        assert await hold_shard(
            shards, ShardId(0), held[ShardId(0)]
        )  # as every write of the owner does
        await other_connection.execute("SET lock_timeout = '2s'")
        assert await renew_shards(other_connection, held, 60) == {0: True, 1: True}
    assert await claim_shards(shards, "b", "", 60) == {}


async def test_a_claim_passes_over_the_shard_of_an_owners_last_write(
    shards: Connection, other_connection: Connection
) -> None:
    held = await claim_shards(shards, "a", "", 60)
    await expire(shards)
    async with shards.transaction():
        assert await hold_shard(shards, ShardId(0), held[ShardId(0)])
        assert await claim_shards(other_connection, "b", "", 60) == {1: 2}
    assert await claim_shards(other_connection, "b", "", 60) == {0: 2}


async def test_a_row_that_somebody_holds_keeps_no_other_from_being_renewed(
    shards: Connection, other_connection: Connection
) -> None:
    held = await claim_shards(shards, "a", "", 60)
    async with shards.transaction():
        await shards.fetch("SELECT FROM shards WHERE shard = 0 FOR UPDATE")
        assert await renew_shards(other_connection, held, 60) == {0: False, 1: True}
    assert await renew_shards(other_connection, held, 60) == {0: True, 1: True}


async def test_nobody_claims_what_he_holds(shards: Connection) -> None:
    """A term that ran out and that nobody took is good: its owner renews it."""
    held = await claim_shards(shards, "a", "", 60)
    await expire(shards)
    assert await claim_shards(shards, "a", "", 60, wanted=[1]) == {1: 2}
    assert await renew_shards(shards, held | {ShardId(1): Term(1)}, 60) == {0: True}


async def test_a_release_hands_over_at_once_but_only_ones_own(shards: Connection) -> None:
    old = await claim_shards(shards, "a", "", 60)
    await release_shards(shards, old, written=old)
    new = await claim_shards(shards, "b", "", 60)
    assert new == {0: 2, 1: 2}
    await release_shards(shards, old, written=old)  # too late: not theirs any more
    assert await claim_shards(shards, "c", "", 60) == {}


@pytest.mark.parametrize("all_written", [True, False])
async def test_the_next_owner_knows_whether_all_is_written(
    shards: Connection, all_written: bool
) -> None:
    held = await claim_shards(shards, "a", "", 60)
    await release_shards(shards, held, written=held if all_written else ())
    taken = await leadership.claim_shards(shards, "b", "", 60)
    assert {claim.was_handed_over for claim in taken.values()} == {all_written}
    await expire(shards)  # it died, and handed nothing over
    taken = await leadership.claim_shards(shards, "c", "", 60)
    assert {claim.was_handed_over for claim in taken.values()} == {False}


async def test_a_row_that_somebody_holds_is_let_go_later(
    shards: Connection, other_connection: Connection
) -> None:
    held = await claim_shards(shards, "a", "", 60)
    await other_connection.execute("SET lock_timeout = '2s'")
    async with shards.transaction():
        await shards.fetch("SELECT FROM shards WHERE shard = 0 FOR UPDATE")
        assert await release_shards(other_connection, held, written=held) == {0}
        assert await claim_shards(other_connection, "b", "", 60) == {1: 2}
    assert await release_shards(other_connection, held, written=held) == set()
    assert await claim_shards(other_connection, "b", "", 60) == {0: 2}


async def test_who_lets_go_waits_for_no_row_to_tell_what_started(
    shards: Connection, other_connection: Connection
) -> None:
    await claim_shards(shards, "a", "", 60)
    rows = [RateRow(ShardId(number), Term(1), b"!") for number in (0, 1)]
    async with shards.transaction():
        await shards.fetch("SELECT FROM shards WHERE shard = 0 FOR UPDATE")
        async with asyncio.timeout(5):
            await write_rates(other_connection, rows)
    found = await read_rates(shards, [ShardId(0), ShardId(1)])
    assert [row for row, _ in found] == rows[1:]


async def test_who_stands_in_passes_over_a_row_that_somebody_holds(
    shards: Connection, other_connection: Connection
) -> None:
    await other_connection.execute("SET lock_timeout = '2s'")
    async with shards.transaction():
        await shards.fetch("SELECT FROM shards WHERE shard = 0 FOR UPDATE")
        assert await stand_in(other_connection, "api", "", 60, [ShardId(0), ShardId(1)]) == {1: 1}


async def test_servers_hear_of_every_change_of_owners(
    shards: Connection, other_connection: Connection
) -> None:
    heard = asyncio.Semaphore(0)
    await other_connection.add_listener(CHANNEL, lambda *notice: heard.release())
    async with asyncio.timeout(30):
        held = await claim_shards(shards, "a", "", 60)
        await heard.acquire()
        await release_shards(shards, held)
        await heard.acquire()


async def test_of_two_claimers_at_once_one_wins(
    shards: Connection, other_connection: Connection
) -> None:
    async with shards.transaction():
        won = await claim_shards(shards, "a", "", 60, wanted=[0])
        late = await claim_shards(other_connection, "b", "", 60)
    assert (won, late) == ({0: 1}, {1: 1})


async def test_the_clock_is_the_databases(shards: Connection) -> None:
    now = await database_now(shards)
    assert abs((now - datetime.now(UTC)).total_seconds()) < 5


async def overlong(connection: Connection) -> dict[ShardId, datetime]:
    rows = await read_shards(connection, 6)
    return {row.shard: row.overlong_until for row in rows if row.overlong_until is not None}


async def test_a_term_that_ends_too_far_ahead_is_taken_only_as_it_was_seen(
    shards: Connection,
) -> None:
    held = await claim_shards(shards, "a", "", 3)
    assert await overlong(shards) == {}
    await shards.execute("UPDATE shards SET expires_at = now() + interval '5 hours'")
    seen = await overlong(shards)
    assert seen.keys() == {0, 1}
    assert await claim_shards(shards, "b", "", 3) == {}
    await renew_shards(shards, {ShardId(1): held[ShardId(1)]}, 3)
    assert await claim_shards(shards, "a", "", 3, unrenewed=seen, wanted=[1]) == {}
    assert await claim_shards(shards, "b", "", 3, unrenewed=seen) == {0: held[ShardId(0)] + 1}
    assert await overlong(shards) == {}


async def test_a_claim_beside_a_renewal_finds_the_owner_alive(
    shards: Connection, other_connection: Connection
) -> None:
    held = await claim_shards(shards, "a", "", 3)
    await shards.execute("UPDATE shards SET expires_at = now() + interval '5 hours'")
    seen = await overlong(shards)
    async with shards.transaction():
        await renew_shards(shards, held, 3)
        assert await claim_shards(other_connection, "b", "", 3, unrenewed=seen) == {}
    assert await claim_shards(other_connection, "b", "", 3, unrenewed=seen) == {}


def heartbeat(name: str, seconds: float = 60.0, **changes: Any) -> Heartbeat:
    said = Heartbeat(name, f"http://{name}", True, False, seconds, 0.05, 60.0)
    return said._replace(**changes)


async def names_there(connection: Connection, said: Heartbeat) -> dict[str, tuple[bool, bool]]:
    """Name → whether it is settled, and prompt."""
    servers, _ = await beat(connection, said)
    return {one.name: (one.is_settled, one.is_prompt) for one in servers}


async def test_servers_are_there_while_their_heartbeats_last(shards: Connection) -> None:
    await beat(shards, heartbeat("a", is_leaving=True))
    servers, now = await beat(shards, heartbeat("b", owns_shards=False))
    assert abs((now - datetime.now(UTC)).total_seconds()) < 5
    assert {(one.name, one.url, one.owns_shards, one.is_leaving) for one in servers} == {
        ("a", "http://a", True, True),
        ("b", "http://b", False, False),
    }
    await shards.execute("UPDATE servers SET expires_at = now() - interval '1 ms'")
    assert (await names_there(shards, heartbeat("b"))).keys() == {"b"}
    await leave(shards, "b")
    assert (await names_there(shards, heartbeat("c"))).keys() == {"c"}
    await shards.execute("UPDATE servers SET expires_at = now() - interval '2 hours'")
    await forget_servers(shards)
    assert await shards.fetchval("SELECT count(*) FROM servers") == 0


async def test_a_server_is_settled_after_a_while_and_late_without_a_heartbeat(
    shards: Connection,
) -> None:
    assert await names_there(shards, heartbeat("a")) == {"a": (False, True)}
    await shards.execute("SELECT pg_sleep(0.06)")
    assert await names_there(shards, heartbeat("a")) == {"a": (True, True)}
    assert (await names_there(shards, heartbeat("b", late_seconds=0.0)))["a"] == (True, False)
    await shards.execute("UPDATE servers SET expires_at = now() - interval '1 ms'")
    assert await names_there(shards, heartbeat("a")) == {"a": (False, True)}, "it begins anew"


async def test_a_heartbeat_of_before_the_clock_went_back_does_not_count(
    shards: Connection,
) -> None:
    await beat(shards, heartbeat("dead"))
    await shards.execute(
        "UPDATE servers SET since = now() + interval '5 hours', expires_at = now() + interval '5 h'"
    )
    assert (await names_there(shards, heartbeat("a"))).keys() == {"a"}
    assert await names_there(shards, heartbeat("dead", settle_seconds=0.0)) == {
        "a": (True, True),
        "dead": (True, True),
    }


async def test_a_shard_is_open_when_its_owner_said_so_in_this_term(shards: Connection) -> None:
    await beat(shards, heartbeat("a"))
    held = await claim_shards(shards, "a", "http://a", 60)
    assert await count_open(shards) == 0
    await renew_shards(shards, held, 60, opened=[ShardId(0)])
    assert await count_open(shards) == 1
    assert [row.is_open for row in await read_shards(shards)] == [True, False]
    await expire(shards)
    assert await count_open(shards) == 0
    await claim_shards(shards, "of the build before", "", 60)
    assert await count_open(shards) == 2, "it does not tell"
