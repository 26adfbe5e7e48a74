"""A real server for the commands that talk to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.api.house import open_house


@pytest.fixture
def server_url(database_url: str) -> Iterator[str]:
    with open_house(database_url) as house:
        yield house.url
