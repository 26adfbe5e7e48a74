"""Unique jobs with a real store: one at a time, whoever submits, whatever becomes of it."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import Hand, add_tenant, new, sight, submit

from fairway.core.errors import Conflict
from fairway.core.ids import ShardId, make_job_id
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.core.unique import WHILE_LIVE, UniqueWish, digest_of, states_of
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict

REJECT = UniqueWish(digest_of("k"), WHILE_LIVE)
RETURN = REJECT._replace(returns=True)


async def verdict(platform: Platform, tenant: Tenant, job: NewJob) -> Verdict:
    (found,) = await platform.submissions.submit(tenant, [job])
    return found


async def count(platform: Platform, tenant: Tenant) -> int:
    async with platform.database.background() as connection:
        found: int = await connection.fetchval(
            "SELECT count(*) FROM jobs WHERE tenant = $1", tenant.id
        )
        return found


async def test_the_second_is_refused_or_led_to_the_first(
    platform: Platform, tenant: Tenant
) -> None:
    (first,) = await submit(platform, tenant, new(unique=REJECT))
    refused = await verdict(platform, tenant, new(unique=REJECT))
    assert isinstance(refused, Conflict)
    assert refused.code == "NOT_UNIQUE"
    assert first in refused.message
    assert await verdict(platform, tenant, new(unique=RETURN)) == Accepted(first, replayed=True)
    other = await add_tenant(platform, "other")
    assert await submit(platform, other, new(unique=REJECT)) != [first]  # keys are a tenant's own
    assert await count(platform, tenant) == 1


async def test_it_is_free_again_when_the_job_is_in_no_such_state(
    platform: Platform, tenant: Tenant
) -> None:
    (first,) = await submit(platform, tenant, new(unique=REJECT))
    hand = Hand(platform)
    (lease,) = await hand.take(1)
    assert isinstance(await verdict(platform, tenant, new(unique=REJECT)), Conflict)  # it runs
    await hand.report(hand.done(lease))
    assert (await sight(platform, tenant, first)).record.state == State.SUCCEEDED
    (second,) = await submit(platform, tenant, new(unique=REJECT))
    await platform.control.cancel(tenant.id, second)
    done = REJECT._replace(states=states_of([State.SUCCEEDED, *State]))
    (third,) = await submit(platform, tenant, new(unique=done))
    await platform.control.cancel(tenant.id, third)
    assert isinstance(await verdict(platform, tenant, new(unique=REJECT)), Conflict)  # as it said


async def test_it_is_free_again_when_its_time_is_over(platform: Platform, tenant: Tenant) -> None:
    short = REJECT._replace(within_ms=1)
    (first,) = await submit(platform, tenant, new(unique=short))
    await asyncio.sleep(0.02)
    (second,) = await submit(platform, tenant, new(unique=short))
    assert first != second


async def test_of_many_at_once_one_is_made(platform: Platform, tenant: Tenant) -> None:
    """In one batch, in one group, in several transactions."""
    batch = await platform.submissions.submit(
        tenant, [new(unique=RETURN), new(), new(unique=RETURN)]
    )
    alone = await asyncio.gather(
        *[verdict(platform, tenant, new(unique=RETURN, payload=b"{}")) for _ in range(20)]
    )
    found = {one.id for one in (batch[0], batch[2], *alone) if isinstance(one, Accepted)}
    assert len(found) == 1
    assert len(alone) == sum(isinstance(one, Accepted) and one.replayed for one in alone)
    assert await count(platform, tenant) == 2


async def test_a_refused_job_keeps_no_idempotency_key(platform: Platform, tenant: Tenant) -> None:
    """The same call, sent again when the way is free, makes the job; one that made it repeats."""
    keyed = new(unique=REJECT, idempotency_key="call-1", body_hash=b"1")
    (first,) = await submit(platform, tenant, new(unique=REJECT))
    assert isinstance(await verdict(platform, tenant, keyed), Conflict)
    await platform.control.cancel(tenant.id, first)
    made = await verdict(platform, tenant, keyed)
    assert isinstance(made, Accepted)
    assert not made.replayed
    assert await verdict(platform, tenant, keyed) == Accepted(made.id, replayed=True)
    assert await count(platform, tenant) == 2


async def test_a_call_that_stands_twice_in_a_group_is_led_to_the_first_both_times(
    platform: Platform, tenant: Tenant
) -> None:
    (first,) = await submit(platform, tenant, new(unique=REJECT))
    keyed = new(unique=RETURN, idempotency_key="call-1", body_hash=b"1")
    # Whoever comes while the first of these is written shares the next commit.
    _, *found = await asyncio.gather(
        *(verdict(platform, tenant, one) for one in (new(), keyed, keyed))
    )
    assert found == [Accepted(first, replayed=True)] * 2


@pytest.mark.parametrize(
    ("states", "days", "is_free"),
    [
        (WHILE_LIVE, 10, True),
        (states_of(State), 10, False),  # that it ended does not let go of the name
        (WHILE_LIVE, 0, False),  # it may be there, and not seen yet
    ],
)
async def test_a_job_past_its_retention_holds_no_name(
    platform: Platform, tenant: Tenant, states: int, days: int, is_free: bool
) -> None:
    """Its row is gone, so it lives no more; a name may be asked for longer than rows are kept."""
    made_ms = platform.store_clock.unix_ms() - days * 24 * 3600 * 1000
    wish = UniqueWish(digest_of("k"), states, within_ms=30 * 24 * 3600 * 1000)
    first = make_job_id(ShardId(0), made_ms, 0, 0)
    assert await submit(platform, tenant, new(unique=wish, id=first)) == [first]
    async with platform.database.upkeep() as connection:
        await connection.execute("DELETE FROM jobs WHERE id = $1", first)
    found = await verdict(platform, tenant, new(unique=wish))
    assert isinstance(found, Accepted if is_free else Conflict)
