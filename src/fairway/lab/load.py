"""One load on one kind of job: offer a plan, wait until all is done, learn each job's life."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from fairway.lab.measure.timeline import Life
from fairway.lab.platform import POOL, LabFailed, LabPlatform, Seen
from fairway.rig.load import Volley, open_loop
from fairway.rig.load_client import JSON, LoadClient

DRAIN_POLL_SECONDS = 0.25
STUCK_SECONDS = 60.0
WAITING = "queued,running,scheduled"


class Load(NamedTuple):
    volley: Volley
    lives: list[Life]
    lost: list[str]  # accepted, and not succeeded

    @property
    def replies_seconds(self) -> list[float]:
        return [shot.reply_seconds for shot in self.volley.shots]


async def score_load(
    platform: LabPlatform, plan: list[float], service_seconds: float, on_shot: Callable[[], None]
) -> Load:
    """Offer `lab.score` jobs by plan; returns when every one of them has ended."""
    body = job_body("lab.score", POOL, seconds=service_seconds)
    tenant = platform.tenant
    volley = await open_loop(plan, lambda *_: submit(tenant, body), on_shot)
    await drained(platform, "lab.score")
    views = await platform.jobs(tenant, type="lab.score", since=iso(volley.began - 1))
    lives, lost = match(volley, views)
    return Load(volley, lives, lost)


async def submit(client: LoadClient, body: bytes) -> tuple[int, str]:
    """One job through the front door: the status, and the id when it was accepted."""
    answer = await client.ask("POST", "/v1/jobs", body, JSON)
    if answer.status != 202:
        return answer.status, ""
    return 202, msgspec.json.decode(answer.body)["id"]


def job_body(kind: str, pool: str, **payload: object) -> bytes:
    return msgspec.json.encode({"type": kind, "pool": pool, "payload": payload})


async def drained(platform: LabPlatform, kind: str) -> None:
    """Wait until no job of this type waits or runs; a page of one is asked for, never a count."""
    progress, moved_at = -1.0, time.monotonic()
    path = f"/v1/jobs?limit=1&type={kind}&state={WAITING}"
    while True:
        answer = await platform.tenant.ask("GET", path)
        if answer.status == 200 and answer.body.startswith(b'{"jobs":[]'):
            return
        recorded = await platform.metric("fairway_outcomes_recorded_total")
        if recorded != progress:
            progress, moved_at = recorded, time.monotonic()
        elif time.monotonic() - moved_at > STUCK_SECONDS:
            raise LabFailed(f"jobs of type {kind} wait, and nothing ended for a minute")
        await asyncio.sleep(DRAIN_POLL_SECONDS)


def match(volley: Volley, views: list[Seen]) -> tuple[list[Life], list[str]]:
    """The lives of accepted jobs, by the platform's own record; and those without a good end."""
    by_id = {view.id: view for view in views if view.state == "succeeded"}
    lives, lost = [], []
    for job, shot in volley.accepted.items():
        view = by_id.get(job)
        if view is None or view.finished_at is None or view.started_at is None:
            lost.append(job)
            continue
        lives.append(
            Life(
                shot.intended,
                view.created_at.timestamp(),
                view.started_at.timestamp(),
                view.finished_at.timestamp(),
            )
        )
    return lives, lost


def iso(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat().replace("+00:00", "Z")
