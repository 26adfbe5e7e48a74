"""What is too large for a request or a row: uploads, and payloads and results piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairway.api import endpoint_parts as parts
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import CONNECTION, ClientGone, Receive, Scope, Send, problem_reply
from fairway.api.http.decoding import json_reply
from fairway.api.http.slow_senders import Paced, body_pieces
from fairway.api.jobs.jobs import job_id
from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import (
    FairwayError,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.object_storage.uploads import Address, unsigned
from fairway.services.platform import Platform
from fairway.wire.storage import UploadMade

log = logger("large")


UPLOAD_SECONDS_MAX = 3600.0  # as long as an address is good for
UNWANTED_BYTES_MAX = 8 << 20
OVER_AT_ONCE = ("REQUEST_TIMEOUT", "UNAUTHENTICATED")  # too slow, or its key was revoked meanwhile


_UPLOAD_ID = "2026-01-31.5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70"
OF_OBJECTS = ("NOT_FOUND", "OBJECT_GONE", "OBJECT_DAMAGED")
PAYLOAD = Reply(200, "The payload.", example={"to": "ada@example.com"}, schema={"type": "object"})


@Endpoint(
    "POST /v1/uploads",
    keys=("tenant",),
    permission="submit",
    reply=Reply(
        201,
        "Where to put it.",
        UploadMade,
        {
            "id": _UPLOAD_ID,
            "url": "https://storage.example.com/…",
            "expires_at": "2026-01-31T13:00:00Z",
            "size_bytes_max": 1 << 30,
        },
    ),
    problems=("UPLOAD_QUOTA_EXCEEDED", "STORAGE_UNAVAILABLE", "DISK_FULL"),
)
async def new_upload(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get an address for a large payload

    For payloads over 8 MB or 100 000 values. PUT the JSON object to `url` before `expires_at` (an
    hour, or 15 minutes where storage is a bucket), then submit a job with `payload_upload` in
    place of `payload`. The address needs no key: keep it to yourself. It ends with the key that
    asked for it, unless it is a bucket's. Smaller payloads need none of this.

    An address takes one body, of `size_bytes_max` at most; a larger one is refused with 413, and
    one that comes at less than 64 KB a second, 15 s of silence apart, is cut off. Few may be on
    their way at a time (`TOO_MANY_UPLOADS`). It is kept for a day or two: until then jobs can be
    submitted with it. It is checked when its first job is submitted, and no more after that; one
    of up to 8 MB and 100 000 values also against the schema of its type.
    """
    platform.admission.disk_reserve.check()
    upload = await platform.large_data.uploads.new(
        tenant.id, caller_of(request).key_id, platform.settings.programs_url
    )
    made = UploadMade(
        id=upload.id,
        url=upload.url,
        expires_at=upload.expires_at,
        size_bytes_max=platform.settings.upload_bytes_max,
    )
    return json_reply(made, 201)


@Endpoint("PUT /v1/uploads/{id}", is_public=False)
async def put_upload(request: Request) -> Response:
    """No key: the address itself is signed, and good for one place, as long as its key is."""
    platform: Platform = request.app.state.platform
    declared = _declared(request)
    pieces = body_pieces(Paced(request.receive, UPLOAD_SECONDS_MAX))
    try:
        address = _address(request)
        await _check_key(platform, address)
        async with platform.revocation.held(address.key_id):
            room = platform.admission.disk_reserve
            await platform.large_data.uploads.take(address, declared, _while_room(room, pieces))
    except FairwayError as error:
        status, body, headers = problem_reply(error)
        fields = {name.decode(): value.decode() for name, value in headers}
        if not await _is_heard(error, declared, pieces):
            fields["connection"] = "close"
        return Response(body, status, headers=fields)
    return Response(status_code=204)


