"""A platform to measure: PostgreSQL, a server and a worker, real processes in a folder that goes.

All parts share this machine's cores with the load that measures them; fsync stays on.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from fairway.core.keys import ApiKey
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import Settings
from fairway.services.platform import Platform
from fairway.store.postgres.embedded import EmbeddedPostgres

RATE = 1_000_000  # of each tenant: what is measured is not the limit
SKEW = 100.0  # the busiest tenant submits this many times as much as the quietest


class House:
    def __init__(self, folder: Path, dsn: str, port: int) -> None:
        self.folder = folder
        self.dsn = dsn
        self.port = port
        self.keys: list[str] = []
        self.worker_key = ""
        self._weights: list[float] = []
        self._processes: list[asyncio.subprocess.Process] = []
        self._dice = random.Random(7)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- tenants -----------------------------------------------------------------------------

    async def populate(self, tenants: int) -> None:
        """Tenants with keys, written in bulk: what is measured begins at the front door."""
        keys = [new_api_key("tenant") for _ in range(tenants)]
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.copy_records_to_table(
                "tenants",
                columns=["id", "name", "rate_per_second", "burst"],
                records=[(n + 1, f"tenant-{n}", RATE, RATE) for n in range(tenants)],
            )
            worker = new_api_key("worker")
            records = [_row(key, n + 1) for n, key in enumerate(keys)] + [_row(worker, None)]
            await connection.copy_records_to_table(
                "api_keys", columns=["id", "scope", "tenant", "secret_hash"], records=records
            )
        finally:
            await connection.close()
        self.keys = [key.text for key in keys]
        self.worker_key = worker.text
        self._weights = [SKEW ** (-n / max(1, tenants - 1)) for n in range(tenants)]

    async def set_terms(self, numbers: Iterable[int], **columns: Any) -> None:
        """Terms of these tenants, straight into the store; servers read them within seconds."""
        changes = ", ".join(f"{name} = ${place + 2}" for place, name in enumerate(columns))
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(
                f"UPDATE tenants SET {changes}, updated_at = now() WHERE id = ANY($1::int[])",
                [number + 1 for number in numbers], *columns.values(),
            )  # fmt: skip
        finally:
            await connection.close()

    def draw(self, count: int) -> list[int]:
        """Tenant numbers, the busy ones more often."""
        return self._dice.choices(range(len(self.keys)), self._weights, k=count)

    # -- processes ---------------------------------------------------------------------------

    async def start_server(self, **environment: str) -> asyncio.subprocess.Process:
        process = await self._start(
            "server", "--port", str(self.port), FAIRWAY_DATABASE_URL=self.dsn,
            FAIRWAY_DATA_DIR=str(self.folder / "data"), **environment,
        )  # fmt: skip
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(300):
                try:
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return process
                except httpx2.HTTPError:
                    pass
                await asyncio.sleep(0.05)
        raise RuntimeError(f"The server did not become ready; see {self.folder}/server.log")

    async def start_worker(
        self, slots: int, pool: str = "short", **environment: str
    ) -> asyncio.subprocess.Process:
        return await self._start(
            "worker", "fairway.bench.jobs:app", "--pool", f"{pool}={slots}", "--grace", "0.5",
            FAIRWAY_URL=self.url, FAIRWAY_API_KEY=self.worker_key, **environment,
        )  # fmt: skip

    async def _start(self, *words: str, **environment: str) -> asyncio.subprocess.Process:
        with (self.folder / f"{words[0]}.log").open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "fairway", *words,
                env=os.environ | environment, stdout=file, stderr=file,
            )  # fmt: skip
        self._processes.append(process)
        return process

    async def stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()

    async def close(self) -> None:
        for process in reversed(self._processes):
            await self.stop(process)

    # -- what the server says of itself ------------------------------------------------------

    async def counter(self, client: httpx2.AsyncClient, name: str) -> float:
        text = (await client.get(f"{self.url}/metrics")).text
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.MULTILINE)
        return sum(float(value) for value in found)


def _row(key: ApiKey, tenant: int | None) -> tuple[str, str, int | None, bytes]:
    return key.id, key.scope, tenant, key.secret_hash


@asynccontextmanager
async def house(tenants: int) -> AsyncIterator[House]:
    """A fresh house; everything in it is gone afterwards."""
    folder = _folder()
    postgres = EmbeddedPostgres(folder / "postgres")
    dsn = await postgres.start(lambda line: None)
    found = House(folder, dsn, _free_port())
    try:
        platform = await Platform.prepare(dsn, Settings(), SystemClock())
        await platform.database.close()
        await found.populate(tenants)
        yield found
    finally:
        await found.close()
        await postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairway-bench-"))
    folder.chmod(0o755)  # PostgreSQL's own user must be able to enter
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
