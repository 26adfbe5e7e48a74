"""A platform to measure: PostgreSQL, a server and workers, real processes in a folder that goes.

All parts share this machine's cores with the load that measures them; fsync stays on.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from fairway.rig.load_client import LoadClient
from fairway.rig.program import LOOK_SECONDS, READY_SECONDS, Program, Programs, free_port
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import load
from fairway.services.jobs.far_runs import no_peers
from fairway.services.platform import Platform

NOTHING: Mapping[str, str] = MappingProxyType({})
SERVER = ("fairway", "server")


class MeasuredPlatform:
    """Its PostgreSQL runs and has the schema; servers and workers are started as they are needed.

    `settings` are FAIRWAY_… variables of every server.
    """

    def __init__(self, programs: Programs, dsn: str, settings: Mapping[str, str]) -> None:
        self.programs = programs
        self.folder = programs.folder
        self.dsn = dsn
        self.settings = settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._operator, self._worker = new_api_key("operator"), new_api_key("worker")
        self.operator_key = self._operator.text
        self._clients: dict[str, LoadClient] = {}

    async def prepare(self) -> None:
        """The schema, and the keys that come before any tenant."""
        platform = await Platform.prepare(self.dsn, load(self.settings), SystemClock(), no_peers)
        try:
            for key in (self._operator, self._worker):
                await platform.directory.add_key(key, None)
        finally:
            await platform.database.close()

    def client(self, key: str = "") -> LoadClient:
        """The way in with this key."""
        if key not in self._clients:
            self._clients[key] = LoadClient(self.url, key)
        return self._clients[key]

    async def metric(self, name: str) -> float:
        """One metric of `/metrics`, summed over its labels; no other is looked at for that."""
        text = (await self.client().ask("GET", f"/metrics?name[]={name}")).body.decode()
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.MULTILINE)
        return sum(map(float, found))

    async def start_server(
        self, settings: Mapping[str, str] = NOTHING, command: tuple[str, ...] = SERVER
    ) -> Program:
        """Returns when it takes work. `command` is what follows `python -m`."""
        program = await self.programs.start(
            "server",
            *command,
            **{"FAIRWAY_SERVER_PROCESSES": "1", **self.settings, **settings},
            FAIRWAY_PORT=str(self.port),
            FAIRWAY_DATABASE_URL=self.dsn,
            FAIRWAY_DATA_DIR=str(self.folder / "data"),
        )
        async with asyncio.timeout(READY_SECONDS):
            while not await self._is_ready():
                program.must_live()
                await asyncio.sleep(LOOK_SECONDS)
        return program

    async def _is_ready(self) -> bool:
        try:
            return (await self.client().ask("GET", "/readyz")).status == 200
        except OSError:
            return False

    async def start_worker_of(
        self, app: str, pools: Mapping[str, int], name: str, grace_seconds: float, **more: str
    ) -> Program:
        """Returns at once; `worker ready` is what it says when it is."""
        slots = [f"{pool}={count}" for pool, count in pools.items()]
        return await self.programs.start(
            name,
            "fairway",
            "worker",
            app,
            "--name",
            name,
            "--grace",
            f"{grace_seconds:g}",
            "--pool",
            *slots,
            FAIRWAY_URL=self.url,
            FAIRWAY_API_KEY=self._worker.text,
            **more,
        )

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


MeasuredT = TypeVar("MeasuredT", bound=MeasuredPlatform)


@asynccontextmanager
async def fresh(
    kind: type[MeasuredT], settings: Mapping[str, str] = NOTHING
) -> AsyncIterator[MeasuredT]:
    """A platform of this kind, without a server yet; everything in it is gone afterwards."""
    folder = _folder()
    programs = Programs(folder)
    try:
        platform = kind(programs, await start_postgres(programs, "postgres"), settings)
        await platform.prepare()
        try:
            yield platform
        finally:
            platform.close()
    finally:
        await programs.close()
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairway-rig-"))
    folder.chmod(0o755)  # PostgreSQL's own user must be able to enter
    return folder


async def start_postgres(programs: Programs, name: str) -> str:
    """An embedded PostgreSQL in a folder of this name; where to connect."""
    folder = str(programs.folder / name)
    program = await programs.start(name, "fairway", "postgres", "--data-dir", folder)
    said = await program.says("postgresql://")
    return next(line for line in said.splitlines() if line.startswith("postgresql://"))
