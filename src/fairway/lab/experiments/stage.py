"""A scenario being played: tenants, workers, planned arrivals, and what happens on the way.

A happening comes at its moment whatever the platform does. Nothing here judges.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairway.lab.load import WAITING, iso, job_body, submit
from fairway.lab.measure.figures import Story
from fairway.lab.platform import LabPlatform, Seen
from fairway.lab.scenario import Happening, Kind, Scenario
from fairway.rig.load import Volley, open_loop
from fairway.rig.load_client import JSON
from fairway.rig.program import Program

BATCH = 1000
POLL_SECONDS = 0.25


class Arrival(NamedTuple):
    at: float
    group: str
    tenant: int
    kind: Kind


class Stage:
    def __init__(self, scenario: Scenario, platform: LabPlatform) -> None:
        self._scenario = scenario
        self._platform = platform
        self._keys: dict[tuple[str, int], str] = {}
        self._sent: dict[str, Arrival] = {}  # accepted job → what it was meant to be
        self._began = 0.0
        self._workers: list[Program] = []
        self.complaints: list[str] = []
        self.notes: list[str] = []

    async def furnish(self) -> None:
        for group in self._scenario.tenants:
            for number in range(group.count):
                key = await self._platform.add_tenant(f"{group.name}-{number}", group.terms)
                self._keys[group.name, number] = key
        for _ in range(self._scenario.workers.count):
            await self._start_worker()

    async def _start_worker(self) -> None:
        name = f"worker-{len(self._workers) + 1}"
        slots = self._scenario.workers.slots
        self._workers.append(await self._platform.start_worker(name, slots))

    # -- the run -----------------------------------------------------------------------------

    async def play(self, planned: list[Arrival], on_shot: Callable[[], None]) -> None:
        bodies = [_body(one.kind) for one in planned]
        clients = [self._platform.client(self._keys[one.group, one.tenant]) for one in planned]
        self._began = time.time()
        happenings = [asyncio.create_task(self._happen(one)) for one in self._scenario.happenings]
        moments = [one.at for one in planned]
        volley = await open_loop(moments, lambda n, _: submit(clients[n], bodies[n]), on_shot)
        await asyncio.gather(*happenings)
        self._remember(planned, volley)

    def _remember(self, planned: list[Arrival], volley: Volley) -> None:
        self._sent |= {job: planned[shot.number] for job, shot in volley.accepted.items()}
        self.complaints += volley.complaints
        if volley.refused:
            self.notes.append(f"{volley.refused} requests were refused at the front door.")

    async def _happen(self, one: Happening) -> None:
        scheduled = one.scheduled and await self._can_schedule()
        if not scheduled:
            await asyncio.sleep(max(0.0, self._began + one.at - time.time()))
        match one.what:
            case "kill_worker":
                await self._workers.pop(0).kill()
            case "start_worker":
                await self._start_worker()
            case "break":
                self._switch(one.dependency).touch()
            case "mend":
                self._switch(one.dependency).unlink(missing_ok=True)
            case "burst":
                await self._burst(one, due=self._began + one.at if scheduled else None)

    def _switch(self, dependency: str) -> Path:
        return self._platform.folder / f"{dependency}.down"

    async def _can_schedule(self) -> bool:
        """Whether this platform takes jobs for later; else a herd arrives by itself."""
        answer = await self._platform.client().ask("GET", "/openapi.json")
        return b'"execute_at"' in answer.body.partition(b'"JobRequest"')[2][:20_000]

    async def _burst(self, one: Happening, due: float | None) -> None:
        """So many jobs in one go, each tenant of the group its part, in batches."""
        group = next(group for group in self._scenario.tenants if group.name == one.group)
        later = {} if due is None else {"execute_at": iso(due), "exact": True}
        for number in range(group.count):
            jobs = one.jobs // group.count
            for start in range(0, jobs, BATCH):
                await self._batch(
                    Arrival(one.at, group.name, number, group.jobs[0]),
                    min(BATCH, jobs - start),
                    later,
                )

    async def _batch(self, arrival: Arrival, count: int, later: dict[str, object]) -> None:
        client = self._platform.client(self._keys[arrival.group, arrival.tenant])
        job = msgspec.json.encode(msgspec.json.decode(_body(arrival.kind)) | later)
        body = b'{"jobs":[' + b",".join([job] * count) + b"]}"
        answer = await client.ask("POST", "/v1/jobs/batch", body, JSON)
        items = msgspec.json.decode(answer.body).get("items", [])
        ids = [item["id"] for item in items if item.get("id")]
        self._sent |= dict.fromkeys(ids, arrival)
        if len(ids) < count:
            self.notes.append(f"{count - len(ids)} jobs of a burst were refused.")

    # -- afterwards --------------------------------------------------------------------------

    async def drain(self) -> None:
        """Until nobody has a job that waits or runs, or the scenario's patience is over."""
        ends_at = time.monotonic() + self._scenario.drain_seconds
        busy = list(self._keys.values())
        while busy and time.monotonic() < ends_at:
            busy = [key for key in busy if await self._is_busy(key)]
            await asyncio.sleep(POLL_SECONDS)

    async def _is_busy(self, key: str) -> bool:
        answer = await self._platform.client(key).ask("GET", f"/v1/jobs?limit=1&state={WAITING}")
        return not answer.body.startswith(b'{"jobs":[]')

    async def stories(self) -> list[Story]:
        views: dict[str, Seen] = {}
        for key in self._keys.values():
            seen = await self._platform.jobs(self._platform.client(key))
            views |= {view.id: view for view in seen}
        return [self._story(job, arrival, views.get(job)) for job, arrival in self._sent.items()]

    def _story(self, job: str, arrival: Arrival, view: Seen | None) -> Story:
        kind = arrival.kind
        place = (arrival.group, arrival.tenant, kind.type, kind.pool, arrival.at)
        if view is None:  # accepted and gone: the worst that can be
            return Story(*place, arrival.at, None, None, "missing", 0)
        times = (view.started_at, view.finished_at)
        started, finished = (at.timestamp() - self._began if at else None for at in times)
        accepted = max(view.created_at.timestamp() - self._began, arrival.at)
        return Story(*place, accepted, started, finished, view.state, view.attempts)

    def calls(self) -> dict[str, float]:
        """How often each dependency was asked, against how often it was needed."""
        found: dict[str, float] = {}
        for file in self._platform.folder.glob("*.calls"):
            needed = sum(one.kind.type == "lab.call" for one in self._sent.values())
            found[f"{file.stem}/calls"] = float(file.stat().st_size)
            found[f"{file.stem}/amplification"] = file.stat().st_size / max(1, needed)
        return found


def _body(kind: Kind) -> bytes:
    return job_body(kind.type, kind.pool, seconds=kind.seconds)
