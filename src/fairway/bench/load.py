"""Load through the front door: raw HTTP connections, cheap enough to share two cores with a server.

Closed loop: each connection sends its next request when the last was answered. Open loop: requests
have an intended start, and latency counts from it, so a slow server cannot hide behind a slow
client.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator

from fairway.runtime.plain_http import HttpConnection

Request = bytes


def post(path: str, key: str, body: bytes) -> Request:
    return (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body


class Tally:
    """What came of the requests."""

    def __init__(self) -> None:
        self.jobs = 0
        self.refused = 0
        self.seconds: list[float] = []
        self.lag_seconds_max = 0.0  # how far an open loop fell behind its own plan

    def add(self, status: int, jobs: int, seconds: float) -> None:
        if status in (200, 202):
            self.jobs += jobs
        else:
            self.refused += jobs
        self.seconds.append(seconds)

    def quantile_ms(self, q: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * q), len(ordered) - 1)] * 1000 if ordered else 0.0


async def closed_loop(
    address: tuple[str, int],
    requests: Iterator[tuple[Request, int]],
    *,
    connections: int,
    may_go: Callable[[Tally], bool],
    is_over: Callable[[Tally], bool],
) -> Tally:
    """Keep every connection busy until `is_over` or the end; rest while `may_go` says no."""
    tally = Tally()

    async def drive() -> None:
        connection = await HttpConnection.open(*address)
        while not is_over(tally):
            if not may_go(tally):
                await asyncio.sleep(0.005)
                continue
            request, jobs = next(requests, (None, 0))
            if request is None:
                break
            began = time.perf_counter()
            status, *_ = await connection.send(request)
            tally.add(status, jobs, time.perf_counter() - began)
        connection.close()

    await asyncio.gather(*(drive() for _ in range(connections)))
    return tally


async def open_loop(
    address: tuple[str, int],
    make: Callable[[float], Request],
    *,
    per_second: float,
    seconds: float,
    connections: int,
    seed: int = 1,
) -> Tally:
    """Poisson arrivals; `make` gets the intended wall-clock start of its request."""
    tally = Tally()
    dice = random.Random(seed)
    free: asyncio.Queue[HttpConnection] = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(await HttpConnection.open(*address))
    tasks: set[asyncio.Task[None]] = set()

    async def one(intended: float) -> None:
        connection = await free.get()
        status, *_ = await connection.send(make(intended))
        tally.add(status, 1, time.time() - intended)
        free.put_nowait(connection)

    intended = time.time()
    end = intended + seconds
    while intended < end:
        intended += dice.expovariate(per_second)
        wait = intended - time.time()
        if wait > 0:
            await asyncio.sleep(wait)
        tally.lag_seconds_max = max(tally.lag_seconds_max, time.time() - intended)
        task = asyncio.create_task(one(intended))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().close()
    return tally
