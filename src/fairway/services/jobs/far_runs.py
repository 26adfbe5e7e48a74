"""What only another server knows of jobs that run: since when, under which lease, how far.

A tenant may ask any server, and must hear the same from each. Jobs of shards that are owned
elsewhere are asked for at their owner: all who ask meanwhile with the next question. One that does
not answer is left in peace for a moment; until then the store alone speaks, as it would for a job
that nobody runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import NamedTuple, TypeAlias

from fairway.core.errors import Unavailable
from fairway.core.ids import Epoch, JobId, ShardId
from fairway.runtime.clock import Clock

JOBS_MAX = 100  # in one question; each may bring its progress
REST_SECONDS = 1.0  # for an owner that gave no answer


class FarRun(NamedTuple):
    """A run as its owner sees it."""

    epoch: Epoch
    started_us: int  # unix time, by the database's clock
    progress: bytes | None


Runs: TypeAlias = dict[JobId, FarRun]
Answers: TypeAlias = "dict[JobId, asyncio.Future[FarRun | None]]"
Ask: TypeAlias = Callable[[str, list[JobId]], Awaitable[Runs]]  # the server at this address
#: As `Ask`, with the secret of the cluster first. Unavailable when there is no answer.
AskRuns: TypeAlias = Callable[[str, str, list[JobId]], Awaitable[Runs]]


async def no_peers(secret: str, url: str, jobs: list[JobId]) -> Runs:
    """`AskRuns` for one that speaks to no other server: the store alone answers."""
    raise Unavailable(code="NOT_OWNER")


class FarRuns:
    def __init__(self, clock: Clock, owner_url: Callable[[ShardId], str | None], ask: Ask) -> None:
        self._clock = clock
        self._owner_url = owner_url  # None: nobody else owns it
        self._ask = ask
        self._asked: dict[ShardId, Answers] = {}
        self._asking: dict[ShardId, asyncio.Task[None]] = {}
        self._rests_until_us: dict[ShardId, int] = {}

    async def of(self, shard: ShardId, job: JobId) -> FarRun | None:
        """How it runs; None when it does not, or nobody can tell."""
        if self._clock.now_us() < self._rests_until_us.get(shard, 0):
            return None
        answers = self._asked.setdefault(shard, {})
        if job not in answers:
            answers[job] = asyncio.get_running_loop().create_future()
        answer = answers[job]
        if shard not in self._asking:
            self._asking[shard] = asyncio.create_task(self._ask_on(shard), name="far runs")
        return await asyncio.shield(answer)  # one who leaves takes it from nobody

    async def of_each(self, shard: ShardId, jobs: list[JobId]) -> Runs:
        asked = [self.of(shard, job) for job in jobs]
        found = zip(jobs, await asyncio.gather(*asked), strict=True)
        return {job: run for job, run in found if run is not None}

    async def _ask_on(self, shard: ShardId) -> None:
        try:
            while answers := self._asked.pop(shard, None):
                while answers:
                    group = {job: answers.pop(job) for job in list(islice(answers, JOBS_MAX))}
                    _tell(group, await self._runs(shard, list(group)))
        finally:
            del self._asking[shard]  # in the same step as the last look: nobody falls between

    async def _runs(self, shard: ShardId, jobs: list[JobId]) -> Runs:
        try:
            url = self._owner_url(shard)
            if url is None:
                raise Unavailable(code="NOT_OWNER")
            return await self._ask(url, jobs)
        except Unavailable:
            self._rests_until_us[shard] = self._clock.now_us() + round(REST_SECONDS * 1e6)
            return {}


def _tell(group: Answers, found: Runs) -> None:
    for job, answer in group.items():
        if not answer.done():
            answer.set_result(found.get(job))
