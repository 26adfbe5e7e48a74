"""The promoter: what is due runs, what is not does not, and the database's clock decides."""

from __future__ import annotations

from tests.services.platform_room import SHORT, Hand, add_tenant, freeze, stored, submit

from fairway.core.ids import ShardId
from fairway.core.lifecycle import State
from fairway.core.scheduling.promotion import PromotionCaps
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import Metrics
from fairway.services.platform import Platform
from fairway.services.scheduling.promoter import REST_MAX_SECONDS, REST_MIN_SECONDS, Promoter


async def schedule(platform: Platform, job: str, due_in_seconds: float) -> None:
    platform.dispatcher.backlog.forget_shard(ShardId(0))
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE jobs SET state = 0, execute_at = now() + make_interval(secs => $2)"
            " WHERE id = $1",
            job,
            due_in_seconds,
        )


def promoter_of(platform: Platform, **caps: int) -> Promoter:
    """One of its own, beside the stopped loops."""
    return Promoter(
        platform.database, platform.dispatcher, Metrics(), platform.clock, PromotionCaps(**caps)
    )


async def test_due_jobs_reach_a_worker_by_themselves(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    await schedule(platform, job, 0.2)
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job


async def test_a_round_promotes_what_is_due_and_rests_until_the_next(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    promoter = promoter_of(platform)
    assert await promoter.run_once(0) == REST_MAX_SECONDS
    due, soon = [(await submit(platform, tenant))[0] for _ in range(2)]
    await schedule(platform, due, -1)
    await schedule(platform, soon, 0.5)
    rest = await promoter.run_once(0)
    assert REST_MIN_SECONDS <= rest <= 0.5
    assert (await stored(platform, due))[0] is State.QUEUED
    assert (await stored(platform, soon))[0] is State.SCHEDULED
    assert platform.dispatcher.backlog.counts.ready(SHORT, tenant.id) == 1


async def test_a_shard_that_is_not_ours_is_left_alone(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    (job,) = await submit(platform, tenant)
    await schedule(platform, job, -1)
    platform.dispatcher.close_shard(ShardId(0))
    promoter = promoter_of(platform)
    assert await promoter.run_once(0) == REST_MAX_SECONDS
    assert (await stored(platform, job))[0] is State.SCHEDULED


REFUSE_ONE = """
CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.id = '{job}' THEN RAISE EXCEPTION 'this row is not to be touched'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse_one BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION refuse_one();
"""


async def test_one_row_that_cannot_be_moved_holds_up_its_own_second_only(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    others = [await add_tenant(platform, f"other-{n}") for n in range(5)]
    bad, later = [(await submit(platform, tenant))[0] for _ in range(2)]
    good = [(await submit(platform, other))[0] for other in others]
    for job, seconds in ((bad, -5), (later, -2), *((job, -1) for job in good)):
        await schedule(platform, job, seconds)
    async with platform.database.upkeep() as connection:
        await connection.execute(REFUSE_ONE.format(job=bad))
    promoter = promoter_of(platform)
    for _ in range(3):
        await promoter.run_once(0)
    states = [(await stored(platform, job))[0] for job in (bad, later, *good)]
    assert states == [State.SCHEDULED] + [State.QUEUED] * 6
    async with platform.database.upkeep() as connection:
        await connection.execute("DROP TRIGGER refuse_one ON jobs")
    await promoter.run_once(0)
    assert (await stored(platform, bad))[0] is State.SCHEDULED, "it is aside for a while"
    assert (await stored(platform, good[0]))[0] is State.QUEUED
