"""Tenants, tiers, limits and pauses, as operations."""

from __future__ import annotations

from typing import Any

from fairway.api.reference import shared
from fairway.api.reference.shape import Operation, Parameter, Reply
from fairway.wire.tenancy import (
    Limits,
    NewTenant,
    Pause,
    PauseList,
    TenantAdded,
    TenantChange,
    TenantView,
    TierList,
    TierTerms,
    TierView,
)

BODY = ("INVALID_JSON", "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
        "REQUEST_TIMEOUT")  # fmt: skip

_ACME: dict[str, Any] = {
    "id": 7,
    "name": "acme",
    "tier": "pro",
    "weight": 100,
    "floor_per_mille": 10,
    "cap": None,
    "reserved": {},
    "rate_per_second": 10_000,
    "burst": 100_000,
    "depth_limit": 10_000_000,
}
_PRO: dict[str, Any] = {
    "weight": 100,
    "group": "",
    "floor_per_mille": 10,
    "cap": None,
    "rate_per_second": 10_000,
    "burst": 100_000,
    "depth_limit": 10_000_000,
}
_TENANT = Parameter(
    name="name", place="path", about="The tenant's name.", example="acme", shell="$TENANT"
)

ADD_TENANT = Operation(
    name="addTenant",
    method="POST",
    path="/v1/tenants",
    summary="Add a tenant",
    about="Adds a customer and makes its first key. The key is in this reply and nowhere else:"
    " only a hash of it is kept. Its tier says what it is entitled to; each value can be its own.",
    key="operator",
    body=NewTenant,
    body_example={"name": "acme", "tier": "pro"},
    replies=(
        Reply(
            status=201,
            about="The tenant and its key.",
            kind=TenantAdded,
            example=_ACME | {"api_key": "fw_tenant_3fa9c1d2_…"},
        ),
    ),
    problems=(*BODY, "CONFLICT", "UNKNOWN_POOL"),
)

GET_TENANT = Operation(
    name="getTenant",
    method="GET",
    path="/v1/tenants/{name}",
    summary="One tenant",
    about="A tenant with the values in force.",
    key="operator",
    parameters=(_TENANT,),
    replies=(Reply(status=200, about="The tenant.", kind=TenantView, example=_ACME),),
    problems=("NOT_FOUND",),
)

CHANGE_TENANT = Operation(
    name="changeTenant",
    method="PATCH",
    path="/v1/tenants/{name}",
    summary="Change a tenant",
    about="New terms hold at once, for the jobs already queued too; on other servers within two"
    " seconds. What is left out stays; null takes the tier's value again.",
    key="operator",
    parameters=(_TENANT,),
    body=TenantChange,
    body_example={"tier": "enterprise", "reserved": {"short": 20}},
    replies=(Reply(status=200, about="The tenant as it is now.", kind=TenantView, example=_ACME),),
    problems=(*BODY, "NOT_FOUND", "UNKNOWN_POOL"),
)

LIST_TIERS = Operation(
    name="listTiers",
    method="GET",
    path="/v1/tiers",
    summary="All tiers",
    about="What the tenants of each tier are entitled to.",
    key="operator",
    replies=(
        Reply(
            status=200,
            about="The tiers, the lightest first.",
            kind=TierList,
            example={"tiers": [_PRO | {"name": "pro"}]},
        ),
    ),
)

PUT_TIER = Operation(
    name="putTier",
    method="PUT",
    path="/v1/tiers/{name}",
    summary="Make or change a tier",
    about="The whole of a tier's terms. They hold for its tenants at once, except where a tenant"
    " has a value of its own.",
    key="operator",
    parameters=(
        Parameter(name="name", place="path", about="The tier's name.", example="pro", shell="pro"),
    ),
    body=TierTerms,
    body_example=_PRO,
    replies=(Reply(status=200, about="The tier.", kind=TierView, example=_PRO | {"name": "pro"}),),
    problems=BODY,
)

LIMITS = Operation(
    name="getLimits",
    method="GET",
    path="/v1/limits",
    summary="Your limits",
    about="What you may do, how much of it is used, and how many submissions this server has"
    " refused since it started, by code.",
    key="tenant",
    replies=(
        Reply(
            status=200,
            about="The limits in force.",
            kind=Limits,
            example={
                "tier": "standard",
                "weight": 10,
                "rate_per_second": 100,
                "burst": 1_000,
                "jobs_left": 940,
                "depth": 12,
                "depth_limit": 10_000_000,
                "cap": None,
                "payload_bytes_max": 65_536,
                "payload_values_max": 100_000,
                "batch_jobs_max": 10_000,
                "batch_values_max": 300_000,
                "refused": {"TENANT_RATE_LIMIT_EXCEEDED": 3},
            },
        ),
    ),
)

_WHICH = tuple(
    Parameter(name=name, place="query", about=about, example=example, shell=shell)
    for name, about, example, shell in (
        ("tenant", "The tenant's name.", "acme", ""),
        ("type", "The job type.", "email.send", "email.send"),
        ("pool", "The pool.", "long", ""),
    )
)

LIST_PAUSES = Operation(
    name="listPauses",
    method="GET",
    path="/v1/pauses",
    summary="What is paused",
    about="An operator sees all pauses, a tenant its own.",
    key="operator",
    other_keys=("tenant",),
    replies=(
        Reply(
            status=200,
            about="The pauses in force.",
            kind=PauseList,
            example={"pauses": [{"tenant": "acme", "type": "email.send"}]},
        ),
    ),
    problems=shared.QUICK,
)

PAUSE = Operation(
    name="pause",
    method="POST",
    path="/v1/pauses",
    summary="Pause a tenant, a job type or a pool",
    about="Jobs that match all that is named are still accepted, and do not start; what runs, runs"
    " on. With a tenant's own key the pause covers that tenant's jobs only. A job type can be"
    " paused before its first job: look twice at its name, for one that is misspelt is paused too.",
    key="operator",
    other_keys=("tenant",),
    body=Pause,
    body_example={"type": "email.send"},
    replies=(Reply(status=201, about="It is paused.", kind=Pause, example={"type": "email.send"}),),
    problems=(
        *BODY, "NOT_FOUND", "UNKNOWN_POOL", "TOO_MANY_JOB_TYPES", "TOO_MANY_PAUSES", *shared.QUICK,
    ),
)  # fmt: skip

RESUME = Operation(
    name="resume",
    method="DELETE",
    path="/v1/pauses",
    summary="Resume",
    about="Ends a pause: name what was named when it was made.",
    key="operator",
    other_keys=("tenant",),
    parameters=_WHICH,
    replies=(
        Reply(status=200, about="It runs again.", kind=Pause, example={"type": "email.send"}),
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND", "UNKNOWN_POOL", *shared.QUICK),
)

TENANCY = (
    ADD_TENANT, GET_TENANT, CHANGE_TENANT, LIST_TIERS, PUT_TIER, LIMITS, LIST_PAUSES, PAUSE, RESUME,
)  # fmt: skip
