"""The platform of an experiment, as its tenants and operators see it: through the front door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from fairway import FairwayError
from fairway.rig.load_client import LoadClient
from fairway.rig.platform import MeasuredPlatform, fresh
from fairway.rig.program import Program, Programs

#: Where `lab.score` runs: a pool by resource, with the terms of the medium one. In a time-scaled
#: run its jobs take milliseconds, and the platform would rightly move them to the short pool.
POOL = "lab"
PAGE = 200
GRACE_SECONDS = 2.0


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


class LabFailed(FairwayError):
    """The platform refused what an experiment needs, or stands still."""


class LabPlatform(MeasuredPlatform):
    def __init__(self, programs: Programs, dsn: str, settings: Mapping[str, str]) -> None:
        super().__init__(programs, dsn, settings)
        self._tenant_key = ""

    async def open(self) -> None:
        """A server, a pool for scores, and a tenant of the tier that `fairway up` gives its own."""
        await self.start_server()
        await self._operate("PUT", f"/v1/pools/{POOL}", {"pickup_target_seconds": 5})
        self._tenant_key = await self.add_tenant("default", {"tier": "pro"})

    @property
    def tenant(self) -> LoadClient:
        """The tenant of experiments that need only one."""
        return self.client(self._tenant_key)

    async def add_tenant(self, name: str, terms: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Its key. `terms` are those of `POST /v1/tenants`: tier, weight, limits."""
        answer = await self._operate("POST", "/v1/tenants", {"name": name, **terms})
        key: str = msgspec.json.decode(answer)["api_key"]
        return key

    async def _operate(self, method: str, path: str, document: object) -> bytes:
        answer = await self.client(self.operator_key).send_json(method, path, document)
        if answer.status >= 300:
            raise LabFailed(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        return answer.body

    async def jobs(self, tenant: LoadClient, **filters: str) -> list[Seen]:
        """Every job of a tenant that these filters leave, newest first."""
        query = "&".join(f"{name}={quote(value)}" for name, value in filters.items())
        found: list[Seen] = []
        cursor: str | None = ""
        while cursor is not None:
            path = f"/v1/jobs?limit={PAGE}&{query}" + (f"&cursor={cursor}" if cursor else "")
            answer = await tenant.ask("GET", path)
            if answer.status != 200:
                raise LabFailed(f"GET {path}: {answer.status} {answer.body[:300]!r}")
            page = msgspec.json.decode(answer.body, type=Page)
            found += page.jobs
            cursor = page.next_cursor
        return found

    async def start_worker(self, name: str, pools: Mapping[str, int]) -> Program:
        """Returns when it is ready."""
        program = await self.start_worker_of(
            "fairway.lab.jobs:app", pools, name, GRACE_SECONDS, LAB_FOLDER=str(self.folder)
        )
        await program.says("worker ready")
        return program


@asynccontextmanager
async def lab_platform(**settings: str) -> AsyncIterator[LabPlatform]:
    """A running platform without workers, with these FAIRWAY_… settings; gone afterwards."""
    async with fresh(LabPlatform, settings) as platform:
        await platform.open()
        yield platform
