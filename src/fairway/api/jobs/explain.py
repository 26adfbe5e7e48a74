"""`GET /v1/jobs/{id}/explain`: why a job waits. Only the owner of its shard knows."""

from __future__ import annotations

from datetime import datetime, timedelta

from fairway.api import endpoint_parts as parts
from fairway.api.auth import tenant_in_force
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import Receive, Scope, Send, send_bytes
from fairway.api.jobs.jobs import job_id
from fairway.api.relay import HotEndpoint
from fairway.core.explain import AHEAD_MAX, Start, sentence_of
from fairway.core.fair_share.history import Recent
from fairway.core.lifecycle import State
from fairway.services.jobs.explainer import Explanation
from fairway.services.registry.principal import Principal
from fairway.wire import messages
from fairway.wire.explain import Explained, ShareReceived, StartEstimate


@Endpoint(
    "GET /v1/jobs/{id}/explain",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    reply=Reply(
        200,
        "The explanation.",
        Explained,
        {
            "id": parts.JOB_ID,
            "state": "queued",
            "reason": "slot",
            "detail": "All slots are busy; it starts when its turn comes.",
            "position": 12,
            "position_is_exact": True,
            "tenants_ahead": 3,
            "running": 4,
            "fair_slots": 4.5,
            "run_seconds": 0.31,
            "start": {
                "earliest_at": "2026-01-31T12:00:00.412Z",
                "likely_at": "2026-01-31T12:00:00.824Z",
                "latest_at": "2026-01-31T12:00:01.958Z",
            },
            "share": {
                "window_seconds": 48.2,
                "received_slot_seconds": 211.0,
                "entitled_slot_seconds": 216.9,
            },
        },
    ),
    problems=("NOT_FOUND", "NOT_OWNER", *parts.QUICK),
)
class ExplainJob(HotEndpoint):
    """Why does it wait?

    The reason why a job is not running, its place in line, an estimate of its start with the
    spread, and the slot-time you got against what you were due over the last minute.
    """

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, caller: Principal, text: str
    ) -> None:
        platform = self._platform
        tenant = tenant_in_force(caller, platform.directory)
        job = job_id(text)
        shard = platform.tenant_shards.of(tenant.id)
        if await self._relay.passed_on(scope, b"", send, shard=shard):
            return
        found = await platform.explainer.explain(tenant.id, job, platform.clock.now_us())
        view = _view(found, platform.store_clock.now())
        await send_bytes(send, 200, messages.encode(view))


def _view(found: Explanation, now: datetime) -> Explained:
    standing, record = found.standing, found.sight.record
    return Explained(
        id=record.id,
        state=State(record.state).label,
        reason=found.reason,
        detail=f"{sentence_of(found.reason)} {found.note}".rstrip(),
        position=None if found.jobs_ahead is None else found.jobs_ahead + 1,
        position_is_exact=found.jobs_ahead is None or found.jobs_ahead < AHEAD_MAX,
        tenants_ahead=standing.ahead,
        running=standing.running,
        fair_slots=standing.fair_slots_milli / 1000,
        run_seconds=found.run_us / 1e6,
        start=_start(found.start, now) if found.start else None,
        share=_share(found.recent) if found.recent else None,
    )


def _start(start: Start, now: datetime) -> StartEstimate:
    earliest, likely, latest = (now + timedelta(microseconds=wait_us) for wait_us in start)
    return StartEstimate(earliest_at=earliest, likely_at=likely, latest_at=latest)


def _share(recent: Recent) -> ShareReceived:
    return ShareReceived(
        window_seconds=recent.window_us / 1e6,
        received_slot_seconds=recent.received_us / 1e6,
        entitled_slot_seconds=recent.entitled_us / 1e6,
    )
