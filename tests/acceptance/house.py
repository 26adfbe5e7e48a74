"""A whole house of real processes on one database: servers, workers, keys, a ledger, a book."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
from tests.acceptance import cluster
from tests.acceptance.checker import Book, Ledger, Verdict, check
from tests.acceptance.load import Load
from tests.acceptance.processes import Program

from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.store.registry import tenants

#: Everything in seconds rather than minutes, so that a lost lease is found while a test waits.
QUICK = {
    "FAIRWAY_SHARD_COUNT": "1",
    "FAIRWAY_LEASE_SECONDS": "short=2,medium=3,long=3",
    "FAIRWAY_TERM_SECONDS": "1.5",
    "FAIRWAY_STORE_WAIT_SECONDS": "10",  # a busy machine may stand still for long
    "FAIRWAY_SERVER_PROCESSES": "1",  # on every machine
}
APP = "tests.acceptance.jobs:app"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server(Program):
    """`fairway server`; its writes carry its name in the trace."""

    def __init__(
        self,
        dsn: str,
        name: str,
        port: int,
        log: Path,
        settings: Mapping[str, str],
        *,
        anew: bool = False,
    ) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        own = f"{dsn}&acceptance.server={name}"
        words, given = ["server", "--port", str(port)], {**settings, "FAIRWAY_DATABASE_URL": own}
        super().__init__(words, given, log, anew=anew)

    async def ready(self, within_seconds: float = 60.0) -> float:
        """Wait until it answers that work can be accepted; says how long that took."""
        return await answers(f"{self.url}/readyz", within_seconds, self)


class House:
    def __init__(self, room: Path, dsn: str) -> None:
        self.room = room
        self.dsn = dsn
        self.book = Book(dsn)
        self.ledger = Ledger(room / "ledger.jsonl")
        self.servers: list[Server] = []
        self.programs: list[Program] = []
        self.api_key = self.worker_key = self.operator_key = ""
        storage = {"FAIRWAY_STORAGE_URL": f"file://{room}/objects"}
        #: Of servers that are started from now on.
        self.settings = QUICK | storage | cluster.SETTINGS
        self.worker_settings: dict[str, str] = {}
        self._http = httpx2.AsyncClient(timeout=10, trust_env=False)
        self._numbers = itertools.count(1)

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers]

    async def furnish(self) -> None:
        """Keys for a tenant and for workers, straight into the store; and the trace."""
        api, worker, operator = map(new_api_key, ("tenant", "worker", "operator"))
        connection = await asyncpg.connect(self.dsn)
        try:
            tenant = await tenants.add_tenant(connection, "acme", TenantSettings(tier="enterprise"))
            assert tenant is not None
            for key, owner in ((api, tenant.id), (worker, None), (operator, None)):
                stored = tenants.StoredKey(key.id, key.scope, owner, key.secret_hash)
                await tenants.add_key(connection, stored)
        finally:
            await connection.close()
        self.api_key, self.worker_key, self.operator_key = api.text, worker.text, operator.text
        await self.book.trace()

    async def found(self, shards: int) -> None:
        """With so many; before its first server starts, which does the same on one PostgreSQL."""
        self.settings = {**self.settings, "FAIRWAY_SHARD_COUNT": str(shards)}
        await cluster.found_anew(self.dsn, shards)

    # -- programs ----------------------------------------------------------------------------

    def start_server(self, port: int | None = None, *, anew: bool = False) -> Server:
        """Anew: as a shell starts it, for a test that measures its memory."""
        name = f"server-{next(self._numbers)}"
        log = self.room / f"{name}.log"
        server = Server(self.dsn, name, port or free_port(), log, self.settings, anew=anew)
        self.servers.append(server)
        self.programs.append(server)
        return server

    def restart(self, server: Server) -> Server:
        """Another life at the same address."""
        self.servers.remove(server)
        return self.start_server(int(server.url.rpartition(":")[2]))

    def start_worker(
        self,
        urls: Sequence[str] | None = None,
        pools: Sequence[str] = ("short=20", "medium=8", "long=2"),
        grace: float = 5.0,
        app: str = APP,
        more: Sequence[str] = (),
    ) -> Program:
        name = f"worker-{next(self._numbers)}"
        environment = {
            "FAIRWAY_URL": ",".join(urls or self.urls),
            "FAIRWAY_API_KEY": self.worker_key,
            "ACCEPTANCE_LEDGER": str(self.ledger.path),
            "FAIRWAY_DATA_DIR": str(self.room),
            **self.worker_settings,
        }
        arguments = ["worker", app, "--name", name, "--grace", str(grace), "--pool", *pools]
        arguments += more
        worker = Program(arguments, environment, self.room / f"{name}.log")
        self.programs.append(worker)
        return worker

    async def open(self, servers: int = 1, workers: int = 1, **options: Any) -> list[Program]:
        """Start so many of each; answers the workers once all are ready."""
        for _ in range(servers):
            self.start_server()
        started = [self.start_worker(**options) for _ in range(workers)]
        await asyncio.gather(
            *(server.ready() for server in self.servers),
            *(worker.says("worker ready") for worker in started),
        )
        return started

    async def close(self) -> None:
        for program in self.programs:
            program.bury()
        await self._http.aclose()

    # -- conversations -----------------------------------------------------------------------

    def load(self, **options: Any) -> Load:
        return Load(self.urls, self.api_key, **options)

    async def post(self, kind: str, pool: str, **payload: Any) -> str:
        body = {"type": kind, "pool": pool, "payload": payload}
        reply = await self.call("POST", "/v1/jobs", json=body)
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])

    async def view(self, job: str) -> dict[str, Any]:
        reply = await self.call("GET", f"/v1/jobs/{job}")
        assert reply.status_code == 200, reply.text
        view: dict[str, Any] = reply.json()
        return view

    async def finished(self, job: str, within_seconds: float = 20.0) -> dict[str, Any]:
        began = time.monotonic()
        while (view := await self.view(job))["finished_at"] is None:
            assert time.monotonic() - began < within_seconds, view
            await asyncio.sleep(0.05)
        return view

    async def call(
        self, method: str, path: str, url: str | None = None, **options: Any
    ) -> httpx2.Response:
        """As the tenant; to the first server unless told otherwise."""
        headers = {"authorization": f"Bearer {self.api_key}", **options.pop("headers", {})}
        target = (url or self.urls[0]) + path
        return await self._http.request(method, target, headers=headers, **options)

    async def metric(self, name: str) -> float:
        """One number of the first server's `/metrics`."""
        text = (await self.call("GET", "/metrics")).text
        found = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(found[0].split()[1]) if found else 0.0

    async def check(self, accepted: Sequence[str], drain_seconds: float = 30.0) -> Verdict:
        await self.book.drained(drain_seconds)
        return await check(self.book, self.ledger, accepted)


async def answers(url: str, within_seconds: float, whose: Program | None = None) -> float:
    """Wait until this address answers 200; says how long that took."""
    began = time.monotonic()
    async with httpx2.AsyncClient(timeout=2, trust_env=False) as http:
        while True:
            try:
                if (await http.get(url)).status_code == 200:
                    return time.monotonic() - began
            except httpx2.HTTPError:
                pass
            if whose is not None:
                assert whose.alive, f"{whose.log.name} ended:\n{whose.said[-3000:]}"
            waited = time.monotonic() - began
            assert waited < within_seconds, f"waited {waited:.1f} s for {url}"
            await asyncio.sleep(0.03)
