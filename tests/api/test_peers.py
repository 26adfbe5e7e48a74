"""Connections to other servers: kept, and not for ever."""

from __future__ import annotations

import asyncio

import pytest

from fairway.api import peers
from fairway.api.peers import Peers, asked_jobs, encode_runs
from fairway.core.errors import Unavailable
from fairway.core.ids import Epoch, JobId
from fairway.services.jobs.far_runs import FarRun

JOB = JobId("a job")
ANSWER = b"HTTP/1.1 %d Said\r\ncontent-length: %d\r\n\r\n%b"


async def asked(status: int, body: bytes) -> dict[JobId, FarRun]:
    """What comes of an owner's answer."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"x-fairway-cluster: of us all" in head
        writer.write(ANSWER % (status, len(body), body))

    found = Peers()
    async with await asyncio.start_server(meet, "127.0.0.1", 0) as owner:
        host, port = owner.sockets[0].getsockname()
        try:
            return await found.ask_runs("of us all", f"http://{host}:{port}", [JOB])
        finally:
            found.close()


async def test_an_owner_says_how_a_job_runs() -> None:
    assert asked_jobs(b'["a job"]') == [JOB]
    for progress in (None, b'{"done":1}'):
        run = FarRun(Epoch(3), 17, progress)
        assert await asked(200, encode_runs([(JOB, run)])) == {JOB: run}


async def test_an_owner_that_makes_no_sense_has_not_answered() -> None:
    assert await asked(404, b"") == {}, "an older one, which knows no such question"
    with pytest.raises(Unavailable):
        await asked(200, b"what?")


def test_of_servers_that_came_and_went_those_used_last_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "CLIENTS_MAX", 2)
    found = Peers()
    first = found.client("http://first", for_staff=True)
    second = found.client("http://second", for_staff=True)
    assert found.client("http://first", for_staff=True) is first
    assert found.client("http://first", for_staff=False) is not first, "and second goes"
    assert found.client("http://second", for_staff=True) is not second
