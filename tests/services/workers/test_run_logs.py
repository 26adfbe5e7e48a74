"""What runs say, on its way to the disk: a flood of one tenant leaves room for the others."""

from __future__ import annotations

import asyncio

import pytest

from fairway.core.ids import Epoch, JobId, TenantId
from fairway.core.run.log_chunk import Chunk
from fairway.services.platform import Platform
from fairway.services.workers import run_logs
from fairway.services.workers.run_logs import OfferedChunk

FLOOD, QUIET = TenantId(1), TenantId(2)
JOB = JobId("01980a5e-7c1b-7000-8000-0d15ea5e0001")


def offered(tenant: TenantId, count: int) -> list[OfferedChunk]:
    return [
        OfferedChunk(Chunk(tenant, JOB, Epoch(1), 1, n, n, b"[]"), b"[]", 1)
        for n in range(1, count + 1)
    ]


async def test_nobody_has_all_the_room(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_logs, "CHUNKS_WAITING_MAX", 40)
    keep = platform.run_logs.keep
    for _ in range(2):  # what was written has left its room
        dropped = await asyncio.gather(keep(offered(FLOOD, 40)), keep(offered(QUIET, 5)))
        assert tuple(dropped) == (20, 0)
