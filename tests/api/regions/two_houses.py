"""Two regions, each a real server on a database of its own, that can be stopped and started."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx2
from tests.api.house import House, open_house
from tests.postgres import Server, fresh_database

SECRET = "a secret of both regions"
Ask = Callable[[], Awaitable[Any]]


async def until(found: Ask, seconds: float = 20) -> Any:
    async with asyncio.timeout(seconds):
        while not (answer := await found()):  # noqa: ASYNC110  # another server's state
            await asyncio.sleep(0.05)
    return answer


class TwoRegions:
    """`eu` is the directory; each can be stopped and started again where it was."""

    def __init__(self, eu: str, us: str) -> None:
        self._dsns = {"eu": eu, "us": us}
        self._ports = {name: self._free_port() for name in self._dsns}
        self._open: dict[str, ExitStack] = {}
        self.houses: dict[str, House] = {}

    def _free_port(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port: int = taken.getsockname()[1]
            return port

    async def start(self, *names: str) -> None:
        await asyncio.gather(*(asyncio.to_thread(self._start, name) for name in names))

    def _start(self, name: str) -> None:
        urls = {one: f"http://127.0.0.1:{port}" for one, port in self._ports.items()}
        regions = ";".join(f"{one}={url}" for one, url in urls.items())
        listener = socket.create_server(("127.0.0.1", self._ports[name]))
        own: dict[str, Any] = {"region": name, "regions": regions, "region_secret": SECRET}
        own["lease_seconds"] = {"short": 60.0}  # workers by hand do not beat
        self._open[name] = stack = ExitStack()
        house = open_house(self._dsns[name], listener=listener, store_wait_seconds=2.0, **own)
        self.houses[name] = stack.enter_context(house)

    async def stop(self, *names: str) -> None:
        closing = [self._open.pop(name).close for name in names]
        await asyncio.gather(*(asyncio.to_thread(close) for close in closing))

    async def stop_all(self) -> None:
        await self.stop(*self._open)

    @asynccontextmanager
    async def caller(self, name: str, key: str = "") -> AsyncIterator[httpx2.AsyncClient]:
        house = self.houses[name]
        async with house.caller(key or house.operator_key) as client:
            yield client


@asynccontextmanager
async def two_regions(server: Server) -> AsyncIterator[TwoRegions]:
    async with fresh_database(server) as eu, fresh_database(server) as us:
        regions = TwoRegions(eu, us)
        try:
            await regions.start("eu", "us")
            yield regions
        finally:
            await regions.stop_all()
