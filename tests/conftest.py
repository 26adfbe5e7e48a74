"""Fixtures that every test may ask for: a real PostgreSQL, and a fresh database on it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, TextIO

import pytest
from hypothesis import settings
from tests import hung
from tests.postgres import Server, connected, fresh_database, serve
from tests.properties import tried

from fairway.store.connections import connection_cache
from fairway.store.connections.database import Connection, Database

settings.register_profile("any machine", tried())
settings.load_profile("any machine")

PURE = {"core", "wire"}  # folders of tests without a store, a process or a clock
TERMINAL = pytest.StashKey[TextIO]()

gc.disable()  # what reading thousands of tests makes stays for ever: nothing of it is rubbish


def pytest_configure(config: pytest.Config) -> None:
    """Keep the terminal at hand: while a test runs, what it prints goes elsewhere."""
    config.stash[TERMINAL] = os.fdopen(os.dup(2), "w")


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings: Any) -> Generator[None, object, object]:
    """Ring again: a task of the loop may have taken the first for its own failure."""
    result = yield
    if settings.method == "signal":
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, hung.AGAIN_SECONDS)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test hangs for ever; see tests/hung.py."""
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0] if mark and mark.args else item.config.getini("timeout"))
    watched = hung.watch(item.nodeid, seconds + hung.GRACE_SECONDS, item.config.stash[TERMINAL])
    try:
        return (yield)
    finally:
        watched.cancel()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soaks run when somebody asks for marks, as in `-m slow`; else they are left out.

    Where nothing but our own functions is at work, a busy machine is no reason to fail: such a
    test is not run again.
    """
    for item in items:
        if not PURE.isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.flaky(reruns=0))
    if config.option.markexpr:
        return
    soaks = [item for item in items if item.get_closest_marker("slow")]
    if soaks:
        items[:] = [item for item in items if item not in soaks]
        config.hook.pytest_deselected(items=soaks)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was read is not looked through again, neither during the tests nor at the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The session's PostgreSQL: embedded, or the one of FAIRWAY_TEST_DATABASE_URL."""
    with serve() as server:
        yield server


@pytest.fixture
async def database_url(postgres_server: Server) -> AsyncIterator[str]:
    """A database with the present schema and today's partitions."""
    async with fresh_database(postgres_server) as dsn:
        yield dsn


@pytest.fixture
async def empty_database_url(postgres_server: Server) -> AsyncIterator[str]:
    """A database with nothing in it."""
    async with fresh_database(postgres_server, empty=True) as dsn:
        yield dsn


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The pools of one server on a fresh database."""
    opened = await Database.open(database_url)
    yield opened
    opened.terminate()


@pytest.fixture(autouse=True)
def no_use_inside_a_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few uses inside uses, and a pool waits for itself: whoever does it, the test fails."""
    found: list[str] = []

    def refuse(what: str) -> None:
        found.append(what)
        raise RuntimeError(what)

    monkeypatch.setattr(connection_cache, "on_nested", refuse)
    yield
    assert found == []


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Connection]:
    """One connection with the settings of the hot path."""
    async with database.hot() as hot:
        yield hot


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[Connection]:
    """A connection that may change tables."""
    async with database.upkeep() as connection:
        yield connection


@pytest.fixture
async def other_connection(database_url: str) -> AsyncIterator[Connection]:
    """A second party on the same database."""
    async with connected(database_url) as connection:
        yield connection
