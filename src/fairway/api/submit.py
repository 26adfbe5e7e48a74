"""The front door's hot half: `POST /v1/jobs` and `POST /v1/jobs/batch`, as raw ASGI callables."""

from __future__ import annotations

import hashlib
import re

import msgspec

from fairway.api import views
from fairway.api.auth import tenant_of
from fairway.api.headers import idempotency_key, wait_seconds
from fairway.api.plain import JSON, Receive, Scope, Send, read_body, send_bytes
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.pools import BY_NAME, SHORT
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.submission import Accepted, NewJob, Verdict
from fairway.wire import messages, problems
from fairway.wire.messages import BATCH_MAX, JobRequest
from fairway.wire.payload import check_carefully, check_payload, is_plain

_POINTER = re.compile(r" - at `\$(.*)`$")


class SubmitJob:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tenant = await tenant_of(scope, self._platform.directory)
        key, wait = idempotency_key(scope), wait_seconds(scope)
        settings = self._platform.settings
        body = await read_body(scope, receive, settings.body_bytes_max)
        plain = is_plain(body)
        request = decode(body)
        if not plain:
            check_carefully(body)
        new = new_job(request, settings.payload_bytes_max, plain=plain)
        if key is not None:
            new = new._replace(idempotency_key=key, body_hash=hashlib.sha256(body).digest())
        (verdict,) = await self._platform.submissions.submit(tenant, [new])
        if isinstance(verdict, FairwayError):
            raise verdict
        if wait:
            await self._answer_result(send, tenant, verdict, wait)
        else:
            await _answer_accepted(send, verdict)

    async def _answer_result(
        self, send: Send, tenant: Tenant, verdict: Accepted, wait: int
    ) -> None:
        sight = await self._platform.insight.job_when(tenant.id, verdict.id, wait_seconds=wait)
        view = await views.job_view(sight, self._platform.directory)
        status = 200 if view.finished_at else 202
        headers = [*_headers(verdict), (b"preference-applied", f"wait={wait}".encode())]
        await send_bytes(send, status, messages.encode(view), headers)


async def _answer_accepted(send: Send, verdict: Accepted) -> None:
    body = b'{"id":"%b","state":"queued"}' % verdict.id.encode()
    await send_bytes(send, 202, body, _headers(verdict))


def _headers(verdict: Accepted) -> list[tuple[bytes, bytes]]:
    headers = [JSON, (b"location", b"/v1/jobs/" + verdict.id.encode())]
    if verdict.replayed:
        headers.append((b"idempotent-replayed", b"true"))
    return headers


class SubmitBatch:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tenant = await tenant_of(scope, self._platform.directory)
        key = idempotency_key(scope)
        body = await read_body(scope, receive, self._platform.settings.body_bytes_max)
        wanted = self._understand(body, key)
        good = [item for item in wanted if isinstance(item, NewJob)]
        verdicts = iter(await self._platform.submissions.submit(tenant, good) if good else ())
        answers = [item if isinstance(item, FairwayError) else next(verdicts) for item in wanted]
        await send_bytes(send, 200, messages.encode(_reply(answers)))

    def _understand(self, body: bytes, key: str | None) -> list[NewJob | FairwayError]:
        """Each item as a job, or as what is wrong with it."""
        texts = _items(body)
        plain = is_plain_batch(body, texts)
        bytes_max = self._platform.settings.payload_bytes_max
        found: list[NewJob | FairwayError] = []
        for place, text in enumerate(texts):
            try:
                request = decode(text)
                if not plain:
                    check_carefully(bytes(text))
                new = new_job(request, bytes_max, plain=plain)
                found.append(_keyed(new, text, key, place) if key else new)
            except FairwayError as error:
                found.append(error)
        return found


def is_plain_batch(body: bytes, texts: list[msgspec.Raw]) -> bool:
    """The quick look for a whole batch at once; its depth is counted over all items."""
    try:
        same = messages.encode(msgspec.json.decode(body)) == body
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return same and b"\\u" not in body and body.count(b"[") + body.count(b"{") <= 8 * len(texts)


def _items(body: bytes) -> list[msgspec.Raw]:
    try:
        texts = messages.decode_batch(body).jobs
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid(error) from None
    if not 1 <= len(texts) <= BATCH_MAX:
        raise InvalidRequest(
            f"A batch holds 1 to {BATCH_MAX} jobs; this one has {len(texts)}.", field="/jobs"
        )
    return texts


def _keyed(new: NewJob, text: msgspec.Raw, key: str, place: int) -> NewJob:
    """A batch's key stands for each of its items by place, so a resent batch makes no doubles."""
    return new._replace(
        idempotency_key=f"{key}#{place}", body_hash=hashlib.sha256(bytes(text)).digest()
    )


def _reply(answers: list[Verdict]) -> messages.BatchReply:
    items = [
        messages.BatchItem(status=202, id=answer.id)
        if isinstance(answer, Accepted)
        else _refused_item(answer)
        for answer in answers
    ]
    accepted = sum(item.status == 202 for item in items)
    return messages.BatchReply(accepted=accepted, items=items)


def _refused_item(error: FairwayError) -> messages.BatchItem:
    problem = problems.problem_of(error)
    return messages.BatchItem(status=problem.status, problem=msgspec.to_builtins(problem))


def decode(text: bytes | msgspec.Raw) -> JobRequest:
    try:
        return messages.decode_job(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise invalid(error) from None


def invalid(error: Exception) -> InvalidRequest:
    """What the codec found, as an error that names the field."""
    if isinstance(error, RecursionError):
        return InvalidRequest("The body is nested too deeply.", code="INVALID_JSON")
    if not isinstance(error, msgspec.ValidationError):
        return InvalidRequest(str(error), code="INVALID_JSON")
    message = str(error)
    found = _POINTER.search(message)
    pointer = re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", found[1]).replace(".", "/") if found else ""
    named = re.search(r"field `(\w+)`", message)
    if named:
        pointer = f"{pointer}/{named[1]}"
    return InvalidRequest(_POINTER.sub("", message), field=pointer)


def new_job(request: JobRequest, payload_bytes_max: int, *, plain: bool) -> NewJob:
    pool = SHORT if request.pool is None else BY_NAME.get(request.pool)
    if pool is None:
        raise InvalidRequest(
            f"There is no pool {request.pool!r}; there are {', '.join(BY_NAME)}.",
            code="UNKNOWN_POOL",
            field="/pool",
        )
    payload = bytes(request.payload)
    if not plain or len(payload) > payload_bytes_max or payload[:1] != b"{":
        check_payload(payload, payload_bytes_max)
    seconds = request.timeout_seconds
    timeout_ms = None if seconds is None else max(1, round(seconds * 1000))
    return NewJob(request.type, pool.number, request.priority, timeout_ms, payload)
