"""A scoring service as it is often written first: it holds a connection for the whole score.

One process, one connection pool for everything: taking applications in, and four workers with ten
places each that lock a row, score it for 1.5 s inside the transaction, and write the result. It is
here to be measured, never to be used. `python -m fairway.lab.naive DSN POOL SECONDS PORT`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

WORKERS, PLACES = 4, 10
SAMPLE_SECONDS = 0.1

TABLE = """
CREATE TABLE IF NOT EXISTS applications (
  id bigserial PRIMARY KEY, candidate text NOT NULL, score int,
  submitted float8 NOT NULL, started float8, finished float8
);
TRUNCATE applications RESTART IDENTITY
"""
CLAIM = """
SELECT id FROM applications WHERE score IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""


class Naive:
    def __init__(self, dsn: str, pool_size: int, seconds: float) -> None:
        self._dsn, self._size, self._seconds = dsn, pool_size, seconds
        self._pool: Any = None
        self._arrived = asyncio.Semaphore(0)
        self._waiting = self._held = 0
        self._samples: list[tuple[float, int, int]] = []  # time, waiters, connections in use
        self._tasks: list[asyncio.Task[None]] = []

    def app(self) -> Starlette:
        routes = [
            Route("/applications", self._submit, methods=["POST"]),
            Route("/state", self._state, methods=["GET"]),
        ]
        return Starlette(routes=routes, lifespan=self._life)

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        self._pool = await asyncpg.create_pool(self._dsn, min_size=self._size, max_size=self._size)
        async with self._connection() as connection:
            await connection.execute(TABLE)
        loops = [self._place() for _ in range(WORKERS * PLACES)]
        self._tasks = [asyncio.create_task(loop) for loop in (*loops, self._sample())]
        yield
        for task in self._tasks:
            task.cancel()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        self._waiting += 1
        try:
            connection = await self._pool.acquire()
        finally:
            self._waiting -= 1
        self._held += 1
        try:
            yield connection
        finally:
            self._held -= 1
            await self._pool.release(connection)

    async def _submit(self, request: Request) -> Response:
        candidate = msgspec.json.decode(await request.body())["candidate"]
        async with self._connection() as connection:
            number = await connection.fetchval(
                "INSERT INTO applications (candidate, submitted) VALUES ($1, $2) RETURNING id",
                candidate,
                time.time(),
            )
        self._arrived.release()
        return JSONResponse({"id": str(number)}, 202)

    async def _place(self) -> None:
        """Here is the mistake: a connection and an open transaction for as long as it scores."""
        while True:
            await self._arrived.acquire()
            async with self._connection() as connection, connection.transaction():
                number = await connection.fetchval(CLAIM)
                started = time.time()
                await asyncio.sleep(self._seconds)
                await connection.execute(
                    "UPDATE applications SET score = 1, started = $2, finished = $3 WHERE id = $1",
                    number,
                    started,
                    time.time(),
                )

    async def _sample(self) -> None:
        while True:
            self._samples.append((time.time(), self._waiting, self._held))
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _state(self, request: Request) -> Response:
        """Everything measured so far; asked for once, when the load is over."""
        connection = await asyncpg.connect(self._dsn)  # not of the pool, which may be starved
        try:
            rows = await connection.fetch("SELECT id::text, started, finished FROM applications")
        finally:
            await connection.close()
        lives = [list(row) for row in rows]
        return JSONResponse({"lives": lives, "samples": self._samples})


def main() -> None:
    dsn, pool_size, seconds, port = sys.argv[1:5]
    naive = Naive(dsn, int(pool_size), float(seconds))
    uvicorn.run(naive.app(), host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
