"""Programs that nobody reads, or that do not want to end: all that `fairway up` started ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
from tests.acceptance.house import free_port
from tests.acceptance.processes import is_alive, send, tree, until
from tests.api.house import NO_TLS

APP = """
from fairway import App
app = App("shop")
@app.job
def sell() -> None: ...
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


PARENT = """
import os, subprocess, sys, time
words = [sys.executable, "-m", "fairway", "worker", "shop:app"]
environment = {**os.environ, "FAIRWAY_DIE_WITH_PARENT": str(os.getpid())}
worker = subprocess.Popen(words, env=environment, start_new_session=True)
print(worker.pid, flush=True)
time.sleep(600)
"""
NOBODY = {"FAIRWAY_URL": "http://127.0.0.1:9", "FAIRWAY_API_KEY": "fw_worker_x"}


async def test_a_worker_whose_output_is_closed_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    """With its runners; however the parent ended, and though no server answers."""
    parent, worker = parent_of_a_worker(tmp_path)
    pids = [worker]
    try:
        await until(lambda: len(tree(worker)) >= 2, 60, "its runner")
        pids += tree(worker)
        parent.kill()
        parent.wait(10)
        await until(lambda: not any(map(is_alive, pids)), 60, "the end of worker and runners")
    finally:
        parent.kill()
        for pid in filter(is_alive, (*pids, *tree(worker))):
            send(pid, signal.SIGKILL)


def parent_of_a_worker(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Nobody reads what either says."""
    (folder / "shop.py").write_text(APP)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **NOBODY},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.stdout.close()
    return parent, worker


def test_a_worker_whose_parent_is_gone_before_it_began_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    ran = subprocess.run(
        [sys.executable, "-m", "fairway", "worker", "shop:app"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", **NOBODY, "FAIRWAY_DIE_WITH_PARENT": str(2**22)},
        capture_output=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
