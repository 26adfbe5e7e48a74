"""A furnished house for each test, and the figures of all tests at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance import cluster
from tests.acceptance.cluster import Store, house_database, serve_cluster
from tests.acceptance.house import House
from tests.postgres import open_room

from fairway.worker.runners.spares import SPARES

FIGURES = pytest.StashKey[dict[str, str]]()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    figures = config.stash.get(FIGURES, {})
    if figures:
        terminalreporter.section("acceptance figures")
        for name, value in figures.items():
            terminalreporter.write_line(f"{name:<44} {value}")


@pytest.fixture
def figures(pytestconfig: pytest.Config) -> dict[str, str]:
    """Measured here, shown at the end of the run."""
    return pytestconfig.stash.setdefault(FIGURES, {})


@pytest.fixture
def room() -> Iterator[Path]:
    with open_room() as made:
        yield made


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Where houses stand: on one PostgreSQL, or on the cluster that was given."""
    if not cluster.URL:
        yield request.getfixturevalue("postgres_server")
        return
    with serve_cluster() as served:
        yield served


@asynccontextmanager
async def furnished(room: Path, store: Store) -> AsyncIterator[House]:
    async with house_database(store) as dsn:
        house = House(room, dsn)
        await house.furnish()
        try:
            yield house
        finally:
            await house.close()


@pytest.fixture
async def house(room: Path, store: Store) -> AsyncIterator[House]:
    async with furnished(room, store) as house:
        yield house


@pytest.fixture
def spare_runners(house: House) -> None:
    """The house's workers keep spare interpreters, as they do elsewhere: runners are killed."""
    house.worker_settings = {**house.worker_settings, "ACCEPTANCE_SPARES": str(SPARES)}


@pytest.fixture
async def next_door(store: Store) -> AsyncIterator[House]:
    """A second house, for what is compared at the same time on the same machine."""
    with open_room() as room:
        async with furnished(room, store) as house:
            yield house
