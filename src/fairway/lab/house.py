"""A platform for one experiment: `fairway up` and workers as programs, in a folder that goes.

The lab knows them as anybody does: by their commands, the keys in `client.json` and the HTTP API.
Everything shares this machine with the load that measures it; fsync stays on.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from fairway import FairwayError
from fairway.lab.door import Door
from fairway.runtime.parent_death import die_with_parent

READY_SECONDS = 90.0
#: Where `lab.score` runs: a pool by resource, with the terms of the medium one. In a time-scaled
#: run its jobs take milliseconds, and the platform would rightly move them to the short pool.
POOL = "lab"
PAGE = 200


class Keys(msgspec.Struct):
    """`client.json`, as `fairway up` leaves it."""

    url: str
    api_key: str
    worker_key: str
    operator_key: str


class Seen(msgspec.Struct):
    """What the lab reads of a job; the rest of the view is left alone."""

    id: str
    type: str
    pool: str
    state: str
    attempts: int
    deliveries: int
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: Any = None


class Page(msgspec.Struct):
    jobs: list[Seen]
    next_cursor: str | None = None


class HouseFailed(FairwayError):
    """A program of the house did not start, or ended by itself."""


class House:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self.keys = Keys(url=self.url, api_key="", worker_key="", operator_key="")
        self.programs: list[asyncio.subprocess.Process] = []
        self._doors: dict[str, Door] = {}

    # -- doors -------------------------------------------------------------------------------

    def door(self, key: str | None = None) -> Door:
        """The way in with this key; by default, the first tenant's."""
        key = self.keys.api_key if key is None else key
        if key not in self._doors:
            self._doors[key] = Door(self.url, key)
        return self._doors[key]

    async def add_tenant(self, name: str, terms: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Its key. `terms` are those of `POST /v1/tenants`: tier, weight, limits."""
        operator = self.door(self.keys.operator_key)
        answer = await operator.send_json("POST", "/v1/tenants", {"name": name, **terms})
        if answer.status != 201:
            raise HouseFailed(f"no tenant {name}: {answer.status} {answer.body[:300]!r}")
        key: str = msgspec.json.decode(answer.body)["api_key"]
        return key

    async def jobs(self, key: str | None = None, **filters: str) -> list[Seen]:
        """Every job of a tenant that these filters leave, newest first."""
        query = "&".join(f"{name}={quote(value)}" for name, value in filters.items())
        found: list[Seen] = []
        cursor: str | None = ""
        while cursor is not None:
            path = f"/v1/jobs?limit={PAGE}&{query}" + (f"&cursor={cursor}" if cursor else "")
            answer = await self.door(key).ask("GET", path)
            if answer.status != 200:
                raise HouseFailed(f"GET {path}: {answer.status} {answer.body[:300]!r}")
            page = msgspec.json.decode(answer.body, type=Page)
            found += page.jobs
            cursor = page.next_cursor
        return found

    async def metric(self, name: str) -> float:
        """One metric of `/metrics`, summed over its labels."""
        text = (await self.door(self.keys.operator_key).ask("GET", "/metrics")).body.decode()
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.MULTILINE)
        return sum(map(float, found))

    # -- programs ----------------------------------------------------------------------------

    async def start(self, **settings: str) -> None:
        port = self.url.rpartition(":")[2]
        data = self.folder / "data"
        words = ("up", "--no-worker", "--port", port, "--data-dir", str(data))
        up = await self.run("up", *words, **settings)
        await self.says(up, "up", "Fairway is up")
        self.keys = msgspec.json.decode((data / "client.json").read_bytes(), type=Keys)
        operator = self.door(self.keys.operator_key)
        answer = await operator.send_json("PUT", f"/v1/pools/{POOL}", {"pickup_target_seconds": 5})
        if answer.status >= 300:
            raise HouseFailed(f"no pool {POOL}: {answer.status} {answer.body[:300]!r}")

    async def start_worker(
        self, name: str, pools: Mapping[str, int], target: str = "fairway.lab.jobs:app"
    ) -> asyncio.subprocess.Process:
        words = [f"{pool}={slots}" for pool, slots in pools.items()]
        process = await self.run(
            name, "worker", target, "--name", name, "--grace", "2", "--pool", *words,
            FAIRWAY_URL=self.url, FAIRWAY_API_KEY=self.keys.worker_key,
            FAIRWAY_DIE_WITH_PARENT="1", LAB_FOLDER=str(self.folder),
        )  # fmt: skip
        await self.says(process, name, "worker ready")
        return process

    async def run(self, log: str, *words: str, **environment: str) -> asyncio.subprocess.Process:
        """`fairway WORDS`, or `python -m …` when the first word is `-m`."""
        words = words if words[0] == "-m" else ("-m", "fairway", *words)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRWAY_")}
        with (self.folder / f"{log}.log").open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *words, env=clean | environment, stdout=file, stderr=file,
                start_new_session=True, preexec_fn=partial(die_with_parent, signal.SIGTERM),
            )  # fmt: skip
        self.programs.append(process)
        return process

    async def stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()

    async def close(self) -> None:
        for door in self._doors.values():
            door.close()
        for process in reversed(self.programs):
            await self.stop(process)

    async def says(self, process: asyncio.subprocess.Process, log: str, words: str) -> None:
        async with asyncio.timeout(READY_SECONDS):
            while words not in (self.folder / f"{log}.log").read_text(errors="replace"):
                self._check(process, log)
                await asyncio.sleep(0.05)

    def _check(self, process: asyncio.subprocess.Process, log: str) -> None:
        if process.returncode is not None:
            said = (self.folder / f"{log}.log").read_text(errors="replace")[-2000:]
            raise HouseFailed(f"`fairway {log}` ended with {process.returncode}:\n{said}")


@asynccontextmanager
async def house(**settings: str) -> AsyncIterator[House]:
    """A running platform without workers, with these FAIRWAY_… settings; gone afterwards."""
    folder = _folder()
    found = House(folder, free_port())
    try:
        await found.start(**settings)
        yield found
    finally:
        await found.close()
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairway-lab-"))
    folder.chmod(0o755)  # PostgreSQL's own user must be able to enter
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
