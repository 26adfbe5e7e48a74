"""Load through the front door, in a closed or in an open loop.

Closed loop: each connection sends its next request when the last was answered. Open loop: every
request has its moment, decided beforehand, whatever became of those before it; its latency counts
from that moment, so a slow server cannot hide behind a slow client. What the generator itself was
late by is kept, and `validity.py` says whether the run may be believed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from fairway.rig.load_client import LoadClient, LoadConnection
from fairway.rig.quantile import quantile
from fairway.rig.validity import complaints

START_SECONDS = 0.05  # from the call to the first moment of a plan
REST_SECONDS = 0.005

# -- closed loop -------------------------------------------------------------------------------


class Tally:
    """What came of the requests of a closed loop."""

    def __init__(self) -> None:
        self.jobs = 0
        self.refused = 0
        self.seconds: list[float] = []

    def add(self, status: int, jobs: int, seconds: float) -> None:
        if status in (200, 202):
            self.jobs += jobs
        else:
            self.refused += jobs
        self.seconds.append(seconds)


async def closed_loop(
    client: LoadClient,
    requests: Iterator[tuple[bytes, int]],
    *,
    connections: int,
    may_go: Callable[[Tally], bool] = lambda tally: True,
    is_over: Callable[[Tally], bool] = lambda tally: False,
) -> Tally:
    """Keep every connection busy until `is_over` or the end; rest while `may_go` says no.

    A request comes with how many jobs it brings.
    """
    opened = await asyncio.gather(*(client.connect() for _ in range(connections)))
    all_of_them = [(connection, requests) for connection in opened]
    try:
        return await closed_loops(all_of_them, may_go=may_go, is_over=is_over)
    finally:
        for connection in opened:
            connection.close()


async def closed_loops(
    sources: Sequence[tuple[LoadConnection, Iterator[tuple[bytes, int]]]],
    *,
    may_go: Callable[[Tally], bool],
    is_over: Callable[[Tally], bool],
) -> Tally:
    """The same on connections that are there, each with its own requests."""
    tally = Tally()

    async def drive(connection: LoadConnection, requests: Iterator[tuple[bytes, int]]) -> None:
        while not is_over(tally):
            if not may_go(tally):
                await asyncio.sleep(REST_SECONDS)
                continue
            request, jobs = next(requests, (None, 0))
            if request is None:
                break
            began = time.perf_counter()
            status, *_ = await connection.send(request)
            tally.add(status, jobs, time.perf_counter() - began)

    await asyncio.gather(*(drive(*source) for source in sources))
    return tally


# -- open loop ---------------------------------------------------------------------------------


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
    def refused(self) -> int:
        return sum(shot.status != 202 for shot in self.shots)

    def reply_quantile(self, q: float) -> float:
        return quantile((shot.reply_seconds for shot in self.shots), q)

    @property
    def lag_seconds_max(self) -> float:
        """How far the generator fell behind its own plan."""
        return max((shot.sent - shot.intended for shot in self.shots), default=0.0)

    @property
    def complaints(self) -> list[str]:
        lags = [shot.sent - shot.intended for shot in self.shots]
        found = complaints(lags, self.intended - len(self.errors))
        if self.errors:
            found.append(f"{len(self.errors)} requests broke, the first: {self.errors[0]}")
        return found


#: Sends request number n, meant for this moment of the wall clock; answers status and job id.
Shoot = Callable[[int, float], Awaitable[tuple[int, str]]]


async def open_loop(
    plan: Sequence[float], shoot: Shoot, on_shot: Callable[[], None] = lambda: None
) -> Volley:
    """Shoot number n at plan[n] seconds from now."""
    volley = Volley([], time.time() + START_SECONDS, len(plan), [])
    tasks: set[asyncio.Task[None]] = set()

    async def one(number: int, intended: float) -> None:
        sent = time.time()
        try:
            status, job = await shoot(number, intended)
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
