"""Lines of jobs on their way: bounded by tenant, sent again, given up; and in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.worker.platform import Platform, fact, job_id, lease, working

from fairway.core.ids import Epoch
from fairway.wire.exchange import Lease
from fairway.wire.run_logs import KeepLines, RunLines
from fairway.worker.exchange import log_sender
from fairway.worker.exchange.log_sender import LogSender
from fairway.worker.exchange.session import Session, SilentAddresses
from fairway.worker.pipe.pipe import RunLine


class Ear:
    """A server that hears lines, once it is told to answer well."""

    def __init__(self) -> None:
        self.status = 200
        self.calls = 0
        self.runs: list[RunLines] = []
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ear]:
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
                body = await reader.readexactly(length)
                self.calls += 1
                if self.status == 200:
                    self.runs += msgspec.json.decode(body, type=KeepLines).runs
                writer.write(b"HTTP/1.1 %d -\r\ncontent-length: 2\r\n\r\n{}" % self.status)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.fixture
async def ear() -> AsyncIterator[Ear]:
    async with Ear().open() as opened:
        yield opened


def line(number: int, n: int, text: str = "x") -> RunLine:
    return RunLine(job=job_id(number), epoch=Epoch(1), n=n, at_ms=0, level=20, text=text)


def of_tenant(number: int, tenant: str) -> Lease:
    return msgspec.structs.replace(lease(number), tenant=tenant)


async def test_lines_are_said_again_until_they_are_heard(ear: Ear) -> None:
    ear.status = 503
    sender = LogSender(Session([ear.url], "key", "one", SilentAddresses()), {job_id(1): lease(1)})
    sender.add([line(1, 1), line(1, 2), line(2, 1)])  # the last of a run that is not ours
    await fact(lambda: ear.calls >= 2)
    ear.status = 200
    await sender.finish()
    assert [(run.job, [one.n for one in run.lines]) for run in ear.runs] == [(job_id(1), [1, 2])]
    assert ear.runs[0].token == lease(1).token
    await sender.stop()


async def test_one_tenants_flood_leaves_room_for_others(
    ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sender, "WAITING_BYTES_MAX", 20_000)
    running = {job_id(1): of_tenant(1, "loud"), job_id(2): of_tenant(2, "small")}
    sender = LogSender(Session([ear.url], "key", "one", SilentAddresses()), running)
    sender.add([*(line(1, n, "y" * 40) for n in range(1, 501)), line(2, 1)])
    await sender.finish()
    loud, small = (
        [one for run in ear.runs if run.tenant == tenant for one in run.lines]
        for tenant in ("loud", "small")
    )
    assert [one.n for one in small] == [1]
    assert len(loud) < 120
    assert loud[-1].text == f"… {500 - len(loud) + 1} lines dropped"
    assert loud[-1].n == len(loud)
    sender.add([line(1, 501)])  # there is room again
    await fact(lambda: ear.runs[-1].lines[-1].n == 501)
    await sender.stop()


async def test_marks_of_many_runs_are_bounded_too(
    ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody takes lines, runs come and go, and each would leave a mark."""
    monkeypatch.setattr(log_sender, "WAITING_BYTES_MAX", 20_000)
    monkeypatch.setattr(log_sender, "WITH_MARKS_BYTES_MAX", 25_000)
    ear.status = 503
    running = {job_id(number): lease(number) for number in range(1, 2001)}
    sender = LogSender(Session([ear.url], "key", "one", SilentAddresses()), running)
    sender.add(line(number, n) for number in range(1, 2001) for n in (1, 2))
    assert 10_000 < sender.bytes_waiting <= 12_600  # a tenant's half
    assert len(sender._waiting) < 1000
    ear.status = 200
    await sender.finish()
    assert sender.bytes_waiting == 0
    await sender.stop()


async def test_a_run_ends_though_nobody_takes_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEPTANCE_LEDGER", str(tmp_path / "ledger"))
    async with Platform().open() as platform:
        asked: list[str] = []

        def fail(path: str) -> tuple[int, bytes]:
            asked.append(path)
            return 500, b"{}"

        platform.errand = fail
        platform.leases = [lease(1, "talk.thread"), lease(2, "talk.loop")]
        async with working(platform, target="tests.acceptance.talking_jobs:app"):
            await fact(lambda: len(platform.heard) == 2)
            await fact(lambda: any(path.endswith("/logs") for path in asked))
        assert platform.heard[job_id(1)].kind == "succeeded"
