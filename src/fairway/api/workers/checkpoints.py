"""`/v1/workers/{name}/checkpoints`: workers save and load what running jobs need to go on.

Bytes pass through the server, so that workers need neither credentials nor the address of object
storage (decision 0008). A few transfers at a time, of each worker or tenant fewer still; the rest
wait for their turn unread. A sender that stops sending loses its place. Of a large body the lease
is judged as soon as it can be seen; one that is not in force is refused with the rest unread.
"""

from __future__ import annotations

from functools import partial

from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.asgi import Receive, read_body
from fairway.api.http.decoding import UNDECODABLE, invalid, json_reply
from fairway.api.http.slow_senders import Paced
from fairway.api.payloads.body_cost import LIGHT_BYTES, check_text, weigh
from fairway.api.payloads.text_checks import flaws_in
from fairway.core.errors import (
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.core.ids import Epoch, JobId, TenantId, parse_job_id
from fairway.core.run.lease import LeaseProof
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire import storage as wire
from fairway.wire.bounds import FLAW_CHARACTERS_MAX, cut

ENVELOPE_BYTES_MAX = 4 << 10  # around the state
SAVE_SECONDS_MAX = 60.0  # that a sender may keep us waiting for its body
VALUES_MAX = 4_000_000  # of a state: they are passed over, not decoded
SMALL_BYTES = 1 << 20  # so little that it needs no place of all, only one of its owner's


@Endpoint(
    "POST /v1/workers/{name}/checkpoints",
    keys=("worker",),
    parameters=(parts.WORKER_PATH,),
    body=wire.CheckpointSave,
    body_example={
        "job": parts.JOB_ID,
        "tenant": "acme",
        "epoch": 50331649,
        "token": parts.TOKEN,
        "number": 1,
        "state": {"rows_done": 250_000},
    },
    reply=Reply(
        201,
        "It is safe.",
        wire.CheckpointSaved,
        {"number": 1, "size_bytes": 20, "saved_at": "2026-01-31T12:05:00Z"},
    ),
    problems=("LEASE_LOST", "NO_ROOM", "OVERLOADED", "STORAGE_UNAVAILABLE", "DISK_FULL"),
)
async def save_checkpoint(request: Request, platform: Platform, principal: Principal) -> Response:
    """Save a checkpoint

    Keeps what a running job needs to go on from here, so that its next run does not begin at the
    beginning. Sending the same number again is harmless. The newest two of a job are kept.

    Only the holder of the lease in force can save: after `LEASE_LOST`, stop the run.
    """
    is_small, owner = _is_small(request), _owner(request, principal)
    counted = (platform.bodies.checkpoints, owner) if is_small else None  # large ones have places
    async with platform.large_data.checkpoints.transfers.held(owner, is_small=is_small):
        limit = platform.settings.checkpoint_bytes_max
        receive: Receive = Paced(request.receive, SAVE_SECONDS_MAX)
        if not is_small:
            receive = _Judged(receive, platform, principal)
        body_max = limit + ENVELOPE_BYTES_MAX
        body = await read_body(request.scope, receive, body_max, counted=counted)
        wanted = await _wanted(platform, principal, body)
        proof = _proof(platform, principal, wanted)
        if not is_small and not receive.has_judged:
            await platform.large_data.checkpoints.check_lease(proof)
        await _look_at(platform, principal, wanted.state)
        saved = await platform.large_data.checkpoints.save(
            proof, wanted.number, bytes(wanted.state)
        )
    size_bytes = saved.facts.size_bytes
    return json_reply(
        wire.CheckpointSaved(number=saved.number, size_bytes=size_bytes, saved_at=saved.saved_at),
        201,
    )


@Endpoint(
    "GET /v1/workers/{name}/checkpoints/{id}",
    keys=("worker",),
    parameters=(
        parts.WORKER_PATH,
        parts.JOB_PATH,
        query("tenant", "From the lease.", "acme", "acme"),
        query(
            "epoch",
            "From the lease.",
            "50331649",
            "50331649",
            schema={"type": "integer", "minimum": 1},
        ),
    ),
    reply=Reply(
        200,
        "The checkpoint.",
        wire.CheckpointFound,
        {
            "number": 1,
            "size_bytes": 20,
            "saved_at": "2026-01-31T12:05:00Z",
            "state": {"rows_done": 250_000},
            "lost": 0,
        },
    ),
    problems=(
        "NOT_FOUND",
        "CHECKPOINT_LOST",
        "INVALID_REQUEST",
        "OVERLOADED",
        "STORAGE_UNAVAILABLE",
    ),
)
async def load_checkpoint(request: Request, platform: Platform, principal: Principal) -> Response:
    """Load the checkpoint of a job

    The newest checkpoint of the runs before this one. Ask when the lease says `resumes`. Its
    checksum is verified on the way: if the newest is gone or broken, this is the one before it,
    `lost` says so, and the tenant gets an event `checkpoint_lost`. If none can be read any more,
    the answer is 404 with the code `CHECKPOINT_LOST`.
    """
    query = request.query_params
    tenant = tenant_of_lease(platform, principal, query.get("tenant", ""))
    job, epoch = _job(request.path_params["id"]), _epoch(query.get("epoch", ""))
    async with platform.large_data.checkpoints.transfers.held(_owner(request, principal)):
        found = await platform.large_data.checkpoints.load(tenant, job, epoch)
    if found is None:
        raise NotFound("The job has no checkpoint: it begins at the beginning.")
    saved = found.saved
    return json_reply(
        wire.CheckpointFound(
            number=saved.number,
            size_bytes=saved.facts.size_bytes,
            saved_at=saved.saved_at,
            state=Raw(found.body),
            lost=found.lost,
        )
    )


class _Judged:
    """A `receive` that judges the lease from a body's beginning, when it stands there.

    Our own workers put the state last. Of a body in another order the lease is judged when all of
    it is there.
    """

    def __init__(self, receive: Receive, platform: Platform, principal: Principal) -> None:
        self._receive = receive
        self._platform = platform
        self._principal = principal
        self._begun = b""
        self.has_judged = False

    async def __call__(self) -> Receive:
        message = await self._receive()
        if not self.has_judged and len(self._begun) < ENVELOPE_BYTES_MAX:
            self._begun += message.get("body", b"")[:ENVELOPE_BYTES_MAX]
            head = wire.decode_head(self._begun)
            if head is not None:
                self.has_judged = True
                proof = _proof(self._platform, self._principal, head)
                await self._platform.large_data.checkpoints.check_lease(proof)
        return message


def _proof(platform: Platform, principal: Principal, wanted: wire.CheckpointSave) -> LeaseProof:
    tenant = tenant_of_lease(platform, principal, wanted.tenant)
    return LeaseProof(tenant, _job(wanted.job), wanted.epoch, wanted.token)


def _owner(request: Request, principal: Principal) -> tuple[str, int | str]:
    """Whose places a transfer takes: a tenant's own workers have theirs together."""
    if principal.tenant is not None:
        return ("tenant", principal.tenant.id)
    return ("worker", request.path_params["name"])


def _is_small(request: Request) -> bool:
    declared = request.headers.get("content-length", "")
    return declared.isascii() and declared.isdigit() and int(declared[:20]) <= SMALL_BYTES


async def _wanted(platform: Platform, principal: Principal, body: bytes) -> wire.CheckpointSave:
    if len(body) <= LIGHT_BYTES:
        return _decoded(body)
    try:
        return await platform.heavy.run(principal.holder, partial(_decoded, body), len(body))
    except LimitReached as error:
        raise Unavailable(error.message, code="OVERLOADED") from None  # a worker comes again


async def _look_at(platform: Platform, principal: Principal, state: Raw) -> None:
    """As at a payload: the next run must be able to read it, in whichever language."""
    flaws = await flaws_in(platform.heavy, principal.holder, {0: state})
    if flaws:
        sentence = f"The state cannot be kept: {cut(flaws[0], FLAW_CHARACTERS_MAX)}"
        raise InvalidRequest(sentence, field="/state")


def _decoded(body: bytes) -> wire.CheckpointSave:
    weigh(body, VALUES_MAX, "Save less, or keep it elsewhere and save where it is.")
    try:
        check_text(body)  # the state is kept as it came: all of it must be text
        return wire.decode_save(body)
    except UNDECODABLE as error:
        raise invalid(error) from None


def tenant_of_lease(platform: Platform, principal: Principal, name: str) -> TenantId:
    """A worker of one tenant, or of some, has no business with another's jobs."""
    tenant, only = platform.directory.id_of(name), principal.only_tenants
    if principal.tenant is not None and principal.tenant.id != tenant:
        raise Forbidden("This worker's key belongs to another tenant.")
    if only is not None and tenant not in only:
        raise Forbidden("This worker's key does not serve that tenant.")
    return tenant


def _job(text: str) -> JobId:
    job = parse_job_id(text)
    if job is None:
        raise InvalidRequest(f"{text[:64]!r} is no job id.", field="/job")
    return job


def _epoch(text: str) -> Epoch:
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) < 1 << 63:
        return Epoch(int(text[:20]))
    raise InvalidRequest("epoch is the number from the lease.", field="epoch")
