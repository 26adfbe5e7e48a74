"""Spare interpreters: there before they are needed, none of them dead, and none left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest
from tests.worker.platform import fact

from fairway.worker.runners import spares
from fairway.worker.runners.spares import SPARES, SpareProcess, Spares


@pytest.fixture
async def stock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Spares]:
    monkeypatch.setattr(spares, "SPARES", SPARES)
    monkeypatch.setattr(spares, "RESTOCK_SECONDS", 0.01)
    made = Spares()
    yield made
    await made.stop()


async def test_the_first_is_started_at_once_and_others_are_there_for_the_next(
    stock: Spares,
) -> None:
    first = await stock.take()
    await fact(lambda: len(stock.pids) == SPARES)
    waiting = stock.pids
    second = await stock.take()
    assert second.process.pid in waiting, "one that has its start behind it"
    await fact(lambda: len(stock.pids) == SPARES)
    for one in (first, second):
        await one.finish()


async def test_one_that_died_while_it_waited_is_not_handed_out(stock: Spares) -> None:
    first = await stock.take()
    await fact(lambda: len(stock.pids) == SPARES)
    dead = stock._spares[-1]
    os.kill(dead.process.pid, signal.SIGKILL)
    await dead.process.wait()
    taken = await stock.take()
    assert taken.process.pid != dead.process.pid
    assert taken.process.returncode is None
    assert dead.end.fileno() == -1, "its pipe is closed"
    for one in (first, taken):
        await one.finish()


async def test_a_spare_ends_with_its_pipe_and_one_that_does_not_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = await SpareProcess.start()
    await one.finish()
    assert one.process.returncode == 0
    stuck = await SpareProcess.start()
    os.kill(stuck.process.pid, signal.SIGSTOP)
    monkeypatch.setattr(spares, "END_SECONDS_MAX", 0.05)
    await stuck.finish()
    assert stuck.process.returncode == -signal.SIGKILL


async def test_none_outlives_the_stock(stock: Spares) -> None:
    first = await stock.take()
    await fact(lambda: len(stock.pids) == SPARES)
    pids = stock.pids
    await first.finish()
    await stock.stop()
    assert stock.pids == set()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_where_no_process_can_be_started_nothing_is_left_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        await SpareProcess.start()
    assert len(os.listdir("/proc/self/fd")) <= before
