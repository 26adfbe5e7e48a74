"""`/v1/workers/{name}/checkpoints`: workers save and load what running jobs need to go on.

Bytes pass through the server, so that workers need neither credentials nor the address of object
storage (decision 0008). A few transfers at a time; the rest wait for their turn unread.
"""

from __future__ import annotations

from msgspec import Raw, Struct
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import worker_of
from fairway.api.decoding import UNDECODABLE, invalid
from fairway.api.plain import read_body
from fairway.core.errors import Forbidden, InvalidRequest, NotFound
from fairway.core.ids import JobId, parse_job_id
from fairway.core.lease import LeaseProof
from fairway.services.directory import Principal
from fairway.services.platform import Platform
from fairway.wire import storage as wire

ENVELOPE_BYTES_MAX = 4 << 10  # around the state


async def save(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    principal = await worker_of(request.scope, platform.directory)
    async with platform.checkpoints.transfers:
        limit = platform.settings.checkpoint_bytes_max
        body = await read_body(request.scope, request.receive, limit + ENVELOPE_BYTES_MAX)
        wanted = _decoded(body)
        tenant = _tenant(platform, principal, wanted.tenant)
        proof = LeaseProof(tenant, _job(wanted.job), wanted.epoch, wanted.token)
        saved = await platform.checkpoints.save(proof, wanted.number, bytes(wanted.state))
    size_bytes = saved.facts.size_bytes
    return _json(
        wire.CheckpointSaved(number=saved.number, size_bytes=size_bytes, saved_at=saved.saved_at),
        201,
    )


async def load(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    principal = await worker_of(request.scope, platform.directory)
    query = request.query_params
    tenant = _tenant(platform, principal, query.get("tenant", ""))
    job, epoch = _job(request.path_params["id"]), _epoch(query.get("epoch", ""))
    async with platform.checkpoints.transfers:
        found = await platform.checkpoints.load(tenant, job, epoch)
    if found is None:
        raise NotFound("The job has no checkpoint: it begins at the beginning.")
    saved = found.saved
    return _json(
        wire.CheckpointFound(
            number=saved.number,
            size_bytes=saved.facts.size_bytes,
            saved_at=saved.saved_at,
            state=Raw(found.body),
        )
    )


def _decoded(body: bytes) -> wire.CheckpointSave:
    try:
        body.decode()  # the state is kept as it came: all of it must be text
        return wire.decode_save(body)
    except UNDECODABLE as error:
        raise invalid(error) from None


def _tenant(platform: Platform, principal: Principal, name: str) -> int:
    """A worker of one tenant has no business with another's jobs."""
    tenant = platform.directory.id_of(name)
    if principal.tenant is not None and principal.tenant.id != tenant:
        raise Forbidden("This worker's key belongs to another tenant.")
    return tenant


def _job(text: str) -> JobId:
    job = parse_job_id(text)
    if job is None:
        raise InvalidRequest(f"{text[:64]!r} is no job id.", field="/job")
    return job


def _epoch(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) < 1 << 63:
        return int(text[:20])
    raise InvalidRequest("epoch is the number from the lease.", field="epoch")


def _json(value: Struct, status: int = 200) -> Response:
    return Response(wire.encode(value), status, media_type="application/json")
