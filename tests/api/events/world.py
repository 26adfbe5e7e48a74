"""A tenant whose jobs are in the event log, and a line to the server that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from tests.api.house import House


class Talker:
    """A tenant that makes events: a job that is accepted is one."""

    def __init__(self, house: House) -> None:
        self.name, self.key = house.new_tenant()
        self.type = f"never.{secrets.token_hex(4)}"
        self._house = house

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[httpx2.AsyncClient]:
        async with self._house.caller(self.key) as caller:
            yield caller

    async def ask_for_events(self) -> None:
        async with self.caller() as caller:
            asked = await caller.put("/v1/events/settings", json={"job_events": True})
        assert asked.status_code in (200, 204), asked.text

    async def make(self, count: int, type_: str = "") -> list[str]:
        """So many jobs, and an event of each; answers their ids."""
        jobs = [{"type": type_ or self.type} for _ in range(count)]
        async with self.caller() as caller:
            reply = await caller.post("/v1/jobs/batch", json={"jobs": jobs})
        assert reply.status_code in (200, 202), reply.text
        return [item["id"] for item in reply.json()["items"]]

    async def until(self, position: int) -> None:
        """Until the log has so many events."""
        async with self.caller() as caller, asyncio.timeout(30):
            cursor = 0
            while cursor < position:
                asked = {"after": cursor, "wait": 5}
                cursor = (await caller.get("/v1/events", params=asked)).json()["cursor"]


@asynccontextmanager
async def talker_in(house: House) -> AsyncIterator[Talker]:
    talker = Talker(house)
    await talker.ask_for_events()
    yield talker


class Line:
    """A relay in front of a server: it can be cut in the midst of a word, any number of times."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.url = ""
        self.port = 0
        self.cuts = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Every connection there is; new ones are taken. Counts only if there was one."""
        self.cuts += bool(self._ends)
        for end in list(self._ends):
            end.transport.abort()

    def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._ends |= ends
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        self._ends -= ends


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 12):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def line_to(port: int) -> AsyncIterator[Line]:
    line = Line(port)
    await line.open()
    try:
        yield line
    finally:
        line.close()


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]
