"""Folders and servers of the embedded PostgreSQL, for tests of its parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.postgres import open_room

from fairway.store.postgres.embedded import EmbeddedPostgres


@pytest.fixture
def room() -> Iterator[Path]:
    with open_room() as made:
        yield made


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    """One data folder for all tests that leave it whole: making one takes most of a second."""
    with open_room() as made:
        yield made / "data"


@pytest.fixture
async def postgres(data_dir: Path) -> AsyncIterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(data_dir)
    yield postgres
    await postgres.stop()


@pytest.fixture
async def fresh_postgres(room: Path) -> AsyncIterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(room / "data")
    yield postgres
    await postgres.stop()


@pytest.fixture
def said() -> list[str]:
    return []
