"""A server to talk to and an app that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.sdk.tiny_server import API_KEY, TinyServer

from fairway import App


@pytest.fixture
def server() -> Iterator[TinyServer]:
    server = TinyServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def app(server: TinyServer) -> AsyncIterator[App]:
    app = App("scoring", url=server.url, api_key=API_KEY, patience="3s")
    yield app
    await app.aclose()
    app.close()
