"""One job after submission: read it, cancel it, move it. Always within the key's tenant."""

from __future__ import annotations

from fairway.api.auth import key_and_tenant_of
from fairway.api.http.asgi import JSON, Header, Receive, Scope, Send, read_body, send_bytes
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.http.headers import etag, known_versions, wait_seconds
from fairway.api.jobs import views
from fairway.api.jobs.times import due_wish
from fairway.api.relay import Relay
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import JobId, parse_job_id, shard_of
from fairway.core.lifecycle import State
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.wire import messages

RESCHEDULE_BYTES_MAX = 4 << 10


def job_id(text: str) -> JobId:
    job = parse_job_id(text)
    if job is None:
        raise NotFound(f"There is no job {text[:64]}.")
    return job


class OneJob:
    """`/v1/jobs/{id}` in all its methods, as a raw ASGI callable: polling must be cheap."""

    def __init__(self, platform: Platform, relay: Relay) -> None:
        self._platform = platform
        self._relay = relay

    async def __call__(self, scope: Scope, receive: Receive, send: Send, text: str) -> None:
        key_id, tenant = await key_and_tenant_of(scope, self._platform.directory)
        job = job_id(text)
        if scope["method"] == "DELETE":
            await self._cancel(scope, send, tenant.id, job)
        elif scope["method"] == "PATCH":
            await self._reschedule(scope, receive, send, (tenant.id, job))
        else:
            await self._read(scope, send, (tenant.id, job), key_id)

    async def _read(self, scope: Scope, send: Send, whose: tuple[int, JobId], key_id: str) -> None:
        tenant, job = whose
        wait, known = wait_seconds(scope), known_versions(scope)
        insight, waiting = self._platform.insight, self._platform.waiting
        if wait and not waiting.has_place("waits", tenant):
            wait = 0  # a preference, not a demand: who cannot wait here hears how things stand
        if wait:
            unlike = known[0] if len(known) == 1 else None
            with waiting.place("waits", tenant):
                async with self._platform.revocation.held(key_id):
                    sight = await insight.job_when(tenant, job, wait_seconds=wait, unlike=unlike)
        else:
            sight = await insight.job(tenant, job)
        headers = [JSON, (b"etag", etag(sight.version)), (b"cache-control", b"no-cache")]
        if wait:
            headers.append((b"preference-applied", f"wait={wait}".encode()))
        if sight.version in known or "*" in known:
            await _send_head(send, 304, headers[1:])
        else:
            await self._show(scope, send, sight, headers)

    async def _show(self, scope: Scope, send: Send, sight: JobSight, headers: list[Header]) -> None:
        body = messages.encode(await views.job_view(sight, self._platform.directory))
        if scope["method"] == "HEAD":
            await _send_head(send, 200, [*headers, (b"content-length", str(len(body)).encode())])
        else:
            await send_bytes(send, 200, body, headers)

    async def _cancel(self, scope: Scope, send: Send, tenant: int, job: JobId) -> None:
        if self._relay.is_elsewhere(shard_of(job)):
            await self._relay.pass_on(scope, b"", send, shard=shard_of(job))
            return
        sight = await self._platform.control.cancel(tenant, job)
        view = await views.job_view(sight, self._platform.directory)
        status = 200 if State(sight.record.state).is_final else 202
        await send_bytes(send, status, messages.encode(view))

    async def _reschedule(
        self, scope: Scope, receive: Receive, send: Send, whose: tuple[int, JobId]
    ) -> None:
        tenant, job = whose
        body = await read_body(scope, receive, RESCHEDULE_BYTES_MAX)
        try:
            wanted = messages.decode_reschedule(body)
        except UNDECODABLE as error:
            raise invalid(error, body) from None
        if wanted.execute_at is None and wanted.delay_seconds is None:
            raise InvalidRequest("Give execute_at or delay_seconds.", field="/execute_at")
        wish = due_wish(wanted)
        if self._relay.is_elsewhere(shard_of(job)):
            await self._relay.pass_on(scope, body, send, shard=shard_of(job))
            return
        sight = await self._platform.control.reschedule(tenant, job, wish)
        view = await views.job_view(sight, self._platform.directory)
        await send_bytes(send, 200, messages.encode(view))


async def _send_head(send: Send, status: int, headers: list[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
