"""`fairway up`: one command, one folder, and everything in it survives."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.checker import Book, Ledger, check
from tests.acceptance.house import APP, QUICK, answers, free_port
from tests.acceptance.load import Load
from tests.acceptance.pace import Pace
from tests.acceptance.processes import ROOT, Program, command_of, is_alive, send, tree, until

from fairway.store.postgres.postmaster import read_pid_file


class Machine:
    """One data folder, and the `fairway up` that runs on it."""

    def __init__(self, room: Path) -> None:
        self.data = room / "data"
        self.log = room / "up.log"
        self.ledger = Ledger(room / "ledger.jsonl")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.up: Program | None = None

    async def start(self, app: str = APP) -> Program:
        environment = QUICK | {
            "FAIRWAY_DATA_DIR": str(self.data),
            "FAIRWAY_DRAIN_SECONDS": "2",
            "ACCEPTANCE_LEDGER": str(self.ledger.path),
        }
        self.log.unlink(missing_ok=True)
        self.up = Program(["up", app, "--port", str(self.port)], environment, self.log)
        await self.up.says("worker ready", within_seconds=90)
        await answers(f"{self.url}/readyz", 60)
        return self.up

    @property
    def keys(self) -> dict[str, str]:
        keys: dict[str, str] = json.loads((self.data / "client.json").read_text())
        return keys

    @property
    def postmaster(self) -> int:
        record = read_pid_file(self.data / "postgres/pgdata")
        return record.pid if record else 0

    @property
    def book(self) -> Book:
        record = read_pid_file(self.data / "postgres/pgdata")
        assert record is not None
        place = f"host={record.socket_dir}&port={record.port}"
        return Book(f"postgresql://fairway@/fairway?{place}")

    def load(self, **options: Any) -> Load:
        return Load([self.url], self.keys["api_key"], **options)

    def close(self) -> None:
        if self.up is not None:
            self.up.bury()


@pytest.fixture
async def machine(room: Path) -> AsyncIterator[Machine]:
    machine = Machine(room)
    yield machine
    machine.close()
    if (pid := machine.postmaster) and is_alive(pid):
        send(pid, signal.SIGQUIT)
        await until(lambda: not is_alive(pid), 10, "PostgreSQL's end")


async def test_a_fresh_folder_says_hello(machine: Machine, figures: dict[str, str]) -> None:
    began = time.monotonic()
    up = await machine.start("examples.hello:app")
    figures["first start of `fairway up`"] = f"worker ready after {time.monotonic() - began:.1f} s"
    assert f"Fairway is up at {machine.url}" in up.said
    for key in ("api_key", "operator_key"):
        assert re.search(rf"key +{machine.keys[key]}$", up.said, re.MULTILINE), up.said
    environment = os.environ | {"FAIRWAY_DATA_DIR": str(machine.data)}
    for name in ("FAIRWAY_URL", "FAIRWAY_API_KEY"):
        environment.pop(name, None)
    hello = await asyncio.to_thread(
        subprocess.run, [sys.executable, "examples/hello.py"], cwd=ROOT, env=environment,
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert hello.stdout.endswith("Hello, world! (attempt 1)\n"), hello.stderr
    await _stops_although_somebody_waits(machine, up)


async def _stops_although_somebody_waits(machine: Machine, up: Program) -> None:
    """A call that waits for a result is answered with what there is to say."""
    headers = {"authorization": f"Bearer {machine.keys['api_key']}", "prefer": "wait=60"}
    async with httpx2.AsyncClient(headers=headers, timeout=90, trust_env=False) as http:
        body = {"type": "nobody.runs.this", "payload": {}}
        post = asyncio.create_task(http.post(f"{machine.url}/v1/jobs", json=body))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        os.killpg(up.pid, signal.SIGINT)
        reply = await post
    assert (reply.status_code, reply.json()["state"]) == (202, "queued"), reply.text
    assert await up.ended(10) == 0
    assert time.monotonic() - began < 30, "somebody who waited held up the stop"
    assert "Traceback" not in up.said, up.said
    assert "Stopping: jobs that run have up to 2 s to finish." in up.said
    assert up.said.rstrip().endswith("Stopped."), up.said
    assert (machine.data / ".gitignore").read_text() == "*\n"


async def test_kill_9_of_the_postmaster_under_load(
    machine: Machine, figures: dict[str, str]
) -> None:
    up = await machine.start()
    await machine.book.trace()
    kills, outages = 3, []
    load = machine.load()
    load.call_seconds_max = 60  # who gives up sooner does not see how long it would have taken
    with Pace() as pace:
        async with load:
            for _ in range(kills):
                await load.has_accepted(30, within_seconds=60)
                outages.append(await _kill_postgres(machine, load))
    book = machine.book
    await book.drained(60)
    verdict = await check(book, machine.ledger, load.accepted)
    assert load.answers["503"] > 0, load.answers
    assert load.longest_seconds < 4 * pace.slowdown, f"a client was left hanging: {pace.slowdown}"
    assert set(load.answers) <= {"202", "503"}, (load.answers, errors_in(up.said))
    figures["kill -9 of the postmaster"] = (
        f"{verdict.jobs} jobs, {kills} kills, accepting again after {max(outages):.1f} s at most,"
        f" longest call {load.longest_seconds:.1f} s, {load.answers['503']} calls answered 503,"
        f" {verdict.lost_leases} leases lost, {verdict.ran_twice} jobs ran twice"
    )


def errors_in(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if '"level": "error"' in line)


async def _kill_postgres(machine: Machine, load: Load) -> float:
    """Kill it; answers how long it took until a job was accepted again."""
    killed = machine.postmaster
    killed_at = time.time()
    send(killed, signal.SIGKILL)
    await until(lambda: machine.postmaster not in (0, killed), 60, "another postmaster")
    await until(lambda: load.accepted_at[-1] > killed_at + 0.1, 60, "an accepted job")
    return next(at for at in load.accepted_at if at > killed_at + 0.1) - killed_at


async def test_ctrl_c_in_the_middle_of_work(machine: Machine, figures: dict[str, str]) -> None:
    up = await machine.start()
    await machine.book.trace()
    async with machine.load(rate=300, clients=16, run_seconds=lambda dice: 0.3) as load:
        await load.has_accepted(200)
    book, unfinished = machine.book, await machine.book.unfinished()
    processes = [up.pid, *tree(up.pid)]
    began = time.monotonic()
    os.killpg(up.pid, signal.SIGINT)  # as a terminal does
    assert await up.ended(20) == 0, up.said
    seconds = time.monotonic() - began
    assert not [pid for pid in processes if is_alive(pid)], "something was left running"
    assert "Traceback" not in up.said, up.said
    await machine.start()
    await book.drained(30)
    verdict = await check(book, machine.ledger, load.accepted)
    assert verdict.lost_leases == 0, "a clean stop lost a lease"
    figures["Ctrl-C on `fairway up`"] = (
        f"{verdict.jobs} jobs, {unfinished} unfinished when it came, stopped in {seconds:.1f} s,"
        f" {verdict.ran_twice} jobs ran twice"
    )


@pytest.mark.slow
async def test_ctrl_c_while_postgresql_is_down(machine: Machine) -> None:
    """Whatever runs at that moment has to be written down: PostgreSQL comes back for it."""
    up = await machine.start()
    await machine.book.trace()
    async with machine.load(run_seconds=lambda dice: 0.3) as load:
        await load.has_accepted(60)
    processes = [up.pid, *tree(up.pid)]
    send(machine.postmaster, signal.SIGKILL)
    os.killpg(up.pid, signal.SIGINT)
    assert await up.ended(20) == 0, up.said
    assert not [pid for pid in processes if is_alive(pid)], "something was left running"
    await machine.start()
    book = machine.book
    await book.drained(30)
    verdict = await check(book, machine.ledger, load.accepted)
    assert verdict.lost_leases == 0, "a clean stop lost a lease"


def server_of(up: Program) -> int:
    """The process that serves; 0 while there is none."""
    found = [pid for pid in tree(up.pid) if "fairway up-server" in command_of(pid)]
    return found[0] if found else 0


async def test_a_killed_server_is_replaced_and_a_killed_up_leaves_nothing_behind(
    machine: Machine,
) -> None:
    """Whoever connects between two servers waits in line; nobody is turned away."""
    up = await machine.start()
    killed = server_of(up)
    send(killed, signal.SIGKILL)
    await answers(f"{machine.url}/readyz", 60)
    assert server_of(up) not in (0, killed)
    processes = tree(up.pid)
    assert machine.postmaster in processes
    assert len(processes) >= 4  # a server, a keeper and its runner, PostgreSQL
    send(up.pid, signal.SIGKILL)
    await until(lambda: not (up.alive or any(map(is_alive, processes))), 60, "the end of all")
    await machine.start()
