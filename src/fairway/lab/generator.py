"""The open-loop generator: every request has its moment, whatever became of those before it.

A shot's latency counts from its intended moment. What the generator itself was late by is kept, and
`measure/validity.py` says whether the run may be believed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from fairway.lab.door import JSON, Door
from fairway.lab.measure.validity import complaints


class Shot(NamedTuple):
    """One request that was answered, in seconds of the wall clock; `number` is its place."""

    number: int
    intended: float
    sent: float
    answered: float
    status: int
    job: str = ""

    @property
    def reply_seconds(self) -> float:
        return self.answered - self.intended


class Volley(NamedTuple):
    """What came of a plan."""

    shots: list[Shot]
    began: float
    intended: int
    errors: list[str]

    @property
    def accepted(self) -> dict[str, Shot]:
        return {shot.job: shot for shot in self.shots if shot.job}

    @property
    def complaints(self) -> list[str]:
        lags = [shot.sent - shot.intended for shot in self.shots]
        found = complaints(lags, self.intended - len(self.errors))
        if self.errors:
            found.append(f"{len(self.errors)} requests broke, the first: {self.errors[0]}")
        return found


Fire = Callable[[int], Awaitable[tuple[int, str]]]


async def fire(
    plan: Sequence[float], shoot: Fire, on_shot: Callable[[], None] = lambda: None
) -> Volley:
    """Shoot number n at plan[n] seconds from now; `shoot` answers status and job id."""
    volley = Volley([], time.time() + 0.05, len(plan), [])
    tasks: set[asyncio.Task[None]] = set()

    async def one(number: int, intended: float) -> None:
        sent = time.time()
        try:
            status, job = await shoot(number)
        except OSError as error:
            volley.errors.append(repr(error))
            return
        volley.shots.append(Shot(number, intended, sent, time.time(), status, job))
        on_shot()

    for number, offset in enumerate(plan):
        intended = volley.began + offset
        await asyncio.sleep(max(0.0, intended - time.time()))
        task = asyncio.create_task(one(number, intended))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return volley


async def submit(door: Door, body: bytes) -> tuple[int, str]:
    """One job through the front door: the status, and the id when it was accepted."""
    answer = await door.ask("POST", "/v1/jobs", body, JSON)
    if answer.status != 202:
        return answer.status, ""
    return 202, msgspec.json.decode(answer.body)["id"]


def job_body(kind: str, pool: str, **payload: object) -> bytes:
    return msgspec.json.encode({"type": kind, "pool": pool, "payload": payload})
