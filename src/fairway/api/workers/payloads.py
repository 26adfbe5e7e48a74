"""Payloads that are too large for a lease: a worker fetches them here, piece by piece."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, query
from fairway.api.jobs.jobs import job_id
from fairway.api.jobs.uploads import OF_OBJECTS, PAYLOAD, Download
from fairway.api.workers.checkpoints import tenant_of_lease
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal


@Endpoint(
    "GET /v1/workers/{name}/payloads/{id}",
    keys=("worker",),
    parameters=(
        parts.WORKER_PATH,
        parts.JOB_PATH,
        query("tenant", "From the lease.", "acme", "acme"),
    ),
    reply=PAYLOAD,
    problems=(*OF_OBJECTS, "OVERLOADED", "STORAGE_UNAVAILABLE"),
)
async def get_lease_payload(request: Request, platform: Platform, principal: Principal) -> Response:
    """Get the payload of a lease

    When a lease has `payload_bytes`, the payload is here.
    """
    tenant = tenant_of_lease(platform, principal, request.query_params.get("tenant", ""))
    sight = await platform.job_lookup.job(tenant, job_id(request.path_params["id"]))
    asked_by = (principal.key_id, principal.holder)
    return Download(platform, sight.record.payload, asked_by, is_worker=True)
