"""Questions to other owners: gathered, bounded, and not repeated to one that gives no answer."""

from __future__ import annotations

import asyncio

from fairway.core.errors import Unavailable
from fairway.core.ids import Epoch, JobId, ShardId, make_job_id
from fairway.runtime.clock import SystemClock
from fairway.services.jobs.far_runs import JOBS_MAX, FarRun, FarRuns, Runs

RUN = FarRun(Epoch(1), 0, b"1")
HERE, THERE = ShardId(0), ShardId(1)


def job(number: int, shard: ShardId = HERE) -> JobId:
    return make_job_id(shard, 1_800_000_000_000, number, 0)


def url_of(shard: ShardId) -> str:
    return f"http://owner-of-{shard}"


class Owners:
    """Answers at every address but those that are away; notes what it was asked."""

    def __init__(self, *away: ShardId) -> None:
        self.asked: list[int] = []
        self.away = [url_of(shard) for shard in away]
        self.open = asyncio.Event()
        self.open.set()

    async def ask(self, url: str, jobs: list[JobId]) -> Runs:
        self.asked.append(len(jobs))
        await self.open.wait()
        if url in self.away:
            raise Unavailable
        return dict.fromkeys(jobs[::2], RUN)

    def runs(self) -> FarRuns:
        return FarRuns(SystemClock(), url_of, self.ask)


async def test_all_who_ask_meanwhile_share_the_next_question() -> None:
    owners = Owners()
    owners.open.clear()
    runs = owners.runs()
    first = asyncio.create_task(runs.of(HERE, job(0)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(runs.of(HERE, job(n % 150))) for n in range(300)]
    await asyncio.sleep(0)
    others[0].cancel()
    owners.open.set()
    assert await first == RUN
    await asyncio.wait(others)
    assert owners.asked == [1, JOBS_MAX, 150 - JOBS_MAX]
    found = [one.result() for one in others if not one.cancelled()]
    assert len(found) == 299
    assert found.count(RUN) > 100
    assert None in found


async def test_an_owner_without_an_answer_is_left_in_peace_and_others_are_not() -> None:
    owners = Owners(THERE)
    runs = owners.runs()
    for _ in range(3):
        assert await runs.of(THERE, job(0, THERE)) is None
    assert len(owners.asked) == 1
    assert await runs.of_each(HERE, [job(0), job(1)]) == {job(0): RUN}


async def test_of_a_shard_that_nobody_owns_nobody_is_asked() -> None:
    owners = Owners()
    assert await FarRuns(SystemClock(), lambda shard: None, owners.ask).of(HERE, job(0)) is None
    assert owners.asked == []
