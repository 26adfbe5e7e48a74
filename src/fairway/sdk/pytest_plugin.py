"""Fixtures for tests of jobs, found by pytest through the entry point `fairway`.

Importing this file imports pytest and the SDK, never the server. Each fixture imports what it
needs when a test asks for it; fixtures that start a real server belong below these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairway.sdk.testing.clock import Clock
    from fairway.sdk.testing.memory import MemoryDoor


@pytest.fixture
def fairway_inline() -> Iterator[MemoryDoor]:
    """Every enqueue of the test runs its job at once."""
    from fairway.sdk.testing.modes import inline

    with inline() as mode:
        yield mode


@pytest.fixture
def fairway_manual() -> Iterator[MemoryDoor]:
    """Every enqueue of the test is kept until `fairway.testing.drain()`."""
    from fairway.sdk.testing.modes import manual

    with manual() as mode:
        yield mode


@pytest.fixture
def fairway_clock(fairway_manual: MemoryDoor) -> Clock:
    """The clock of manual mode, which it opens."""
    return fairway_manual.clock
