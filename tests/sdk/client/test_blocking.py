"""Synchronous code drives the same client, from any thread, after a fork, inside a loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.sdk.tiny_server import TinyServer

from fairway import App, Job
from fairway.sdk.client import blocking


@pytest.fixture
def double(app: App) -> Job[[int], int]:
    @app.job
    def double(number: int) -> int:
        return number * 2

    return double


def test_the_whole_api_without_async(double: Job[[int], int], server: TinyServer) -> None:
    handle = double.enqueue(2)
    assert handle.status().state == "queued"
    server.finish(handle.id, result=4)
    assert handle.result(timeout=5) == 4
    assert double.enqueue(3).cancel().state == "cancelled"
    assert len(double.enqueue_many([(1,), (2,)])) == 2
    assert len(double.options(priority=1).enqueue_many([(1,)])) == 1


def test_events_without_async(double: Job[[int], int], server: TinyServer) -> None:
    server.stream = [b'data: {"n": 1}\n\ndata: {"state": "succeeded"}\n\n']
    events = list(double.enqueue(2).events())
    assert [event.data for event in events] == [{"n": 1}, {"state": "succeeded"}]


def test_events_may_be_left_early(double: Job[[int], int], server: TinyServer) -> None:
    server.stream = [b'data: {"n": 1}\n\ndata: {"state": "succeeded"}\n\n']
    assert next(iter(double.enqueue(2).events())).data == {"n": 1}


def test_waiting_for_the_next_one_may_be_interrupted() -> None:
    asked, closed = threading.Event(), threading.Event()

    async def silent() -> AsyncIterator[int]:
        try:
            asked.set()
            await asyncio.sleep(3600)
            yield 1
        finally:
            await asyncio.sleep(0.05)  # as a connection takes a moment to be let go
            closed.set()

    def interrupt() -> None:
        asked.wait(30)
        signal.pthread_kill(main, signal.SIGUSR1)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    main, before = threading.get_ident(), signal.signal(signal.SIGUSR1, interrupted)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            list(blocking.iterate(silent()))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closed.is_set()


def test_one_driver_serves_all_threads(double: Job[[int], int], server: TinyServer) -> None:
    with ThreadPoolExecutor(8) as executor:
        handles = list(executor.map(double.enqueue, range(40)))
    assert len({handle.id for handle in handles}) == 40
    named = [thread for thread in threading.enumerate() if thread.name == "fairway-blocking"]
    assert len(named) == 1


async def test_it_works_under_a_running_loop(double: Job[[int], int]) -> None:
    assert double.enqueue(1).id


def test_work_on_the_driver_may_call_back_in() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return blocking.run(inner()) + 1

    assert blocking.run(outer()) == 2


FORKING = """
import os, sys
from fairway import App
app = App("x", url=sys.argv[1], api_key=sys.argv[2])

@app.job()
def noop() -> None: ...

noop.enqueue()
child = os.fork()
noop.enqueue()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_makes_its_own_driver(server: TinyServer) -> None:
    command = [sys.executable, "-c", FORKING, server.url, "fk_test"]
    done = subprocess.run(command, timeout=60, env={**os.environ}, check=False)
    assert done.returncode == 0
    assert len(server.jobs) == 3
