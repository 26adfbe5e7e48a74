"""One job after submission: read it, cancel it, move it. Always within the key's tenant."""

from __future__ import annotations

from urllib.parse import parse_qs

from fairway.api import endpoint_parts as parts
from fairway.api.auth import tenant_in_force
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.asgi import JSON, Receive, Scope, Send, read_body, send_bytes
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.http.headers import Header, etag, known_versions, wait_seconds
from fairway.api.jobs import views
from fairway.api.jobs.times import due_wish
from fairway.api.relay import HotEndpoint
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import JobId, parse_job_id
from fairway.core.lifecycle import State
from fairway.services.jobs.lookup import JobSight
from fairway.services.registry.principal import Principal
from fairway.wire import messages

RESCHEDULE_BYTES_MAX = 4 << 10


def job_id(text: str) -> JobId:
    job = parse_job_id(text)
    if job is None:
        raise NotFound(f"There is no job {text[:64]}.")
    return job


def with_children(scope: Scope) -> bool:
    given = parse_qs(scope["query_string"].decode("latin-1")).get("children", ["false"])
    if given not in (["true"], ["false"]):
        raise InvalidRequest("children is true or false.", field="children")
    return given == ["true"]


CHILDREN = query(
    "children",
    "`true`: also what its run started, and what came of that.",
    "true",
    schema={"type": "boolean", "default": False},
)
_UNCHANGED = Reply(304, "The job has not changed since that `ETag`.", headers=(parts.ETAG,))


@Endpoint(
    "GET /v1/jobs/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH, parts.PREFER_WAIT, parts.IF_NONE_MATCH),
    replies=(
        Reply(
            200,
            "The job.",
            messages.JobView,
            parts.JOB_EXAMPLE,
            headers=(parts.ETAG, parts.PREFERENCE_APPLIED),
        ),
        _UNCHANGED,
    ),
    problems=("NOT_FOUND",),
)
class GetJob(HotEndpoint):
    """Get a job

    The job as it stands, with its payload, progress and result.

    To wait for the end, send `Prefer: wait=60`. To wait for the next change, send `If-None-Match`
    with the last `ETag` as well.
    """

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, caller: Principal, text: str
    ) -> None:
        tenant, job = tenant_in_force(caller, self._platform.directory).id, job_id(text)
        wait, known = wait_seconds(scope), known_versions(scope)
        waiting = self._platform.waiting
        if wait and not waiting.has_slot("waits", tenant):
            wait = 0  # a preference, not a demand: who cannot wait here hears how things stand
        if wait:
            unlike = known[0] if len(known) == 1 else None
            with waiting.slot("waits", tenant):
                async with self._platform.revocation.held(caller.key_id):
                    sight = await self._platform.job_waits.job_when(
                        tenant, job, wait_seconds=wait, unlike=unlike
                    )
        else:
            sight = await self._platform.job_lookup.job(tenant, job)
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


@Endpoint(
    "HEAD /v1/jobs/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH, parts.PREFER_WAIT, parts.IF_NONE_MATCH),
    replies=(Reply(200, "The job exists.", headers=(parts.ETAG,)), _UNCHANGED),
    problems=("NOT_FOUND",),
)
class HeadJob(GetJob):
    """Ask whether a job changed

    The headers of `GET`, without the body.
    """


@Endpoint(
    "DELETE /v1/jobs/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH, CHILDREN),
    replies=(
        Reply(
            200,
            "The job is cancelled. (With `children`, it may have ended otherwise.)",
            messages.JobView,
            parts.QUEUED_EXAMPLE | {"state": "cancelled", "finished_at": "2026-01-31T12:00:01Z"},
        ),
        Reply(
            202,
            "The job runs and has been asked to stop.",
            messages.JobView,
            parts.QUEUED_EXAMPLE | {"state": "running", "started_at": "2026-01-31T12:00:00.126Z"},
        ),
    ),
    problems=("NOT_FOUND", "CONFLICT", "INVALID_REQUEST", "NOT_OWNER", *parts.QUICK),
)
class CancelJob(HotEndpoint):
    """Cancel a job

    A job that waits is cancelled at once. A job that runs is asked to stop: it becomes cancelled
    when its handler does, or ends as it would have.

    With `children=true` the jobs that its run started, and what came of those, are cancelled as
    well, up to 10 000 jobs; then a job that has ended is no conflict.
    """

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, caller: Principal, text: str
    ) -> None:
        tenant, job = tenant_in_force(caller, self._platform.directory).id, job_id(text)
        shard = self._platform.tenant_shards.of(tenant)
        if await self._relay.passed_on(scope, b"", send, shard=shard):
            return
        if with_children(scope):
            sight = await self._platform.families.cancel(tenant, job)
        else:
            sight = await self._platform.control.cancel(tenant, job)
        view = await views.job_view(sight, self._platform.directory)
        status = 200 if State(sight.record.state).is_final else 202
        await send_bytes(send, status, messages.encode(view))


@Endpoint(
    "PATCH /v1/jobs/{id}",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    body=messages.Reschedule,
    body_example={"delay_seconds": 3600},
    reply=Reply(
        200,
        "The job with its new time.",
        messages.JobView,
        parts.QUEUED_EXAMPLE | {"state": "scheduled", "execute_at": "2026-01-31T13:00:00Z"},
    ),
    problems=("NOT_FOUND", "CONFLICT", "NOT_OWNER", "OVERLOADED"),
)
class RescheduleJob(HotEndpoint):
    """Move a job to another time

    While a job is `scheduled`, before its first run or between two attempts, its time can be
    changed. Against the clock there is one winner: a job that was queued at the same moment stays
    queued, and this answers 409.
    """

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, caller: Principal, text: str
    ) -> None:
        tenant, job = tenant_in_force(caller, self._platform.directory).id, job_id(text)
        body = await read_body(scope, receive, RESCHEDULE_BYTES_MAX)
        try:
            wanted = messages.decode_reschedule(body)
        except UNDECODABLE as error:
            raise invalid(error, body) from None
        if wanted.execute_at is None and wanted.delay_seconds is None:
            raise InvalidRequest("Give execute_at or delay_seconds.", field="/execute_at")
        wish = due_wish(wanted)
        shard = self._platform.tenant_shards.of(tenant)
        if await self._relay.passed_on(scope, body, send, shard=shard):
            return
        sight = await self._platform.control.reschedule(tenant, job, wish)
        view = await views.job_view(sight, self._platform.directory)
        await send_bytes(send, 200, messages.encode(view))


async def _send_head(send: Send, status: int, headers: list[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
