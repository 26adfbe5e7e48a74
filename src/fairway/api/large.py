"""What is too large for a request or a row: uploads, and payloads and results piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairway.api.auth import tenant_of, worker_of
from fairway.api.decoding import json_reply
from fairway.api.jobs import job_id
from fairway.core.errors import Forbidden, InvalidRequest, NotFound
from fairway.services.platform import Platform
from fairway.wire.storage import UploadMade


async def new_upload(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    upload = await platform.vault.new_upload(tenant.id, platform.settings.url)
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
    query = request.query_params
    numbers = [query.get("tenant", ""), query.get("expires", "")]
    if not all(text.isascii() and text.isdigit() and len(text) < 16 for text in numbers):
        raise Forbidden("The address was not signed by this server, or was changed.")
    tenant, expires = map(int, numbers)
    limit = platform.settings.upload_bytes_max
    await platform.vault.take_upload(
        tenant, request.path_params["id"], expires, query.get("signature", ""),
        _within(request, limit),
    )  # fmt: skip
    return Response(status_code=204)


async def _within(request: Request, limit: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise InvalidRequest(f"An upload has at most {limit} bytes.", code="PAYLOAD_TOO_LARGE")
        if piece:
            yield piece


async def payload(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    sight = await platform.insight.job(tenant.id, job_id(request.path_params["id"]))
    return _pieces(platform, sight.record.payload)


async def result(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    sight = await platform.insight.job(tenant.id, job_id(request.path_params["id"]))
    if sight.record.result is None:
        raise NotFound("The job has no result: it has not succeeded.")
    return _pieces(platform, sight.record.result)


async def payload_for_worker(request: Request) -> Response:
    """As `payload`, for the worker that got the lease."""
    platform: Platform = request.app.state.platform
    principal = await worker_of(request.scope, platform.directory)
    tenant = platform.directory.id_of(request.query_params.get("tenant", ""))
    if principal.tenant is not None and principal.tenant.id != tenant:
        raise Forbidden("This worker's key belongs to another tenant.")
    sight = await platform.insight.job(tenant, job_id(request.path_params["id"]))
    return _pieces(platform, sight.record.payload)


def _pieces(platform: Platform, text: bytes) -> Response:
    return StreamingResponse(platform.vault.read(text), media_type="application/json")
