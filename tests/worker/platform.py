"""A platform of a few lines for a keeper: hands leases out once, and hears or refuses reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from fairway.core.ids import Epoch
from fairway.wire import exchange as wire
from fairway.worker.keeper import Keeper
from fairway.worker.options import WorkerOptions
from fairway.worker.pipe.pipe import RunReport

HOLD_SECONDS = 0.05  # how long a call is held at most: tests are in a hurry
BEAT_MS = 1000
APP = "tests.acceptance.jobs:app"

Judge = Callable[[wire.ExchangeRequest], int]


def lease(
    number: int, job_type: str = "nap", pool: str = "short", payload: Any = None, **more: Any
) -> wire.Lease:
    return wire.Lease(
        job=job_id(number), epoch=Epoch(1), token="0" * 32, type=job_type, pool=pool, tenant="acme",
        attempt=1, delivery=1, payload=msgspec.Raw(msgspec.json.encode(payload or {})), **more,
    )  # fmt: skip


def ended(job: str, kind: str = "succeeded", epoch: int = 1, **more: Any) -> RunReport:
    """As a runner says it; of the lease above unless it names another epoch."""
    return RunReport(job=job, epoch=Epoch(epoch), kind=kind, ran_us=1, **more)


def job_id(number: int) -> str:
    return f"01890000-0000-7000-8000-{number:012x}"


def said_of(report: wire.Report) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(report.error)
    return document


class Platform:
    """Each call is judged by `judge`, which answers the status; 200 is heard."""

    def __init__(self) -> None:
        self.judge: Judge = lambda request: 200
        self.codes = {413: "PAYLOAD_TOO_LARGE", 500: "INTERNAL", 503: "NO_ROOM"}  # of what it says
        self.leases: list[wire.Lease] = []  # go out with the next reply to one who takes work
        self.heard: dict[str, wire.Report] = {}  # job → what was taken
        self.calls: list[wire.ExchangeRequest] = []
        self.takes: Callable[[wire.Report], bool] = lambda report: True  # else it says nothing
        self.errand: Callable[[str], tuple[int, bytes]] = lambda path: (404, b"{}")
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Platform]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                sent, path = await reader.readexactly(length), head.split()[1].decode()
                is_exchange = path.partition("?")[0].endswith("/exchange")
                status, body = await self._reply(sent) if is_exchange else self.errand(path)
                writer.write(b"HTTP/1.1 %d -\r\ncontent-length: %d\r\n\r\n" % (status, len(body)))
                writer.write(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _reply(self, body: bytes) -> tuple[int, bytes]:
        request = wire.decode_request(body)
        self.calls.append(request)
        status = self.judge(request)
        if status != 200:
            code = self.codes.get(status, "INVALID_REQUEST")
            problem = {"status": status, "code": code, "detail": "This is not to be taken."}
            return status, msgspec.json.encode(problem)
        taken = [report for report in request.reports if self.takes(report)]
        self.heard |= {report.job: report for report in taken}
        reply = wire.ExchangeReply(recorded=[one.n for one in taken], beat_ms=BEAT_MS)
        if not request.draining:
            reply.leases, self.leases = self.leases, []
        if not (reply.leases or reply.recorded):
            await asyncio.sleep(min(request.wait_ms / 1000, HOLD_SECONDS))
        return 200, wire.encode(reply)


@asynccontextmanager
async def working(platform: Platform, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A keeper at work for this platform; its life as a task."""
    given: dict[str, Any] = {"target": APP, "slots": {"short": 16, "medium": 16}, **options}
    life = asyncio.create_task(
        Keeper(WorkerOptions(name="one", urls=[platform.url], api_key="key", **given)).run()
    )
    try:
        yield life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def until(condition: Callable[[], bool], life: asyncio.Task[None], what: str) -> None:
    """The keeper must live until then."""
    async with asyncio.timeout(60):
        while not condition():
            assert not life.done(), f"the worker ended before {what}: {life!r}"
            await asyncio.sleep(0.02)


async def fact(holds: Callable[[], bool]) -> None:
    """Wait for it, looking often; a minute is no measure of speed."""
    async with asyncio.timeout(60):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def ignore(*facts: object) -> None:
    """Whom something is told that this test is not about."""


def journal_lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) - 1 for path in folder.iterdir())
