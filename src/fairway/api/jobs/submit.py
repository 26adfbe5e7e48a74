"""The front door's hot half: `POST /v1/jobs` and `POST /v1/jobs/batch`, as raw ASGI callables."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TypeAlias

import msgspec

from fairway.api.auth import key_and_tenant_of
from fairway.api.http.asgi import (
    BODY_BYTES,
    JSON,
    Header,
    Receive,
    Scope,
    Send,
    give_back_room,
    rate_limit,
    read_body,
    send_bytes,
    send_whole,
)
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.http.headers import etag, idempotency_key, wait_seconds
from fairway.api.jobs import views
from fairway.api.jobs.batch_reply import all_replayed, reply_of
from fairway.api.jobs.submit_large import submit_large
from fairway.api.jobs.times import is_plainly_due, wish_of
from fairway.api.payloads.body_cost import (
    CAREFUL_BYTES_MAX,
    LIGHT_BYTES,
    UPLOAD_IT,
    is_large,
    weigh,
)
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.core.backlog.lanes import lane_of
from fairway.core.errors import FairwayError, Forbidden, InvalidRequest
from fairway.core.quota import Quota
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.services.registry.job_types import Registry
from fairway.services.submit.submission_group import Accepted, NewJob
from fairway.wire import messages
from fairway.wire.heft import BATCH_VALUES_MAX
from fairway.wire.messages import BATCH_MAX, JobRequest
from fairway.wire.payload import (
    DEPTH_MAX,
    brackets,
    check_carefully,
    check_payload,
    is_plain,
    is_strict,
)

ENVELOPE_BYTES_MAX = 8 << 10  # of one job, around its payload
SHALLOW_BYTES = 2 * DEPTH_MAX  # a text this short cannot nest too deeply
SPLIT_IT = "Send several smaller batches, and large payloads to where POST /v1/uploads says."
REPLAYED = (b"idempotent-replayed", b"true")
PART_ITEMS = 32  # of a batch, between two looks at the clock

Wanted: TypeAlias = NewJob | FairwayError  # of a batch: a job, or what is wrong with it


class SubmitJob:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._registry = platform.registry
        self._schemas = PayloadSchemas(platform.registry.schemas)
        self._bodies = platform.bodies.requests
        settings = platform.settings
        self._payload_max = settings.payload_bytes_max
        self._inline_max = settings.inline_bytes_max
        # What can only be refused need not be read, nor looked at with care.
        self._body_max = min(settings.body_bytes_max, self._payload_max + ENVELOPE_BYTES_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key_id, tenant = await key_and_tenant_of(scope, self._platform.directory)
        try:
            if is_large(scope):
                self._platform.admission.refuse_debtors(tenant)
            verdict = await self._accept(scope, receive, (key_id, tenant))
            await self._answer(scope, send, (key_id, tenant), verdict)
        except FairwayError as error:
            self._platform.admission.count_refusal(tenant, error.code)
            if isinstance(error, InvalidRequest):
                self._platform.admission.charge(tenant, scope.get(BODY_BYTES, 0))
            raise

    async def _accept(
        self, scope: Scope, receive: Receive, asked_by: tuple[str, Tenant]
    ) -> Accepted:
        key_id, tenant = asked_by
        key, counted = idempotency_key(scope), (self._bodies, tenant.id)
        body = await read_body(scope, receive, self._body_max, if_larger=UPLOAD_IT, counted=counted)
        plain = len(body) <= LIGHT_BYTES and is_plain(body)
        if plain or len(body) <= CAREFUL_BYTES_MAX:
            new = self._understand(body, plain=plain)
        else:  # a long look must not hold up everybody else
            look = partial(self._understand, body, plain=False)
            new = await self._platform.heavy.run(tenant.id, look, len(body))
        if key is not None:
            is_short = len(body) <= LIGHT_BYTES
            hashed = partial(_hash, body, new.upload)
            body_hash = hashed() if is_short else await asyncio.to_thread(hashed)
            new = new._replace(idempotency_key=key, body_hash=body_hash)
        self._platform.revocation.check(key_id)  # the body may have been long on its way
        if len(new.payload) > self._inline_max or new.upload is not None:
            (verdict,) = await submit_large(self._platform, asked_by, [new], self._schemas)
        else:
            (verdict,) = await self._platform.submissions.submit(tenant, [new])
        if isinstance(verdict, FairwayError):
            raise verdict
        return verdict

    def _understand(self, body: bytes, *, plain: bool) -> NewJob:
        if not plain:
            weigh(body)
        new = new_job(decode(body), self._payload_max, self._registry)
        if not plain:
            _look_at(body)
        if self._registry.schemas and new.upload is None:
            self._schemas.check(new.type, new.payload)
        return new

    async def _answer(
        self, scope: Scope, send: Send, asked_by: tuple[str, Tenant], verdict: Accepted
    ) -> None:
        wait, (key_id, tenant) = wait_seconds(scope), asked_by
        sight: JobSight | None = None
        if wait and self._platform.waiting.has_place("waits", tenant.id):
            give_back_room(scope)  # it is on disk: nothing of the body is held meanwhile
            with self._platform.waiting.place("waits", tenant.id):
                sight = await self._result(key_id, tenant, verdict, wait)
        quota = self._platform.admission.quota(tenant)
        if sight is None:
            await _answer_accepted(scope, send, verdict, quota)
        else:
            view = await views.job_view(sight, self._platform.directory)
            status = 200 if view.finished_at else 202
            waited = (b"preference-applied", f"wait={wait}".encode())
            headers = [*_headers(verdict), *rate_limit(quota), (b"etag", etag(sight.version))]
            await send_bytes(send, status, messages.encode(view), [*headers, waited])

    async def _result(
        self, key_id: str, tenant: Tenant, verdict: Accepted, wait: int
    ) -> JobSight | None:
        """The job when it has ended or the wait is over; None if its key was revoked meanwhile."""
        try:
            async with self._platform.revocation.held(key_id):
                insight = self._platform.insight
                return await insight.job_when(tenant.id, verdict.id, wait_seconds=wait)
        except Forbidden:
            return None  # the job is on disk all the same, and that is all there is to say


def _look_at(body: bytes) -> None:
    if not is_plain(body):
        check_carefully(body)


async def _answer_accepted(scope: Scope, send: Send, verdict: Accepted, quota: Quota) -> None:
    body = b'{"id":"%b","state":"%b"}' % (verdict.id.encode(), verdict.state.encode())
    await send_whole(scope, send, 202, body, (*_headers(verdict), *rate_limit(quota)))


def _headers(verdict: Accepted) -> list[Header]:
    headers = [JSON, (b"location", b"/v1/jobs/" + verdict.id.encode())]
    if verdict.replayed:
        headers.append(REPLAYED)
    return headers


class SubmitBatch:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._schemas = PayloadSchemas(platform.registry.schemas)
        self._body_max = platform.settings.body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key_id, tenant = await key_and_tenant_of(scope, self._platform.directory)
        try:
            if is_large(scope):
                self._platform.admission.refuse_debtors(tenant)
            wanted = await self._read(scope, receive, tenant)
            self._platform.revocation.check(key_id)  # the body may have been long on its way
            await self._submit(scope, send, (key_id, tenant), wanted)
        except FairwayError as error:
            self._platform.admission.count_refusal(tenant, error.code)
            if isinstance(error, InvalidRequest):
                self._platform.admission.charge(tenant, scope.get(BODY_BYTES, 0))
            raise

    async def _read(self, scope: Scope, receive: Receive, tenant: Tenant) -> list[Wanted]:
        key = idempotency_key(scope)
        counted = (self._platform.bodies.requests, tenant.id)
        body = await read_body(scope, receive, self._body_max, if_larger=SPLIT_IT, counted=counted)
        plain = len(body) <= LIGHT_BYTES and is_strict(body)
        if plain or len(body) <= CAREFUL_BYTES_MAX:
            return await self._understand_in_parts(tenant, body, key, plain=plain)
        # a long look must not hold up everybody else
        look = partial(self._understand, body, key)
        return await self._platform.heavy.run(tenant.id, look, len(body))

    async def _submit(
        self, scope: Scope, send: Send, asked_by: tuple[str, Tenant], wanted: list[Wanted]
    ) -> None:
        key, (_, tenant) = idempotency_key(scope), asked_by
        good = [item for item in wanted if isinstance(item, NewJob)]
        inline_max = self._platform.settings.inline_bytes_max
        if any(len(new.payload) > inline_max or new.upload is not None for new in good):
            answers = await submit_large(self._platform, asked_by, good, self._schemas)
        else:
            answers = await self._platform.submissions.submit(tenant, good) if good else []
        if len(good) < len(wanted):
            verdicts = iter(answers)
            answers = [one if isinstance(one, FairwayError) else next(verdicts) for one in wanted]
        bad = 0
        for answer in answers:
            if isinstance(answer, FairwayError):
                self._platform.admission.count_refusal(tenant, answer.code)
                bad += isinstance(answer, InvalidRequest)
        if bad:
            self._platform.admission.charge(tenant, scope[BODY_BYTES] * bad // len(answers))
        headers = [JSON, *rate_limit(self._platform.admission.quota(tenant))]
        if key and all_replayed(answers):
            headers.append(REPLAYED)
        await send_whole(scope, send, 200, messages.encode(reply_of(answers)), headers)

    async def _understand_in_parts(
        self, tenant: Tenant, body: bytes, key: str | None, *, plain: bool
    ) -> list[Wanted]:
        """In between other requests: ten thousand tiny jobs are a light body, and long work."""
        weigh(body, BATCH_VALUES_MAX, SPLIT_IT)
        texts = _items(body)
        self._platform.submissions.look(tenant, len(texts))  # to be refused must cost us little
        understand = self._reader(key, plain=plain)
        work, found = WorkInParts(), list[Wanted]()
        for start in range(0, len(texts), PART_ITEMS):
            found += map(understand, texts[start : start + PART_ITEMS], count(start))
            await work.let_others()
        return found

    def _understand(self, body: bytes, key: str | None) -> list[Wanted]:
        """In a thread, with care."""
        weigh(body, BATCH_VALUES_MAX, SPLIT_IT)
        return list(map(self._reader(key, plain=False), _items(body), count()))

    def _reader(self, key: str | None, *, plain: bool) -> Callable[[msgspec.Raw, int], Wanted]:
        """Each item as a job, or as what is wrong with it; by its text and its place."""
        bytes_max, registry = self._platform.settings.payload_bytes_max, self._platform.registry
        schemas = registry.schemas

        def understand(text: msgspec.Raw, place: int) -> Wanted:
            try:
                new = new_job(decode(text), bytes_max, registry)
                if not plain:
                    weigh(bytes(text))
                    _look_at(bytes(text))
                elif _may_be_deep(new.payload):
                    check_carefully(bytes(text))
                if schemas and new.upload is None:
                    self._schemas.check(new.type, new.payload)
                return _keyed(new, text, key, place) if key else new
            except FairwayError as error:
                return error

        return understand


def _may_be_deep(payload: bytes) -> bool:
    return len(payload) > SHALLOW_BYTES and brackets(payload) >= DEPTH_MAX


def _items(body: bytes) -> list[msgspec.Raw]:
    try:
        texts = messages.decode_batch(body).jobs
    except UNDECODABLE as error:
        raise invalid(error, body) from None
    if not 1 <= len(texts) <= BATCH_MAX:
        raise InvalidRequest(
            f"A batch holds 1 to {BATCH_MAX} jobs; this one has {len(texts)}.", field="/jobs"
        )
    return texts


def _keyed(new: NewJob, text: msgspec.Raw, key: str, place: int) -> NewJob:
    """A batch's key stands for each of its items by place, so a resent batch makes no doubles.

    The separator is no character that a key can hold: no other key is ever in the way.
    """
    return new._replace(
        idempotency_key=f"{key}\x1f{place}", body_hash=_hash(bytes(text), new.upload)
    )


def _hash(body: bytes, upload: str | None) -> bytes:
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
    if is_plainly_due(request):
        return new
    return new._replace(wish=wish_of(request))
