"""Producers as plain HTTP clients: pipelined requests, large bodies, heads and bodies in pieces.

Each job has a number of its own and no idempotency key: only the servers could lose or double one.
A request behind a reply that closes its connection was not taken, and is sent again as it was.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections import Counter
from urllib.parse import urlsplit

import asyncpg
from tests.acceptance.house import House
from tests.acceptance.processes import until

LARGE_BYTES = 60_000  # more than comes in one piece
BURSTS = (1, 1, 1, 2, 4)
REST_SECONDS = 0.03
ANSWER_SECONDS_MAX = 30.0
TAG = "producer-"


class Producers:
    def __init__(self, house: House, clients: int) -> None:
        self._house = house
        self._numbers = itertools.count()
        self._dice = random.Random(20)
        self._is_over = False
        self._clients = clients
        self._tasks: list[asyncio.Task[None]] = []
        self.accepted: dict[int, str] = {}
        self.others: Counter[str] = Counter()  # what else was heard
        self.moves = 0  # from a reply that closed its connection to another

    async def __aenter__(self) -> Producers:
        self._tasks = [asyncio.create_task(self._produce()) for _ in range(self._clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def has_accepted(self, more: int) -> None:
        enough = len(self.accepted) + more
        await until(lambda: len(self.accepted) >= enough, 60, f"{more} more jobs")

    async def _produce(self) -> None:
        waiting: list[int] = []
        parts = urlsplit(self._house.urls[0])
        while not self._is_over or waiting:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                while not self._is_over or waiting:
                    while len(waiting) < self._dice.choice(BURSTS):
                        waiting.append(next(self._numbers))
                    await self._write(writer, b"".join(map(self._request, waiting)))
                    async with asyncio.timeout(ANSWER_SECONDS_MAX):
                        is_open = await self._hear(reader, waiting)
                    if not is_open:
                        break
                    await asyncio.sleep(REST_SECONDS)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.others[repr(error)] += 1
                waiting.clear()  # nobody knows what became of them
            finally:
                writer.close()

    def _request(self, number: int) -> bytes:
        payload = {"pad": "x" * (LARGE_BYTES if number % 29 == 0 else 10)}
        job = {"type": "discard", "payload": payload, "tags": [f"{TAG}{number}"]}
        body = json.dumps(job).encode()
        head = (
            f"POST /v1/jobs HTTP/1.1\r\nhost: it\r\nauthorization: Bearer {self._house.api_key}"
            f"\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def _write(self, writer: asyncio.StreamWriter, text: bytes) -> None:
        """With a moment between two pieces, anywhere in it: while a reply is on its way, too."""
        place = self._dice.randrange(len(text))
        writer.write(text[:place])
        await asyncio.sleep(self._dice.choice((0, 0.001, 0.005, 0.02)))
        writer.write(text[place:])
        await writer.drain()

    async def _hear(self, reader: asyncio.StreamReader, waiting: list[int]) -> bool:
        """All that was asked is answered, in its order; False once the connection is closed."""
        while waiting:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            length = next(line for line in head if line.startswith("content-length:"))
            told = await reader.readexactly(int(length.split(":")[1]))
            number = waiting.pop(0)
            if head[0].split()[1] == "202":
                self.accepted[number] = json.loads(told)["id"]
            else:
                self.others[told.decode()[:200]] += 1
            if "connection: close" in head:
                self.moves += 1
                return False
        return True

    async def check(self) -> None:
        """Each that was accepted is there once, under the id that was told."""
        connection = await asyncpg.connect(self._house.dsn)
        rows = await connection.fetch(
            "SELECT id::text, tags[1] AS tag FROM jobs WHERE tags[1] LIKE $1", f"{TAG}%"
        )
        await connection.close()
        there = Counter(int(row["tag"].removeprefix(TAG)) for row in rows)
        assert [number for number, count in there.items() if count > 1] == [], "doubled"
        assert set(self.accepted) <= set(there), "accepted, and not there"
        assert {row["id"] for row in rows}.issuperset(self.accepted.values())
