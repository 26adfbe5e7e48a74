"""Programs that nobody reads, or that do not want to end: all that `fairway up` started ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.house import free_port
from tests.acceptance.processes import is_alive, send, tree, until
from tests.api.house import NO_TLS

from fairway.cli.processes import companions
from fairway.cli.processes.companions import Companions, Stops, WorkerWishes
from fairway.cli.processes.local_keys import LocalKeys
from fairway.runtime.settings import Settings

APP = """
from fairway import App
app = App("shop")
@app.job
def sell() -> None: ...
"""
STUBBORN = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
pathlib.Path("stubborn.pid").touch()
time.sleep(600)
"""


async def test_up_ends_with_all_its_processes_when_nobody_reads_along(
    tmp_path: Path, database_url: str
) -> None:
    """As by `fairway up shop:app 2>&1 | head`: the worker has its first line yet to say."""
    port = free_port()
    up = up_that_is_read_until(b"Fairway is up", tmp_path, port, database_url)
    pids: list[int] = []
    try:
        await until(lambda: has_worker(tmp_path, port), 120, "the worker")
        pids = tree(up.pid)
        up.send_signal(signal.SIGINT)
        await until(lambda: up.poll() is not None, 60, "the end of it")
        assert up.returncode == 0
        await until(lambda: not any(map(is_alive, pids)), 30, "the end of worker and runners")
    finally:
        for pid in filter(is_alive, (up.pid, *pids, *tree(up.pid))):
            send(pid, signal.SIGKILL)
        up.wait(10)


def up_that_is_read_until(
    words: bytes, folder: Path, port: int, database_url: str
) -> subprocess.Popen[bytes]:
    (folder / "shop.py").write_text(APP)
    up = subprocess.Popen(
        [sys.executable, "-m", "fairway", "up", "shop:app", "--port", str(port)],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "FAIRWAY_DATABASE_URL": database_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert up.stdout is not None
    while words not in up.stdout.readline():
        assert up.poll() is None
    up.stdout.close()
    return up


def has_worker(folder: Path, port: int) -> bool:
    try:
        keys = json.loads((folder / ".fairway/client.json").read_text())
        headers = {"authorization": f"Bearer {keys['operator_key']}"}
        url = f"http://127.0.0.1:{port}/v1/workers"
        return bool(httpx2.get(url, headers=headers, verify=NO_TLS).json()["workers"])
    except (OSError, ValueError, httpx2.HTTPError):
        return False


async def test_a_program_that_does_not_want_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second word, or when it is late; else `fairway up` would wait for it for ever."""
    monkeypatch.setattr(companions, "HURRIED_SECONDS", 0.2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    stops = Stops(asyncio.Event(), asyncio.Event(), asyncio.Event())
    beside = Companions(Settings(data_dir=tmp_path), stops, WorkerWishes())
    before = set(tree(os.getpid()))
    beside.start((), ["stubborn"], LocalKeys(url="", api_key="", worker_key="", operator_key=""))
    await until((tmp_path / "stubborn.pid").exists, 60, "its start")
    (pid,) = set(tree(os.getpid())) - before
    stops.stopping.set()
    await asyncio.sleep(0.1)
    assert is_alive(pid), "it has been asked, and has time"
    stops.hurried.set()
    async with asyncio.timeout(60):
        await stops.server.wait()
    assert not is_alive(pid)
