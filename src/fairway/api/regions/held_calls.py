"""Calls on a job that is held in this region for its home in another: what can be told of it.

Nothing is changed of it here: it may be on its way, and its home is the one that has the last word.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.api.auth import CALLER, SESSION
from fairway.api.endpoint import Endpoint
from fairway.api.http.asgi import JSON, Scope, Send, send_bytes
from fairway.api.http.headers import etag, known_versions, wait_seconds
from fairway.api.regions.held_views import held_explained, held_views, until_when
from fairway.api.regions.others import OtherRegions, send_reply
from fairway.core.errors import Conflict, NotFound
from fairway.core.ids import JobId, TenantId
from fairway.runtime.loops import pause
from fairway.runtime.plain_http import Reply
from fairway.services.platform import Platform
from fairway.services.regions.held import HeldSight
from fairway.services.regions.regions import Regions
from fairway.wire.messages import JobList, JobView
from fairway.wire.run_logs import LogPage

JOB_READS = frozenset({"GET /v1/jobs/{id}", "HEAD /v1/jobs/{id}"})
EXPLAIN = "GET /v1/jobs/{id}/explain"
CHANGES = {
    "DELETE /v1/jobs/{id}": "cancelled",
    "PATCH /v1/jobs/{id}": "moved to another time",
}
#: It said nothing and started nothing, as far as this region knows.
EMPTY: dict[str, Any] = {
    "GET /v1/jobs/{id}/logs": LogPage(lines=[], next_cursor=None),
    "GET /v1/jobs/{id}/children": JobList(jobs=[], next_cursor=None),
}
HELD = "held"  # the version of a job, for as long as it is
HELD_LOOK_SECONDS = 1.0


class HeldCalls:
    def __init__(self, platform: Platform, regions: Regions, others: OtherRegions) -> None:
        self._platform = platform
        self._regions = regions
        self._others = others

    async def has_told(self, scope: Scope, send: Send, endpoint: Endpoint, job: JobId) -> bool:
        """Whether the job is held here, or was and became another. NotFound: refused at its home.
        Conflict: it would be changed."""
        name, tenant = endpoint.call, scope[CALLER].tenant.id
        if name not in JOB_READS and name != EXPLAIN and name not in (*CHANGES, *EMPTY):
            return False
        if name in JOB_READS:
            await self._while_held(tenant, job, wait_seconds(scope))
        held = await self._regions.held.find(tenant, job)
        if held is None:
            return False
        if held.became is not None:
            await self._tell_other(scope, send, endpoint, held.became)
        elif name in CHANGES:
            raise self._unchanged(tenant, CHANGES[name])
        elif name in JOB_READS:
            await self._show(scope, send, held)
        else:
            told = self._explained(tenant, held) if name == EXPLAIN else EMPTY[name]
            await send_bytes(send, 200, msgspec.json.encode(told), [JSON])
        return True

    async def _show(self, scope: Scope, send: Send, held: HeldSight) -> None:
        headers = [(b"etag", etag(HELD)), (b"cache-control", b"no-cache")]
        if {HELD, "*"}.intersection(known_versions(scope)):
            await send_bytes(send, 304, b"", headers)
            return
        view = self._view(scope[CALLER].tenant.id, held)
        await send_bytes(send, 200, msgspec.json.encode(view), [JSON, *headers])

    def _explained(self, tenant: TenantId, held: HeldSight) -> Any:
        return held_explained(self._view(tenant, held), self._how_long(tenant))

    def _view(self, tenant: TenantId, held: HeldSight) -> JobView:
        regions = self._regions.map.here, self._regions.homes.home_of(tenant)
        (view,) = held_views(held, self._platform.directory, *regions)
        return view

    def _unchanged(self, tenant: TenantId, what: str) -> Conflict:
        return Conflict(
            f"The job waits in another region than its own and cannot be {what} before it is"
            f" there. {self._how_long(tenant)} Try again then."
        )

    def _how_long(self, tenant: TenantId) -> str:
        home = self._regions.homes.home_of(tenant)
        is_away = self._regions.peers.is_away(home)
        return until_when(self._regions.map.here, home, is_away=is_away)

    async def _while_held(self, tenant: TenantId, job: JobId, seconds: float) -> None:
        """For whoever asked to wait: until the home is back; a moment at least, for to ask again
        at once is all that such a caller does otherwise. Nothing of the job is read before that:
        many may wait, and it may be large."""
        clock, waiting = self._platform.clock, self._platform.waiting
        if not seconds or not waiting.has_slot("waits", tenant):
            return
        if not await self._regions.held.among(tenant, [job]):
            return
        until_us = clock.now_us() + round(seconds * 1e6)
        with waiting.slot("waits", tenant):
            while (left_us := until_us - clock.now_us()) > 0:
                await pause(min(left_us / 1e6, HELD_LOOK_SECONDS))
                if not self._regions.peers.is_away(self._regions.homes.home_of(tenant)):
                    return

    async def _tell_other(self, scope: Scope, send: Send, endpoint: Endpoint, other: JobId) -> None:
        """The job that this one turned out to be: another with the same Idempotency-Key. Whoever
        would change it names it."""
        if endpoint.call not in JOB_READS or SESSION in scope:
            raise NotFound(
                f"The job turned out to be {other}, which had the same Idempotency-Key: ask for"
                " that one."
            )
        await send_reply(send, await self._read_other(scope, other))

    async def _read_other(self, scope: Scope, job: JobId) -> Reply:
        path = f"{scope['path'].rpartition('/')[0]}/{job}"
        likely = self._regions.may_have(scope[CALLER].tenant.id, job)
        for region in (*likely, *likely[:-1]):
            reply = await self._others.ask(region, {**scope, "path": path}, b"")
            if reply.status != 404:
                return reply
        raise NotFound(
            f"The job turned out to be {job}, which had the same Idempotency-Key and is gone."
        )
