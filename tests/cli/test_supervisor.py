"""Programs are replaced when they crash, and end with all they started when they are told to."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.processes import is_alive, send, until

from fairway.cli.processes import supervisor
from fairway.cli.processes.signals import Orders
from fairway.cli.processes.supervisor import CANNOT_START, Place, Program, Supervisor

#: Notes its number, then does what it was told.
HEAD = "import os, pathlib, signal, subprocess, sys, time\n"
NOTE = "with open('lives', 'a') as file: file.write(f'{os.getpid()}\\n')\n"
LIVES = HEAD + NOTE + "time.sleep(600)\n"
STUBBORN = HEAD + "signal.signal(signal.SIGTERM, lambda *_: None)\n" + NOTE + "time.sleep(600)\n"
PARENT = (
    HEAD
    + "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    + "pathlib.Path('child').write_text(str(child.pid))\n"
    + NOTE
    + "time.sleep(600)\n"
)

Make = Callable[..., Program]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A program of this text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(supervisor, "PAUSE_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "PAUSE_MAX_SECONDS", 0.02)

    def made(text: str, final: frozenset[int] = frozenset({0})) -> Program:
        (tmp_path / "program.py").write_text(text)
        return Program(name="it", words=("program",), environment=dict(os.environ), final=final)

    return made


def lives() -> list[int]:
    path = Path("lives")
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def ends(status: int) -> str:
    return f"{HEAD}{NOTE}sys.exit({status})\n"


def child() -> int:
    return int(Path("child").read_text())


async def lived(count: int) -> list[int]:
    await until(lambda: len(lives()) >= count, 60, f"life {count}")
    return lives()


async def test_one_that_is_killed_has_another_life(make: Make) -> None:
    kept = Supervisor(Orders())
    place = kept.keep(make(LIVES))
    (first,) = await lived(1)
    assert place.pid == first
    send(first, signal.SIGKILL)
    second = (await lived(2))[1]
    await kept.stop()
    assert not is_alive(second)
    assert kept.places == []
    assert place.lives == 2


@pytest.mark.parametrize(
    ("status", "final", "lives_of_it"),
    [(0, {0}, 1), (CANNOT_START, {0}, 1), (3, {0, 3}, 1)],
    ids=["in peace", "cannot start", "as agreed"],
)
async def test_some_ends_are_final(
    make: Make, status: int, final: set[int], lives_of_it: int
) -> None:
    place = Place(make(ends(status), final=frozenset(final)), Orders())
    async with asyncio.timeout(60):
        assert await place.run() == status
    assert len(lives()) == lives_of_it


async def test_one_that_could_be_started_once_is_tried_again(make: Make) -> None:
    """Its sources are being edited, perhaps."""
    kept = Supervisor(Orders())
    kept.keep(make(LIVES))
    (first,) = await lived(1)
    make(ends(CANNOT_START))
    send(first, signal.SIGKILL)
    await lived(4)
    await kept.stop()


async def test_renewed_it_lives_again_without_a_pause(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_FIRST_SECONDS", 600.0)
    kept = Supervisor(Orders())
    place = kept.keep(make(LIVES))
    (first,) = await lived(1)
    place.renew()
    await lived(2)
    assert not is_alive(first)
    await kept.stop()


async def test_what_a_program_started_ends_with_it(make: Make) -> None:
    kept = Supervisor(Orders())
    kept.keep(make(PARENT))
    (first,) = await lived(1)
    pid = child()
    send(first, signal.SIGKILL)  # a crash, not a stop: nobody can tidy up
    await until(lambda: not is_alive(pid), 60, "the end of the child")
    await kept.stop()


@pytest.mark.parametrize("order", ["hurry", "quit"])
async def test_who_does_not_want_to_end_is_killed_when_it_is_urgent(
    make: Make, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "HURRIED_SECONDS", 0.1 if order == "hurry" else 600.0)
    orders = Orders()
    kept = Supervisor(orders)
    kept.keep(make(STUBBORN))
    (pid,) = await lived(1)
    stopping = asyncio.create_task(kept.stop())
    await asyncio.sleep(0.1)
    assert is_alive(pid), "it has been asked, and has time"
    getattr(orders, order)()
    async with asyncio.timeout(60):
        await stopping
    assert not is_alive(pid)


async def test_a_machine_without_room_for_a_process_is_asked_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refusals = supervisor._started, [BlockingIOError(11, "no room")] * 3

    async def started(program: Program) -> Process:
        if refusals:
            raise refusals.pop()
        return await real(program)

    monkeypatch.setattr(supervisor, "_started", started)
    kept = Supervisor(Orders())
    place = kept.keep(make(LIVES))
    await lived(1)
    assert (place.lives, kept.places) == (1, [place])
    await kept.stop()


async def test_one_can_leave_while_others_stay(make: Make) -> None:
    kept = Supervisor(Orders())
    program = make(LIVES)
    one, other = kept.keep(program), kept.keep(program)
    await lived(2)
    one.leave()
    async with asyncio.timeout(60):
        await kept.left(one)
    assert kept.places == [other]
    assert other.pid is not None
    await kept.stop()
