"""Which part of a tenant in several shards a request means, by its endpoint.

Every endpoint that a tenant's key opens is in one of these lists (a test holds it), so that none
answers for one part in silence. Whoever wants a part alone names it, by its place, in the header
`Fairway-Part`.
"""

from __future__ import annotations

from fairway.core.ids import parse_job_id
from fairway.core.tenant import Tenant, several_shards
from fairway.services.registry.tenant_parts import TenantParts

PART = b"fairway-part"

#: The part that the job is in, by the shard that its id names.
BY_JOB = frozenset(
    {
        "GET /v1/jobs/{id}",
        "HEAD /v1/jobs/{id}",
        "DELETE /v1/jobs/{id}",
        "PATCH /v1/jobs/{id}",
        "GET /v1/jobs/{id}/children",
        "GET /v1/jobs/{id}/payload",
        "GET /v1/jobs/{id}/result",
        "GET /v1/jobs/{id}/events",
        "GET /v1/jobs/{id}/explain",
        "GET /v1/jobs/{id}/logs",
        "GET /v1/dead-letters/{id}",
        "POST /v1/dead-letters/{id}/replay",
        "DELETE /v1/dead-letters/{id}",
    }
)
#: The first: what they are about is there and nowhere else, or they look at all parts themselves.
BY_FIRST = frozenset(
    {
        "POST /v1/jobs",
        "POST /v1/jobs/batch",
        "POST /v1/uploads",
        "POST /v1/flows",
        "GET /v1/flows",
        "POST /v1/flows/{id}/jobs",
        "GET /v1/flows/{id}",
        "GET /v1/flows/{id}/jobs",
        "DELETE /v1/flows/{id}",
        "POST /v1/flows/{id}/replay",
        "PUT /v1/schedules/{name}",
        "GET /v1/schedules/{name}",
        "GET /v1/schedules",
        "POST /v1/schedule-preview",
        "POST /v1/schedules/{name}/pause",
        "POST /v1/schedules/{name}/resume",
        "POST /v1/schedules/{name}/trigger",
        "POST /v1/schedules/{name}/backfill",
        "GET /v1/schedules/{name}/runs",
        "DELETE /v1/schedules/{name}",
        "GET /v1/usage",
        "GET /v1/prices",
        "GET /v1/spend-cap",
        "GET /v1/pauses",
        "POST /v1/pauses",
        "DELETE /v1/pauses",
        "GET /v1/pools",
        "GET /v1/audit",
        "GET /session",
        "DELETE /session",
    }
)
#: All of them, one after the other (`api/every_part.py`); or one, if it is named.
BY_ALL = frozenset(
    {
        "GET /v1/jobs",
        "POST /v1/jobs/wait",
        "GET /v1/dead-letters",
        "GET /v1/dead-letters/groups",
        "GET /v1/restraints",
        "DELETE /v1/quarantines/{type}",
        "GET /v1/usage/attempts",
        "GET /v1/statements/{month}",
        "GET /v1/overview",
        "GET /v1/history",
        "GET /v1/limits",
    }
)
#: All of them, which they look at by themselves; or one, if it is named.
BY_THEMSELVES = frozenset(
    {
        "GET /v1/events",
        "GET /v1/events/settings",
        "PUT /v1/events/settings",
        "GET /v1/events/stream",
        "GET /v1/events/socket",
        "GET /v1/live",
        "POST /v1/bulk-actions",
        "GET /v1/bulk-actions",
        "GET /v1/bulk-actions/{id}",
        "POST /v1/bulk-actions/{id}/abort",
        "POST /v1/webhooks",
        "GET /v1/webhooks",
        "GET /v1/webhooks/{id}",
        "PATCH /v1/webhooks/{id}",
        "POST /v1/webhooks/{id}/rotate",
        "POST /v1/webhooks/{id}/test",
        "GET /v1/webhooks/{id}/deliveries",
        "POST /v1/webhooks/{id}/deliveries/{delivery}/replay",
        "POST /v1/webhooks/{id}/replay",
        "DELETE /v1/webhooks/{id}",
    }
)
_JOB_AT = len(("", "v1", "jobs"))  # of a path's segments, the one with the id


def part_meant(
    call: str, path: str, said: bytes | None, tenant: Tenant, parts: TenantParts
) -> Tenant:
    """The part that answers; the first also where all do. `said` is the header's word."""
    if call in BY_JOB:
        job = parse_job_id(path.split("/")[_JOB_AT])
        return tenant if job is None else parts.with_job(tenant, job)
    if call in BY_FIRST:
        return tenant
    if said is not None:
        return _named(said, tenant, parts)
    return tenant


def parts_asked(said: bytes | None, tenant: Tenant, parts: TenantParts) -> list[Tenant]:
    """Those that somebody looks at who was admitted as `tenant`: all, or the one that is named."""
    if said is not None or not tenant.parts:
        return [tenant]
    return [parts.taking(tenant, place) for place in range(len(tenant.parts))]


def _named(said: bytes, tenant: Tenant, parts: TenantParts) -> Tenant:
    count = len(tenant.parts)
    if not (said.isdigit() and len(said) <= len(str(count)) and int(said) < count):
        raise several_shards(f"Fairway-Part is a number from 0 to {count - 1}.")
    return parts.all_of(tenant)[int(said)]
