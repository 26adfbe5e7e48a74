"""What fair share is compared with truly serves whoever came first, and nobody else can have it."""

from __future__ import annotations

import asyncio

import pytest

from fairway.bench.against_fifo import FIFO_SERVER
from fairway.bench.engine import Watch
from fairway.bench.platform import bench_platform
from fairway.bench.run_log import RunLog
from fairway.bench.scenes import Napper, Scene
from fairway.core.errors import InvalidRequest
from fairway.rig.platform import SERVER
from fairway.runtime.settings import load

NAPS = 40
DONE_SECONDS_MAX = 120.0


@pytest.mark.parametrize(
    ("command", "runs_last"),
    [(FIFO_SERVER, True), pytest.param(SERVER, False, marks=pytest.mark.slow)],
)
async def test_who_came_second_waits_for_all_of_the_first(
    command: tuple[str, ...], runs_last: bool
) -> None:
    first, second = Napper(name="first", nap_seconds=0.05), Napper(name="second", nap_seconds=0.05)
    async with bench_platform(tenants=2) as platform:
        await platform.start_server(command=command)
        scene = Scene(platform, [first, second], "short")
        await scene.submit(first, NAPS)
        await scene.submit(second, 1)
        file = platform.folder / "runs.txt"
        worker = await platform.start_worker(1, FAIRWAY_BENCH_RUNS=str(file))
        async with asyncio.timeout(DONE_SECONDS_MAX):
            await Watch(platform).settle(NAPS + 1)
        await worker.stop()
        log = RunLog.read(file)
    assert len(log.spans) == NAPS + 1
    assert (log.spans[-1].who == "second") is runs_last


def test_there_is_no_setting_for_it() -> None:
    with pytest.raises(InvalidRequest, match="no setting FAIRWAY_SCHEDULER"):
        load({"FAIRWAY_SCHEDULER": "fifo"})
