"""Whose clock dates a job: the store's, whatever a server's own wall clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.services.platform_room import QUICK, Hand, add_tenant, owns_all, submit, until

from fairway.core.ids import ShardId, unix_ms_of
from fairway.runtime.clock import ManualClock, SystemClock
from fairway.runtime.random_ids import JobIdFactory
from fairway.services.jobs.far_runs import no_peers
from fairway.services.platform import Platform
from fairway.services.store_clock import StoreClock
from fairway.store.schema import partitions

HOUR = 3600.0


class WrongClock(SystemClock):
    """A machine whose wall clock is off."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_ms = round(ahead_seconds * 1000)

    def unix_ms(self) -> int:
        return super().unix_ms() + self._ahead_ms


@pytest.mark.parametrize("ahead_seconds", [HOUR, -HOUR, 10 * 24 * HOUR])
async def test_a_server_with_a_wrong_clock_dates_jobs_right(
    database_url: str, ahead_seconds: float
) -> None:
    platform = await Platform.prepare(database_url, QUICK, WrongClock(ahead_seconds), no_peers)
    await platform.start()
    try:
        await until(lambda: owns_all(platform))
        (job,) = await submit(platform, await add_tenant(platform))
        async with platform.database.upkeep() as connection:
            now: datetime = await connection.fetchval("SELECT clock_timestamp()")
            home = await connection.fetchval("SELECT tableoid::regclass::text FROM jobs")
            names = {one.name for one in await partitions.existing(connection)}
        assert abs(unix_ms_of(job) / 1000 - now.timestamp()) < 60
        assert home in {partitions.partition_at(now - timedelta(seconds=60)).name,
                        partitions.partition_at(now).name}  # fmt: skip
        wrong = partitions.partition_at(now + timedelta(seconds=ahead_seconds))
        assert abs(ahead_seconds) <= HOUR or wrong.name not in names
        await Hand(platform).take()
        waited = platform.metrics.registry.get_sample_value(
            "fairway_pickup_seconds_sum", {"pool": "short"}
        )
        assert waited is not None
        assert 0 <= waited < 60, "the wait is by the clock that dated the job"
    finally:
        await platform.stop()


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e6, 1e6)), max_size=30))
def test_ids_never_go_back_when_the_stores_clock_does(steps: list[tuple[float, float]]) -> None:
    clock = ManualClock()
    store_clock = StoreClock(clock)
    factory = JobIdFactory(store_clock)
    ids: list[str] = []
    for seconds, jump_seconds in steps:
        clock.advance(seconds)
        jumped = store_clock.now() + timedelta(seconds=jump_seconds)
        store_clock.was_read(jumped, clock.now_us())
        assert abs(store_clock.unix_ms() - jumped.timestamp() * 1000) <= 1
        ids += factory.make(ShardId(0), 2)
    assert ids == sorted(set(ids))


def test_the_skew_is_how_far_the_store_is_ahead() -> None:
    clock = ManualClock()
    store_clock = StoreClock(clock)
    assert store_clock.skew_seconds == 0
    moment = datetime.fromtimestamp(clock.unix_ms() / 1000, UTC) + timedelta(hours=5)
    store_clock.was_read(moment, clock.now_us())
    clock.advance(7)
    assert store_clock.skew_seconds == 5 * HOUR
