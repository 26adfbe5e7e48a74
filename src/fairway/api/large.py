"""What is too large for a request or a row: uploads, and payloads and results piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairway.api.auth import tenant_of, worker_of
from fairway.api.decoding import json_reply
from fairway.api.jobs import job_id
from fairway.api.pace import Paced, body_pieces
from fairway.api.plain import ClientGone, Receive, Scope, Send, problem_reply
from fairway.core.connections import STAFF
from fairway.core.errors import (
    FairwayError,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.uploads import Address
from fairway.wire.storage import UploadMade

log = logger("large")


UPLOAD_SECONDS_MAX = 3600.0  # as long as an address is good for
UNWANTED_BYTES_MAX = 8 << 20


async def new_upload(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    upload = await platform.uploads.new(tenant.id, platform.settings.url)
    made = UploadMade(
        id=upload.id,
        url=upload.url,
        expires_at=upload.expires_at,
        size_bytes_max=platform.settings.upload_bytes_max,
    )
    return json_reply(made, 201)


async def put_upload(request: Request) -> Response:
    """No key: the address itself is signed, and good for one place and one hour."""
    platform: Platform = request.app.state.platform
    declared = _declared(request)
    pieces = body_pieces(Paced(request.receive, UPLOAD_SECONDS_MAX))
    try:
        address = _address(request)
        await platform.uploads.take(address, declared, pieces)
    except FairwayError as error:
        status, body, headers = problem_reply(error)
        fields = {name.decode(): value.decode() for name, value in headers}
        if not await _is_heard(error, declared, pieces):
            fields["connection"] = "close"
        return Response(body, status, headers=fields)
    return Response(status_code=204)


async def _is_heard(error: FairwayError, declared: int, pieces: AsyncIterator[bytes]) -> bool:
    """Who is still sending does not listen: the rest of a short body is read and thrown away."""
    if error.code == "REQUEST_TIMEOUT" or not 0 < declared <= UNWANTED_BYTES_MAX:
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
        raise Forbidden("The address was not signed by this server, or was changed.")
    tenant, expires = map(int, numbers)
    return Address(tenant, request.path_params["id"], expires, query.get("signature", ""))


def _declared(request: Request) -> int:
    """How many bytes are said to come; 0 when nothing is said."""
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


async def payload(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    sight = await platform.insight.job(tenant.id, job_id(request.path_params["id"]))
    return Download(platform, sight.record.payload, tenant.id)


async def result(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    sight = await platform.insight.job(tenant.id, job_id(request.path_params["id"]))
    if sight.record.result is None:
        raise NotFound("The job has no result: it has not succeeded.")
    return Download(platform, sight.record.result, tenant.id)


async def payload_for_worker(request: Request) -> Response:
    """As `payload`, for the worker that got the lease."""
    platform: Platform = request.app.state.platform
    principal = await worker_of(request.scope, platform.directory)
    tenant = platform.directory.id_of(request.query_params.get("tenant", ""))
    if principal.tenant is not None and principal.tenant.id != tenant:
        raise Forbidden("This worker's key belongs to another tenant.")
    sight = await platform.insight.job(tenant, job_id(request.path_params["id"]))
    return Download(platform, sight.record.payload, principal.holder, is_worker=True)


class Download(Response):
    """A text as it lies in the store, piece by piece; it has one place from the read to the end."""

    def __init__(
        self, platform: Platform, text: bytes, holder: int, *, is_worker: bool = False
    ) -> None:
        super().__init__()
        self._platform, self._text, self._holder = platform, text, holder
        self._is_worker = is_worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = "payloads" if self._holder == STAFF else "downloads"
        with ExitStack() as held:
            try:
                held.enter_context(self._platform.waiting.place(kind, self._holder))
            except LimitReached as error:
                if self._is_worker:  # it comes again
                    raise Unavailable(error.message, code="OVERLOADED") from None
                raise
            reading = await self._platform.vault.read(self._text)
            reply = StreamingResponse(
                _until_broken(reading.pieces),
                media_type="application/json",
                headers={"content-length": str(reading.size_bytes)},
            )
            await reply(scope, receive, send)


async def _until_broken(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A reply that has begun cannot become a problem: it is cut short, which its length shows."""
    try:
        async for piece in pieces:
            yield piece
    except FairwayError as error:
        log.error("reply cut short", error=error.message)
        raise ClientGone from error
