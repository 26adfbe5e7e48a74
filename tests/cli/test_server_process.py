"""The server of `fairway up` has another life also while the rest drains, and hears of that."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.processes import is_alive, send, until

from fairway.cli.processes import server_process, supervisor
from fairway.cli.processes.companions import WorkerWishes
from fairway.cli.processes.server_process import ServerProcess
from fairway.cli.processes.signals import Orders
from fairway.cli.processes.up import OneMachine, Started
from fairway.runtime.settings import Settings

#: Says that it is ready as soon as it may, if it has the address; notes who hears of what.
SERVER = """
import os, pathlib, signal, socket, time

def note(what):
    with open("notes", "a") as file:
        file.write(f"{what} {os.getpid()}\\n")

note("began")
while not pathlib.Path("may-be-ready").exists():
    time.sleep(0.01)
socket.socket(fileno=int(os.environ["FAIRWAY_LISTEN_FD"])).getsockname()
signal.signal(signal.SIGUSR1, lambda *_: note("closed"))
message = f"READY=1\\nSTATUS=\\nMAINPID={os.getpid()}\\n"
os.write(int(os.environ["FAIRWAY_READY_FD"]), message.encode())
while True:
    time.sleep(600)
"""


def noted(what: str) -> list[int]:
    path = Path("notes")
    lines = path.read_text().splitlines() if path.exists() else []
    return [int(pid) for word, pid in map(str.split, lines) if word == what]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ServerProcess]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ServerProcess(Settings(data_dir=folder), listener, Orders())
        server.start()
        try:
            yield server
        finally:
            await server.stop()
            assert listener.fileno() == -1, "who comes now is turned away"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server_process, "WORDS", ("program",))
    monkeypatch.setattr(supervisor, "PAUSE_FIRST_SECONDS", 0.01)
    (tmp_path / "program.py").write_text(SERVER)
    return tmp_path


async def test_one_that_dies_while_workers_drain_has_another_life(room: Path) -> None:
    (room / "may-be-ready").touch()
    async with serving(room) as server:
        assert await server.ready()
        server.close_intake()
        await until(lambda: len(noted("closed")) == 1, 60, "the first to hear of it")
        send(noted("began")[0], signal.SIGKILL)
        await until(lambda: len(noted("closed")) == 2, 60, "the second to hear of it")
    assert noted("closed") == noted("began")


async def test_one_that_begins_its_next_life_does_not_die_of_the_word(room: Path) -> None:
    """It hears of it when it is ready: before that it would not understand the signal."""
    (room / "may-be-ready").touch()
    async with serving(room) as server:
        assert await server.ready()
        (room / "may-be-ready").unlink()
        send(noted("began")[0], signal.SIGKILL)
        await until(lambda: len(noted("began")) == 2, 60, "the second life")
        server.close_intake()
        (room / "may-be-ready").touch()
        second = noted("began")[1]
        await until(lambda: noted("closed") == [second], 60, "the word, in time")
        assert is_alive(second)
        assert len(noted("began")) == 2


class Recovering:
    """A PostgreSQL that takes its time to start."""

    def __init__(self) -> None:
        self.began, self.was_given_up = asyncio.Event(), False

    async def start(self, report: object) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_given_up = True
            raise
        return ""


async def test_who_hurries_does_not_wait_for_a_database_to_recover(tmp_path: Path) -> None:
    machine = OneMachine(Settings(data_dir=tmp_path), Started((), (), WorkerWishes()))
    database: Any = Recovering()
    starting = asyncio.create_task(machine._start(database))
    await database.began.wait()
    machine._orders.stop()
    await asyncio.sleep(0)
    assert not starting.done(), "the first word waits for what has begun"
    machine._orders.hurry()
    async with asyncio.timeout(60):
        await starting
    assert database.was_given_up
