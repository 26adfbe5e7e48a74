"""The keeper's side of a conversation that breaks; the other side is written out, call by call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from fairway.core.ids import Epoch
from fairway.wire import exchange as wire
from fairway.worker.exchange import lease_ledger, readiness, report_delay
from fairway.worker.keeper import Keeper
from fairway.worker.options import WorkerOptions

LINGER_SECONDS = 0.3  # long, so that a test can break a call in the middle of it


class Desk:
    """An address for a keeper: each call waits here until the test answers or drops it."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[tuple[wire.ExchangeRequest, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                body = await reader.readexactly(length)
                await self.calls.put((wire.decode_request(body), writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def answer(writer: asyncio.StreamWriter, reply: wire.ExchangeReply) -> None:
    body = wire.encode(reply)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


def lease(number: int, seconds: float) -> wire.Lease:
    return wire.Lease(
        job=f"01890000-0000-7000-8000-{number:012x}", epoch=Epoch(1), token="0" * 32, type="nap",
        pool="short", tenant="acme", attempt=1, delivery=1,
        payload=msgspec.Raw(b'{"seconds": %g}' % seconds),
    )  # fmt: skip


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(report_delay, "LINGER_SECONDS", LINGER_SECONDS)
    monkeypatch.setenv("ACCEPTANCE_LEDGER", str(tmp_path / "ledger"))
    desk = Desk()
    options = WorkerOptions(
        target="tests.acceptance.jobs:app", name="one", urls=[await desk.open()], api_key="key",
        slots={"short": 8},
    )  # fmt: skip
    life = asyncio.create_task(Keeper(options).run())
    yield desk
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)
    desk.close()


async def test_a_hello_that_was_given_up_is_said_again(desk: Desk) -> None:
    """A call breaks while reports gather; the next one must be a hello, with all there is to say.

    That hello is given up together with the broken call, before it is sent. The one that follows
    may not be taken for an ordinary call: leases and reports would wait for each other for ever.
    """
    async with asyncio.timeout(20):
        hello, first = await desk.calls.get()
        assert hello.hello is not None
        seconds = LINGER_SECONDS * 0.3  # ends while a call is held to listen, and not alone
        leases = [lease(1, seconds), lease(2, 60), lease(3, 60)]
        answer(first, wire.ExchangeReply(leases=leases, beat_ms=5000))
        listening, held = await desk.calls.get()
        assert listening.reports == []
        await asyncio.sleep(LINGER_SECONDS * 0.6)
        held.transport.abort()
        again, _ = await desk.calls.get()
    assert again.hello is not None
    assert [report.job for report in again.reports] == [leases[0].job]
    assert again.running is not None
    assert {one.job for one in again.running} == {one.job for one in leases}
    assert again.call > hello.call


async def test_all_that_runs_is_named_now_and_then(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_ledger, "NAMING_SECONDS", 0.2)
    async with asyncio.timeout(20):
        hello, first = await desk.calls.get()
        assert not hello.running_is_all
        leases = [lease(1, 60), lease(2, 60)]
        answer(first, wire.ExchangeReply(leases=leases, beat_ms=5000))
        while True:
            call, door = await desk.calls.get()
            if call.running_is_all:
                break
            await asyncio.sleep(0.05)
            answer(door, wire.ExchangeReply(beat_ms=5000))
    assert call.hello is None
    assert call.running is not None
    assert [(one.job, one.token) for one in call.running] == [
        (one.job, one.token) for one in leases
    ]


async def test_what_has_ended_and_was_not_heard_is_named_as_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its report may be long on the way; meanwhile its time limit is nobody's business."""
    monkeypatch.setattr(lease_ledger, "NAMING_SECONDS", 0.2)
    async with asyncio.timeout(20):
        _, door = await desk.calls.get()
        leases = [lease(1, 0), lease(2, 60)]
        answer(door, wire.ExchangeReply(leases=leases, beat_ms=5000))
        has_reported = False
        while True:
            call, door = await desk.calls.get()
            if has_reported and call.running_is_all:
                break
            has_reported = has_reported or bool(call.reports)
            await asyncio.sleep(0.05)
            answer(door, wire.ExchangeReply(beat_ms=5000))
    ended = {one.job: one.ended for one in call.running or []}
    assert ended == {leases[0].job: True, leases[1].job: False}


async def test_it_is_ready_when_its_first_hello_was_taken(desk: Desk) -> None:
    """Who starts a worker with a wrong address or key must not read that all is well."""
    with capture_logs() as lines:
        async with asyncio.timeout(20):
            hello, first = await desk.calls.get()
            assert hello.wait_ms == 0, "the answer is not held back"
            first.transport.abort()
            _, second = await desk.calls.get()
            assert _told(lines) == ["worker is not ready"]
            answer(second, wire.ExchangeReply(beat_ms=5000))
            await desk.calls.get()
    assert _told(lines)[1:] == ["worker ready", "limits are held by"]


def _told(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was logged, but for what is said of a machine that was slow meanwhile."""
    return [line["event"] for line in lines if line["event"] != "event loop stood still"]


async def test_types_that_are_refused_are_told_and_asked_for_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for a name is no reason to end, nor to keep the other types from being run."""
    monkeypatch.setattr(readiness, "GREET_AGAIN_SECONDS", 0.3)
    with capture_logs() as lines:
        async with asyncio.timeout(20):
            hello, door = await desk.calls.get()
            assert hello.hello is not None
            refused = sorted(one.name for one in hello.hello.types if one.name != "nap")
            answer(door, wire.ExchangeReply(refused_types=refused, beat_ms=5000))
            while True:
                call, door = await desk.calls.get()
                if call.hello is not None:
                    break
            assert {one.name for one in call.hello.types} == {*refused, "nap"}
            answer(door, wire.ExchangeReply(refused_types=refused, beat_ms=5000))
            while True:
                call, door = await desk.calls.get()
                if call.hello is not None:
                    break
            answer(door, wire.ExchangeReply(leases=[lease(1, 0)], beat_ms=5000))
            while not call.reports:
                call, door = await desk.calls.get()
    said = {line["event"]: line for line in lines}
    assert said["worker ready"]["types"] == ["nap"]
    (told,) = (line for line in lines if "refused and not run" in line["event"])
    assert (told["log_level"], told["types"]) == ("error", refused)
    assert said["job types that were refused are run now"]["types"] == refused


async def test_an_older_server_without_room_does_not_end_it(desk: Desk) -> None:
    problem = {"status": 422, "code": "TOO_MANY_JOB_TYPES", "detail": "There are 10000 already."}
    body = msgspec.json.encode(problem)
    async with asyncio.timeout(20):
        for _ in range(3):
            call, door = await desk.calls.get()
            assert call.hello is not None
            door.write(b"HTTP/1.1 422 -\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        _, door = await desk.calls.get()
        answer(door, wire.ExchangeReply(beat_ms=5000))
        await desk.calls.get()
