"""A real server on a loopback port, in a thread with its own event loop, and people to call it.

One house serves many tests: each makes its own tenant and its own job types, so that none sees
another's jobs. The platform behind it can be looked at, never stepped around.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvloop
from tests.postgres import Server, own_database

from fairway.cli.processes.listening import Listeners
from fairway.cli.processes.serve import serve
from fairway.core.webhooks.webhook import delivery_id
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import Settings
from fairway.services.platform import Platform

#: Shared by all clients: making one loads every certificate of the machine.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class House:
    """One running server: its address, its operator's key, and what is inside."""

    def __init__(self, dsn: str, *, listener: socket.socket | None = None, **settings: Any) -> None:
        self.dsn = dsn
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._room = tempfile.TemporaryDirectory()  # its own, as of a server on its own machine
        own: dict[str, Any] = {"port": self.port, "data_dir": Path(self._room.name)}
        own["shard_count"] = 1
        own["store_wait_seconds"] = 15.0  # a busy machine may stand still for long
        self._settings = Settings(**(own | settings))
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.platform: Platform
        self.operator_key = ""
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="house")

    def open(self) -> None:
        self._thread.start()
        self._ready.wait(30)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)
        self._room.cleanup()
        assert not self._thread.is_alive(), "the server did not stop"

    def _run(self) -> None:
        try:
            uvloop.run(self._serve())  # as the program does
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        listeners = Listeners(self._listener)
        await serve(self.dsn, self._settings, listeners, self._stopping, self._greet)

    async def _greet(self, platform: Platform) -> None:
        self.platform = platform
        key = new_api_key("operator")
        await platform.directory.add_key(key, None)
        self.operator_key = key.text
        await _until_owned(platform)
        self._ready.set()

    def inside(self, work: Callable[[Platform], Awaitable[Any]]) -> Any:
        """Do something on the server's own loop."""

        async def run() -> Any:
            return await work(self.platform)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    def waiting_test(self, webhook: str) -> str:
        """A test of a webhook that is switched off, written before it was: nothing is sent."""

        async def write(platform: Platform) -> int:
            async with platform.database.background() as connection:
                number: int = await connection.fetchval(
                    "UPDATE webhooks SET tests = tests + 1 WHERE id = $1 RETURNING -tests", webhook
                )
                await connection.execute(
                    "INSERT INTO webhook_deliveries"
                    " (shard, tenant, webhook, number, kind, body, state, next_at) SELECT shard,"
                    " tenant, id, $2, 'webhook.test', '{}', 0, now() FROM webhooks WHERE id = $1",
                    webhook,
                    number,
                )
            return number

        return delivery_id(webhook, self.inside(write))

    # -- people ------------------------------------------------------------------------------

    def caller(self, key: str | None = None) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=30, trust_env=False, verify=NO_TLS
        )

    def new_key(self, body: dict[str, Any]) -> str:
        return str(self._operate("/v1/keys", body)["api_key"])

    def new_tenant(self, **terms: Any) -> tuple[str, str]:
        """A tenant of a test's own: its name and its key."""
        added = self._operate("/v1/tenants", {"name": f"t-{secrets.token_hex(6)}", **terms})
        return added["name"], added["api_key"]

    def _operate(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.operator_key}"}
        with httpx2.Client(base_url=self.url, headers=headers, verify=NO_TLS) as client:
            reply = client.post(path, json=body)
        assert reply.status_code == 201, reply.text
        found: dict[str, Any] = reply.json()
        return found


async def _until_owned(platform: Platform) -> None:
    while not (platform.dispatcher.shards.open or platform.ownership.has_peers):  # noqa: ASYNC110  # the server announces it in a log
        await asyncio.sleep(0.01)


@contextmanager
def open_house(dsn: str, **settings: Any) -> Iterator[House]:
    house = House(dsn, **settings)
    house.open()
    try:
        yield house
    finally:
        house.close()


@contextmanager
def own_house(server: Server, name: str, **settings: Any) -> Iterator[House]:
    """A server with a database of this name that nobody else uses."""
    with own_database(server, name) as dsn, open_house(dsn, **settings) as house:
        yield house


def problem(reply: httpx2.Response, status: int, code: str, pointer: str | None = None) -> Any:
    """Assert that the reply is this problem, in every way a problem must be; answers its body."""
    assert reply.status_code == status, (reply.status_code, reply.text)
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    body = reply.json()
    assert body["code"] == code, body
    assert body["status"] == status
    assert body["type"] == f"/problems/{code.lower().replace('_', '-')}"
    assert body["title"]
    assert len(body["request_id"]) == 16
    if pointer is not None:
        assert [error["pointer"] for error in body["errors"]] == [pointer], body
    if status in (429, 503):
        assert int(reply.headers["retry-after"]) >= 1
    return body


async def first_events(client: httpx2.AsyncClient, count: int) -> list[dict[str, Any]]:
    """The first of a tenant's log, once there are so many: they come a moment after the act."""
    async with asyncio.timeout(30):
        while True:
            reply = await client.get(f"/v1/events?limit={count}")
            assert reply.status_code == 200, reply.text
            found: list[dict[str, Any]] = reply.json()["events"]
            if len(found) == count:
                return found
            await asyncio.sleep(0.02)
