"""Unique jobs with a real store: one at a time, whoever submits, whatever becomes of it."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import (
    HANG_SECONDS,
    Hand,
    add_tenant,
    new,
    platform_on,
    sight,
    submit,
    until,
)

from fairway.core.errors import Conflict, Unavailable
from fairway.core.flows import Kind
from fairway.core.ids import JobId, ShardId, make_job_id, unix_ms_of
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.core.unique import WHILE_LIVE, UniqueWish, digest_of, states_of
from fairway.core.unix_time import to_unix_ms
from fairway.services.platform import Platform
from fairway.services.submit.flow_intake import WantedFlow
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict

REJECT = UniqueWish(digest_of("k"), WHILE_LIVE)
RETURN = REJECT._replace(returns=True)
REPLACE = REJECT._replace(replaces=True)
WAITING = REPLACE._replace(states=states_of([State.SCHEDULED, State.QUEUED]))
LATER = REPLACE._replace(states=states_of([State.SCHEDULED]))  # as a debounced job says it


async def verdict(platform: Platform, tenant: Tenant, job: NewJob) -> Verdict:
    (found,) = await platform.submissions.submit(tenant, [job])
    return found


async def states(platform: Platform, tenant: Tenant, *jobs: JobId) -> list[State]:
    return [State((await sight(platform, tenant, job)).record.state) for job in jobs]


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


async def test_one_that_waits_is_replaced(platform: Platform, tenant: Tenant) -> None:
    """Queued or scheduled; nobody runs it any more, and who waits for it hears of that."""
    (first,) = await submit(platform, tenant, new(unique=REPLACE))
    waiting = asyncio.create_task(
        platform.job_waits.job_when(tenant.id, first, wait_seconds=HANG_SECONDS)
    )
    await until(lambda: (tenant.id, first) in platform.watchers.watched())
    later = new(unique=REPLACE, wish=Wish(delay_ms=3_600_000))
    (second,) = await submit(platform, tenant, later)
    assert (await waiting).record.state == State.CANCELLED
    (third,) = await submit(platform, tenant, new(unique=REPLACE, payload=b'{"n":3}'))
    cancelled = [State.CANCELLED] * 2
    assert await states(platform, tenant, first, second, third) == [*cancelled, State.QUEUED]
    assert platform.dispatcher.depth_of(tenant.id) == 1
    hand = Hand(platform)
    (lease,) = await hand.take(1)
    assert lease.job.id == third
    await hand.report(hand.done(lease))


async def test_one_that_runs_is_not(platform: Platform, tenant: Tenant) -> None:
    """Though its row may say for a while that it waits; if runs do not count, both are there."""
    (first,) = await submit(platform, tenant, new(unique=REPLACE))
    hand = Hand(platform)
    (lease,) = await hand.take(1)
    refused = await verdict(platform, tenant, new(unique=REPLACE))
    assert isinstance(refused, Conflict)
    assert "it runs" in refused.message
    await hand.report(hand.done(lease))
    (second,) = await submit(platform, tenant, new(unique=WAITING))
    (lease,) = await hand.take(1)
    (third,) = await submit(platform, tenant, new(unique=WAITING))
    await hand.report(hand.done(lease))
    found = await states(platform, tenant, first, second, third)
    assert found == [State.SUCCEEDED, State.SUCCEEDED, State.QUEUED]


async def test_one_that_others_wait_for_is_not(platform: Platform, tenant: Tenant) -> None:
    (first,) = await submit(platform, tenant, new(unique=REPLACE))
    wanted = WantedFlow(Kind.GROUP, [new()], after=[first])
    await platform.flow_intake.create(tenant, wanted, None)
    refused = await verdict(platform, tenant, new(unique=REPLACE))
    assert isinstance(refused, Conflict)
    assert "flow" in refused.message
    assert await states(platform, tenant, first) == [State.QUEUED]


async def test_of_a_batch_the_last_is_left(platform: Platform, tenant: Tenant) -> None:
    """Each is made, as if it came alone; a call sent again finds its own and replaces nobody."""
    (there,) = await submit(platform, tenant, new(unique=REPLACE))
    keyed = [
        new(unique=REPLACE, idempotency_key=f"call-{n}", body_hash=b"1", payload=b'{"n":%d}' % n)
        for n in range(3)
    ]
    made = await platform.submissions.submit(tenant, [*keyed, new(unique=REJECT), new()])
    jobs = [one.id for one in made if isinstance(one, Accepted)]
    assert [one.state for one in made if isinstance(one, Accepted)] == [
        "cancelled", "cancelled", "queued", "queued"
    ]  # fmt: skip
    assert isinstance(made[3], Conflict)
    again = await platform.submissions.submit(tenant, keyed)
    assert [one.id for one in again if isinstance(one, Accepted) and one.replayed] == jobs[:3]
    found = await states(platform, tenant, there, *jobs)
    assert found == [State.CANCELLED] * 3 + [State.QUEUED] * 2
    assert platform.dispatcher.depth_of(tenant.id) == 2


async def test_of_many_replacers_at_once_one_is_left(platform: Platform, tenant: Tenant) -> None:
    jobs = [
        job
        for made in await asyncio.gather(
            *[submit(platform, tenant, new(unique=REPLACE)) for _ in range(30)]
        )
        for job in made
    ]
    found = await states(platform, tenant, *jobs)
    assert (found.count(State.CANCELLED), found.count(State.QUEUED)) == (29, 1)


async def test_a_debounced_job_is_put_off_but_not_for_ever(
    platform: Platform, tenant: Tenant
) -> None:
    wish = LATER._replace(delay_most_ms=60_100)
    jobs, dues = list[JobId](), list[int]()
    for _ in range(3):
        made = await submit(platform, tenant, new(unique=wish, wish=Wish(delay_ms=60_000)))
        record = (await sight(platform, tenant, made[0])).record
        assert record.execute_at is not None
        jobs, dues = jobs + made, [*dues, to_unix_ms(record.execute_at)]
        await asyncio.sleep(0.06)
    assert dues[0] < dues[-1]
    assert dues == sorted(dues)
    assert dues[-1] == unix_ms_of(jobs[0]) + 60_100
    assert (await states(platform, tenant, *jobs))[-2:] == [State.CANCELLED, State.SCHEDULED]


async def test_a_debounced_job_that_is_due_stays(platform: Platform, tenant: Tenant) -> None:
    """Else a steady stream of calls would put off what should run now."""
    (first,) = await submit(platform, tenant, new(unique=LATER, wish=Wish(delay_ms=1)))
    await asyncio.sleep(0.002)
    (second,) = await submit(platform, tenant, new(unique=LATER, wish=Wish(delay_ms=60_000)))
    await until(lambda: platform.dispatcher.depth_of(tenant.id) == 1)
    assert await states(platform, tenant, first, second) == [State.QUEUED, State.SCHEDULED]


async def test_only_an_owner_replaces(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """Another server may write jobs, but knows nothing of what runs: it is asked to come again."""
    (first,) = await submit(platform, tenant, new(unique=REPLACE))
    async with platform_on(database_url) as second:
        made = await second.submissions.submit(tenant, [new(unique=REPLACE), new()])
    assert isinstance(made[0], Unavailable)
    assert isinstance(made[1], Accepted)
    assert await states(platform, tenant, first) == [State.QUEUED]


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
