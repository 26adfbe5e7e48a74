"""The front door's hot half: `POST /v1/jobs`, as a raw ASGI callable."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial

import msgspec

from fairway.api import endpoint_parts as parts
from fairway.api.auth import tenant_in_force
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import (
    BODY_BYTES,
    JSON,
    Receive,
    Scope,
    Send,
    give_back_room,
    read_body,
    send_bytes,
    send_whole,
)
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.http.headers import (
    Header,
    etag,
    idempotency_key,
    rate_limit,
    trace_header,
    wait_seconds,
)
from fairway.api.jobs import views
from fairway.api.jobs.key_limits import packed_limits
from fairway.api.jobs.submit_large import submit_large
from fairway.api.jobs.times import is_plainly_due, wish_of
from fairway.api.jobs.unique import replaces_others, unique_wish
from fairway.api.payloads.body_cost import (
    LIGHT_BYTES,
    UPLOAD_IT,
    is_brief,
    is_large,
    weigh,
)
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.api.relay import Edge
from fairway.api.tenant_parts.placing import part_for
from fairway.core.backlog.lanes import lane_of
from fairway.core.errors import FairwayError, Forbidden, InvalidRequest, Unavailable
from fairway.core.job import JobMarks
from fairway.core.tenant import Tenant
from fairway.services.jobs.lookup import JobSight
from fairway.services.registry.job_types import Registry
from fairway.services.registry.principal import Principal
from fairway.services.submit.submission_group import Accepted, NewJob
from fairway.wire import messages
from fairway.wire.messages import JobRequest
from fairway.wire.payload import (
    check_carefully,
    check_payload,
    is_plain,
)

ENVELOPE_BYTES_MAX = 8 << 10  # of one job, around its payload
REPLAYED = (b"idempotent-replayed", b"true")


EMAIL = {"type": "email.send", "payload": {"to": "ada@example.com", "template": "welcome"}}
OF_SUBMISSIONS = (
    "INVALID_HEADER",
    "UNKNOWN_POOL",
    "TOO_MANY_VALUES",
    "TOO_MANY_JOB_TYPES",
    "TOO_MANY_WAITING",
    "TOO_MANY_BYTES",
    "QUEUE_DEPTH_EXCEEDED",
    "TENANT_RATE_LIMIT_EXCEEDED",
    "NO_ROOM",
    "OVERLOADED",
    "DISK_FULL",
    "STOPPING",
    "STORAGE_UNAVAILABLE",
)


@Endpoint(
    "POST /v1/jobs",
    keys=("tenant",),
    permission="submit",
    parameters=(parts.IDEMPOTENCY_KEY, parts.PREFER_WAIT, parts.TRACEPARENT),
    body=JobRequest,
    body_example=EMAIL,
    replies=(
        Reply(
            202,
            "The job is on disk. (With `Prefer: wait`, the wait ended first, and the body is"
            " the whole job.)",
            messages.JobAccepted,
            {"id": parts.JOB_ID, "state": "queued"},
            headers=(
                parts.LOCATION,
                parts.REPLAYED,
                parts.PREFERENCE_APPLIED,
                parts.RATE_LIMIT,
                parts.RATE_LIMIT_POLICY,
                parts.OWNER,
            ),
        ),
        Reply(
            200,
            "The job is final. Only with `Prefer: wait`.",
            messages.JobView,
            parts.JOB_EXAMPLE,
            headers=(
                parts.LOCATION,
                parts.ETAG,
                parts.REPLAYED,
                parts.PREFERENCE_APPLIED,
            ),
        ),
    ),
    problems=(
        *OF_SUBMISSIONS,
        "IDEMPOTENCY_KEY_REUSED",
        "NOT_UNIQUE",
        "OBJECT_DAMAGED",
        "NOT_OWNER",
    ),
)
class SubmitJob:
    """Submit a job

    Answers 202 as soon as the job is on disk; a worker runs it later, at your fair share of
    slot-time. A job may run more than once, but only one run's result is recorded: use the job's
    id as the key for anything that must happen once.

    With `Prefer: wait=N` the same request brings the result, if the job ends in time.
    """

    def __init__(self, edge: Edge) -> None:
        platform = self._platform = edge.platform
        self._relay = edge.relay
        self._passing = edge.passing
        self._registry = platform.registry
        self._schemas = PayloadSchemas(platform.registry.schemas)
        self._bodies = platform.bodies.requests
        self._spans = platform.instruments.spans
        settings = platform.settings
        self._payload_max = settings.payload_bytes_max
        self._inline_max = settings.inline_bytes_max
        # What can only be refused need not be read, nor looked at with care.
        self._body_max = min(settings.body_bytes_max, self._payload_max + ENVELOPE_BYTES_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, caller: Principal) -> None:
        key_id, tenant = caller.key_id, tenant_in_force(caller, self._platform.directory)
        try:
            if is_large(scope):
                self._platform.admission.refuse_debtors(tenant)
            verdict = await self._accept(scope, receive, send, (key_id, tenant))
            if verdict is not None:
                await self._answer(scope, send, (key_id, tenant), verdict)
        except FairwayError as error:
            self._platform.admission.count_refusal(tenant, error.code)
            if isinstance(error, InvalidRequest):
                self._platform.admission.charge(tenant, scope.get(BODY_BYTES, 0))
            raise

    async def _accept(
        self, scope: Scope, receive: Receive, send: Send, asked_by: tuple[str, Tenant]
    ) -> Accepted | None:
        """None: the owner has answered, for it alone replaces jobs."""
        key, (key_id, tenant) = idempotency_key(scope), asked_by
        body, new = await self._read(scope, receive, tenant)
        is_here = self._passing.home_elsewhere(tenant) is None
        if new.unique is not None and is_here and replaces_others([new]):
            shard = self._platform.tenant_shards.of(tenant.id)
            if await self._relay.passed_on(scope, body, send, shard=shard):
                return None
        if key is not None:
            is_short = len(body) <= LIGHT_BYTES
            hashed = partial(hash_of, body, new.upload)
            body_hash = hashed() if is_short else await asyncio.to_thread(hashed)
            new = new._replace(idempotency_key=key, body_hash=body_hash)
        self._platform.revocation.check(key_id)  # the body may have been long on its way
        trace = trace_header(scope)
        if self._spans is not None:
            return await self._traced(asked_by, new, trace)
        return await self._submit(asked_by, new if trace is None else new._replace(trace=trace))

    async def _traced(
        self, asked_by: tuple[str, Tenant], new: NewJob, parent: bytes | None
    ) -> Accepted:
        assert self._spans is not None
        trace, span = self._spans.sends(parent, asked_by[1], new.type)
        if trace is not None:
            new = new._replace(trace=trace)
        if span is None:
            return await self._submit(asked_by, new)
        with span:
            verdict = await self._submit(asked_by, new)
            span.say({"messaging.message.id": verdict.id, "fairway.replayed": verdict.replayed})
            return verdict

    async def _submit(self, asked_by: tuple[str, Tenant], new: NewJob) -> Accepted:
        if asked_by[1].parts:
            part = part_for(self._platform.directory.parts, asked_by[1], new)
            asked_by = (asked_by[0], part)
        if len(new.payload) > self._inline_max or new.upload is not None:
            (verdict,) = await submit_large(
                self._platform, self._passing, asked_by, [new], self._schemas
            )
        else:
            (verdict,) = await self._passing.submit(asked_by[1], [new])
        if isinstance(verdict, FairwayError):
            raise verdict
        return verdict

    async def _read(self, scope: Scope, receive: Receive, tenant: Tenant) -> tuple[bytes, NewJob]:
        counted = (self._bodies, tenant.id)
        body = await read_body(scope, receive, self._body_max, if_larger=UPLOAD_IT, counted=counted)
        if len(body) <= LIGHT_BYTES and is_plain(body):
            return body, self._understand(body, plain=True)
        return body, await self._understand_with_care(tenant, body)

    async def _understand_with_care(self, tenant: Tenant, body: bytes) -> NewJob:
        """However short it is: that takes so long that to be refused is not free."""
        self._platform.admission.refuse_debtors(tenant)
        look = partial(self._understand, body, plain=False)
        try:
            if is_brief(body):
                return look()
            # a long look must not hold up everybody else
            return await self._platform.heavy.run(tenant.id, look, len(body))
        except InvalidRequest:
            self._platform.admission.charge_refused(tenant, 1)
            raise

    def _understand(self, body: bytes, *, plain: bool) -> NewJob:
        if not plain:
            weigh(body)
        new = new_job(decode(body), self._payload_max, self._registry)
        if not plain:
            look_at(body)
        if self._registry.schemas and new.upload is None:
            self._schemas.check(new.type, new.payload)
        return new

    async def _answer(
        self, scope: Scope, send: Send, asked_by: tuple[str, Tenant], verdict: Accepted
    ) -> None:
        wait, (key_id, tenant) = wait_seconds(scope), asked_by
        if tenant.parts:
            tenant = self._platform.directory.parts.with_job(tenant, verdict.id)
        sight: JobSight | None = None
        if self._passing.home_elsewhere(tenant):
            wait = 0  # a preference: the home is another region, which is asked by the job's id
        if wait and self._platform.waiting.has_slot("waits", tenant.id):
            give_back_room(scope)  # it is on disk: nothing of the body is held meanwhile
            with self._platform.waiting.slot("waits", tenant.id):
                sight = await self._result(key_id, tenant, verdict, wait)
        quota = rate_limit(self._platform.admission.quota(tenant))
        # Of a tenant in several shards the next job is for another owner.
        near = () if asked_by[1].parts else self._passing.owner_header(scope, tenant)
        limits = (*quota, *near)
        if sight is None:
            await _answer_accepted(scope, send, verdict, limits)
        else:
            view = await views.job_view(sight, self._platform.directory)
            status = 200 if view.finished_at else 202
            waited = (b"preference-applied", f"wait={wait}".encode())
            headers = [*_headers(verdict), *limits, (b"etag", etag(sight.version))]
            await send_bytes(send, status, messages.encode(view), [*headers, waited])

    async def _result(
        self, key_id: str, tenant: Tenant, verdict: Accepted, wait: int
    ) -> JobSight | None:
        """The job when it has ended or the wait is over; None if it cannot be told.

        That is so if its key was revoked meanwhile, or the store gives no answer: a refusal would
        make its caller send it again, as another.
        """
        try:
            async with self._platform.revocation.held(key_id):
                waits = self._platform.job_waits
                return await waits.job_when(tenant.id, verdict.id, wait_seconds=wait)
        except (Forbidden, Unavailable):
            return None  # the job is on disk all the same, and that is all there is to say


def look_at(body: bytes) -> None:
    if not is_plain(body):
        check_carefully(body)


async def _answer_accepted(
    scope: Scope, send: Send, verdict: Accepted, limits: tuple[Header, ...]
) -> None:
    body = b'{"id":"%b","state":"%b"}' % (verdict.id.encode(), verdict.state.encode())
    await send_whole(scope, send, 202, body, (*_headers(verdict), *limits))


def _headers(verdict: Accepted) -> list[Header]:
    headers = [JSON, (b"location", b"/v1/jobs/" + verdict.id.encode())]
    if verdict.replayed:
        headers.append(REPLAYED)
    return headers


def hash_of(body: bytes, upload: str | None) -> bytes:
    """Of an upload counts what is in it, which is added when that is known; not what it is called.

    So a job that is sent again, with its payload uploaded anew, is the same job.
    """
    if upload:
        body = body.replace(upload.encode(), b"")
    return hashlib.sha256(body).digest()


def decode(text: bytes | msgspec.Raw) -> JobRequest:
    try:
        return messages.decode_job(text)
    except UNDECODABLE as error:
        raise invalid(error, text) from None


def _marks(request: JobRequest) -> JobMarks:
    tags = list(dict.fromkeys(request.tags)) or None
    metadata = msgspec.json.encode(request.metadata) if request.metadata else None
    return JobMarks(tags, metadata, request.events or None)


def new_job(request: JobRequest, payload_bytes_max: int, registry: Registry) -> NewJob:
    pool = registry.pool_for(request.type, request.pool)
    payload = bytes(request.payload)
    if len(payload) > payload_bytes_max or payload[:1] != b"{":
        check_payload(payload, payload_bytes_max)
    seconds = request.timeout_seconds
    timeout_ms = None if seconds is None else max(1, round(seconds * 1000))
    lane = lane_of(request.fair_key) if request.fair_key else 0
    new = NewJob(request.type, pool, request.priority, timeout_ms, payload, lane)
    if request.payload_upload is not None:
        if payload != b"{}":
            raise InvalidRequest(
                "A job has a payload or a payload_upload, not both.", field="/payload_upload"
            )
        new = new._replace(upload=request.payload_upload)
    if request.tags or request.metadata or request.events:
        new = new._replace(marks=_marks(request))
    if request.limits:
        new = new._replace(limits=packed_limits(request.limits))
    if request.unique is not None:
        new = new._replace(unique=unique_wish(request.unique))
    if is_plainly_due(request):
        return new
    return new._replace(wish=wish_of(request))


def refuse_unique(new: NewJob, why: str) -> None:
    """A way in where it cannot be promised refuses it by name, and never drops it."""
    if new.unique is not None:
        raise InvalidRequest(why, field="/unique")
