"""A worker that is told to end does so in time: whatever runs, and whoever is gone."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.processes import is_alive, name_of, send, tree, until
from tests.worker.platform import APP, Platform, fact, job_id, lease
from tests.worker.test_processes import has_begun

from fairway.worker.exchange import report_delay
from fairway.worker.keeper import Keeper
from fairway.worker.options import WorkerOptions

ODD = "tests.worker.odd_jobs:app"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_spares() -> None:
    """Here they are, and must end with their worker."""


def keeper_for(platform: Platform, **more: Any) -> Keeper:
    options: dict[str, Any] = {"target": ODD, "slots": {"short": 8, "medium": 8}} | more
    return Keeper(WorkerOptions(name="one", urls=[platform.url], api_key="key", **options))


async def ended(life: asyncio.Task[None], within_seconds: float = 60) -> None:
    async with asyncio.timeout(within_seconds):
        await life


async def test_told_twice_it_waits_for_no_job() -> None:
    async with Platform().open() as platform:
        platform.leases = [lease(1, payload={"seconds": 600})]
        keeper = keeper_for(platform, grace_seconds=600)
        life = asyncio.create_task(keeper.run())
        await fact(lambda: has_begun(platform, 1))
        keeper.stop()
        await asyncio.sleep(0.05)
        assert not life.done()
        keeper.hurry()
        await ended(life)
    assert platform.heard[job_id(1)].kind == "returned"
    assert platform.calls[-1].goodbye


async def test_nobody_waits_for_servers_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of 4 MB would have a minute on a slow link; there is no link any more."""
    monkeypatch.setattr(report_delay, "SILENCE_SECONDS_MAX", 0.5)
    async with Platform().open() as platform:
        platform.judge = lambda request: 500 if request.reports else 200
        platform.leases = [lease(1, "echo", "medium", {"text": "x" * 4_000_000})]
        keeper = keeper_for(platform, target=APP, grace_seconds=0.1)
        life = asyncio.create_task(keeper.run())
        await fact(lambda: any(call.reports for call in platform.calls))
        platform.judge = lambda request: 500
        keeper.stop()
        await ended(life, within_seconds=30)


async def test_nobody_waits_for_an_app_that_takes_long_to_load(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import pathlib, time; pathlib.Path(__file__ + '.x').touch(); time.sleep(600)")
    keeper = keeper_for(Platform(), target=f"{slow}:app")
    life = asyncio.create_task(keeper.run())
    await fact(Path(f"{slow}.x").exists)
    keeper.stop()
    await ended(life)


async def test_a_worker_without_reader_and_server_ends_with_its_runners(
    tmp_path: Path,
) -> None:
    """Its log goes into a pipe that nobody reads, from its first line on."""
    async with Platform().open() as platform:
        worker = worker_that_nobody_reads(platform, tmp_path)
        pids: list[int] = []
        try:
            await fact(lambda: len(platform.calls) > 1)
            platform.judge = lambda request: 500
            pids = tree(worker.pid)
            assert "fairway-runner" in map(name_of, pids)
            worker.send_signal(signal.SIGTERM)
            await until(lambda: worker.poll() is not None, 30, "the end of the worker")
            assert worker.returncode == 0
            await until(lambda: not any(map(is_alive, pids)), 30, "the end of its runners")
        finally:
            for pid in filter(is_alive, (worker.pid, *pids, *tree(worker.pid))):
                send(pid, signal.SIGKILL)
            worker.wait(10)


def worker_that_nobody_reads(platform: Platform, data: Path) -> subprocess.Popen[bytes]:
    words = ("worker", ODD, "--url", platform.url, "--pool", "short")
    worker = subprocess.Popen(
        [sys.executable, "-m", "fairway", *words],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "FAIRWAY_API_KEY": "k", "FAIRWAY_DATA_DIR": str(data)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert worker.stdout is not None
    worker.stdout.close()
    return worker