async def _while_room(room: DiskReserve, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What is uploaded may lie on the disk of the database: the last of it is not for uploads."""
    async for piece in pieces:
        room.check()
        yield piece


async def _check_key(platform: Platform, address: Address) -> None:
    platform.large_data.uploads.check(
        address
    )  # first: only who has a signed address may ask the store
    if not await platform.directory.is_valid(address.key_id):
        raise Forbidden("The API key that asked for this address was revoked; ask with another.")


async def _is_heard(error: FairwayError, declared: int, pieces: AsyncIterator[bytes]) -> bool:
    """Who is still sending does not listen: the rest of a short body is read and thrown away."""
    if error.code in OVER_AT_ONCE or not 0 < declared <= UNWANTED_BYTES_MAX:
        return False
    try:
        async for _ in pieces:
            pass
    except InvalidRequest:  # it came too slowly
        return False
    return True


def _address(request: Request) -> Address:
    query = request.query_params
    numbers = [query.get("tenant", ""), query.get("expires", "")]
    if not all(text.isascii() and text.isdigit() and len(text) < 16 for text in numbers):
        raise unsigned()
    tenant, expires = map(int, numbers)
    key_id, signature = query.get("key", ""), query.get("signature", "")
    return Address(TenantId(tenant), key_id, request.path_params["id"], expires, signature)


def _declared(request: Request) -> int:
    """How many bytes are said to come; 0 when nothing is said."""
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


@Endpoint(
    "GET /v1/jobs/{id}/payload",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    reply=PAYLOAD,
    problems=(*OF_OBJECTS, "TOO_MANY_WAITING", "STORAGE_UNAVAILABLE"),
)
async def get_payload(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get the payload of a job

    As it came, however large it is.
    """
    sight = await platform.job_lookup.job(tenant.id, job_id(request.path_params["id"]))
    return Download(platform, sight.record.payload, (caller_of(request).key_id, tenant.id))


@Endpoint(
    "GET /v1/jobs/{id}/result",
    keys=("tenant",),
    parameters=(parts.JOB_PATH,),
    reply=Reply(
        200, "The result, whatever JSON it is.", example={"message_id": "m-8841"}, schema={}
    ),
    problems=(*OF_OBJECTS, "TOO_MANY_WAITING", "STORAGE_UNAVAILABLE"),
)
async def get_result(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get the result of a job

    What the handler returned, however large it is.
    """
    sight = await platform.job_lookup.job(tenant.id, job_id(request.path_params["id"]))
    if sight.record.result is None:
        raise NotFound("The job has no result: it has not succeeded.")
    return Download(platform, sight.record.result, (caller_of(request).key_id, tenant.id))


class Download(Response):
    """A text as it lies in the store, piece by piece; it has one place from the read to the end.

    It ends with the key that asked for it: what was not sent by then is not sent any more.
    """

    def __init__(
        self,
        platform: Platform,
        text: bytes,
        asked_by: tuple[str, TenantId],
        *,
        is_worker: bool = False,
    ) -> None:
        super().__init__()
        self._platform, self._text = platform, text
        self._key_id, self._holder = asked_by
        self._is_worker = is_worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = "payloads" if self._holder == STAFF else "downloads"
        with ExitStack() as held:
            try:
                held.enter_context(self._platform.waiting.slot(kind, self._holder))
            except LimitReached as error:
                if self._is_worker:  # it comes again
                    raise Unavailable(error.message, code="OVERLOADED") from None
                raise
            watched = _Watched(send)
            try:
                async with self._platform.revocation.held(self._key_id):
                    await self._send(scope, receive, watched)
            except Forbidden as error:
                if not watched.has_begun:
                    raise
                scope[CONNECTION].cut()  # what waits to be read must not be read any more
                raise ClientGone from error

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        reading = await self._platform.large_data.payloads.read(self._text)
        async with aclosing(_until_broken(reading.pieces)) as pieces:
            reply = StreamingResponse(
                pieces,
                media_type="application/json",
                headers={"content-length": str(reading.size_bytes)},
            )
            await reply(scope, receive, send)


class _Watched:
    """A `send` that knows whether the reply has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Any) -> None:
        self.has_begun = True
        await self._send(message)


async def _until_broken(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A reply that has begun cannot become a problem: it is cut short, which its length shows."""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
    except FairwayError as error:
        log.error("reply cut short", error=error.message)
        raise ClientGone from error
