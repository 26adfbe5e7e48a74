"""Simulated people: each hands in three jobs, waits for them in one of three ways, starts over.

    poll   GET each job once a second
    head   HEAD with the last ETag once a second (304 while nothing changed), GET when it has
    sse    one stream of server-sent events for each job

A person's next look has its moment, one second after the last, and its latency counts from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from fairway.lab.load import job_body
from fairway.lab.platform import POOL
from fairway.rig.load_client import JSON, Answer, LoadClient

Way = Literal["poll", "head", "sse"]
WAYS: tuple[Way, ...] = ("poll", "head", "sse")
JOBS_EACH = 3
FINAL = (b'"state":"succeeded"', b'"state":"dead"', b'"state":"cancelled"', b'"state":"expired"')


class Look(NamedTuple):
    """One request that was answered."""

    intended: float
    sent: float
    answered: float
    status: int


class Finished(msgspec.Struct):
    finished_at: datetime | None = None


class Crowd:
    """All clients of one run. `looks` and `notices` are emptied by whoever reads them."""

    def __init__(
        self, client: LoadClient, way: Way, job_seconds: float, period_seconds: float
    ) -> None:
        self._client = client
        self.way = way
        self._body = job_body("lab.score", POOL, seconds=job_seconds)
        self._period = period_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self.looks: list[Look] = []
        self.notices: list[float] = []  # seconds from a job's end to its owner's knowing
        self.errors: list[str] = []

    @property
    def size(self) -> int:
        return len(self._tasks)

    def grow(self, size: int) -> None:
        while len(self._tasks) < size:
            task = asyncio.create_task(self._person())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def go_home(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _person(self) -> None:
        while True:
            try:
                jobs = [job for _ in range(JOBS_EACH) if (job := await self._submit())]
                await asyncio.gather(*(self._wait(job) for job in jobs))
                if not jobs:
                    await asyncio.sleep(self._period)  # turned away: try again later
            except OSError as error:
                self.errors.append(repr(error))
                await asyncio.sleep(self._period)

    async def _submit(self) -> str:
        answer = await self._look(
            time.time(), self._client.ask("POST", "/v1/jobs", self._body, JSON)
        )
        if answer.status != 202:
            return ""
        job: str = msgspec.json.decode(answer.body)["id"]
        return job

    async def _wait(self, job: str) -> None:
        path = f"/v1/jobs/{job}"
        if self.way == "sse":
            seen = await self._client.listen(f"{path}/events", b"event: succeeded")
            self._noticed(seen[seen.rfind(b"data: ") + 6 :])
            return
        due, etag = time.time(), ""
        while True:
            due += self._period
            await asyncio.sleep(max(0.0, due - time.time()))
            answer = await self._ask(due, path, etag)
            etag = answer.etag or etag
            if any(word in answer.body for word in FINAL):
                self._noticed(answer.body)
                return

    async def _ask(self, due: float, path: str, etag: str) -> Answer:
        if self.way == "poll":
            return await self._look(due, self._client.ask("GET", path))
        known = {"if-none-match": etag} if etag else {}
        head = await self._look(due, self._client.ask("HEAD", path, headers=known))
        if head.status == 304:
            return head
        return await self._look(time.time(), self._client.ask("GET", path))

    async def _look(self, intended: float, asking: Coroutine[Any, Any, Answer]) -> Answer:
        sent = time.time()
        answer = await asking
        self.looks.append(Look(intended, sent, time.time(), answer.status))
        return answer

    def _noticed(self, document: bytes) -> None:
        now = time.time()
        end = document.find(b"\n")
        text = document if end < 0 else document[:end].rstrip(b"\r")
        try:
            found = msgspec.json.decode(text, type=Finished).finished_at
        except msgspec.DecodeError:
            return  # the event came in pieces; one notice less
        if found is not None:
            self.notices.append(now - found.timestamp())
