"""What is refused leaves nothing that only the collector finds: it looks every five minutes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.jobs.test_submit import JOB

from fairway.services.submit.submission_group import NewJob

LEFT_MAX = 3_000  # objects: the client and the loops leave some hundreds


def jobs_left() -> int:
    """How many jobs are in circles that only the collector finds."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = sum(isinstance(one, NewJob) for one in gc.garbage)
    gc.garbage.clear()
    return found


@pytest.fixture
def collector_at_rest() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("bad", [{}, 0, {**JOB, "pool": "huge"}], ids=["empty", "none", "pool"])
@pytest.mark.usefixtures("collector_at_rest")
async def test_a_batch_of_bad_jobs(tenant: httpx2.AsyncClient, bad: Any) -> None:
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": [bad] * 2_000})
    assert reply.json()["accepted"] == 0
    assert gc.collect() < LEFT_MAX


@pytest.mark.usefixtures("collector_at_rest")
async def test_a_batch_that_the_owner_refuses(house: House) -> None:
    """The refusal is an answer that was kept, and raised again."""
    _, key = house.new_tenant(depth_limit=10)
    with open_house(house.dsn, owns_shards=False) as other:
        async with house.caller(key) as near, other.caller(key) as far:
            for _ in range(8):
                assert (await near.post("/v1/jobs", json=JOB)).is_success
            gc.collect()
            reply = await far.post("/v1/jobs/batch", json={"jobs": [JOB] * 5})
            problem(reply, 429, "QUEUE_DEPTH_EXCEEDED")
            assert not jobs_left()
