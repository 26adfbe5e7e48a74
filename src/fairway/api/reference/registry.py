"""Pools, job types and the audit, as operations."""

from __future__ import annotations

from fairway.api.reference.shape import Operation, Parameter, Reply
from fairway.wire.registry import (
    AuditList,
    PoolList,
    PoolTerms,
    PoolView,
    TypeList,
    TypeSettings,
    TypeView,
)

_BODY = ("INVALID_JSON", "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
         "REQUEST_TIMEOUT")  # fmt: skip
_GPU = {
    "name": "gpu", "slots": 1, "lease_mode": "durable", "lease_seconds": 90.0,
    "run_mode": "process", "checkpoint": "expected", "attempts": 2, "pickup_target_seconds": 60.0,
    "labels": ["gpu"], "reserved_per_mille": 800, "fits_seconds": None,
}  # fmt: skip
_TYPE = {
    "name": "email.send", "registered": True, "pool": "short", "timeout_seconds": 10.0,
    "attempts": 5, "dependency": "smtp", "warm_key": "", "version": "2", "schema": None,
    "measured_pool": "medium", "measured_p95_seconds": 19.7, "moved_at": "2026-01-31T12:00:00Z",
}  # fmt: skip
_TYPE_PATH = Parameter(
    name="name", place="path", about="The job type.", example="email.send", shell="email.send"
)

LIST_POOLS = Operation(
    name="listPools",
    method="GET",
    path="/v1/pools",
    summary="List pools",
    about="Every pool there is: the built-in three, by duration, and those that were added.",
    key="operator",
    other_keys=("tenant", "worker"),
    replies=(
        Reply(status=200, about="The pools.", kind=PoolList, example={"pools": [_GPU]}),
    ),
)  # fmt: skip

PUT_POOL = Operation(
    name="putPool",
    method="PUT",
    path="/v1/pools/{name}",
    summary="Add or change a pool",
    about="By resource profile: gpu, cpp, contest. A worker serves it with `--pool gpu --label"
    " gpu`; slots of a worker that lacks one of the labels do not count. The built-in pools cannot"
    " be changed. Every server knows the change within two seconds.",
    key="operator",
    parameters=(
        Parameter(
            name="name", place="path", about="The pool's name.", example="gpu", shell="gpu"
        ),
    ),
    body=PoolTerms,
    body_example={"slots": 1, "lease_seconds": 90, "run_mode": "process", "labels": ["gpu"]},
    replies=(Reply(status=200, about="The pool as it is now.", kind=PoolView, example=_GPU),),
    problems=_BODY,
)  # fmt: skip

LIST_TYPES = Operation(
    name="listJobTypes",
    method="GET",
    path="/v1/job-types",
    summary="List job types",
    about="What was said of each, by its workers or by hand, and where the clock says it belongs.",
    key="operator",
    replies=(
        Reply(status=200, about="The types.", kind=TypeList, example={"job_types": [_TYPE]}),
    ),
)  # fmt: skip

ONE_TYPE = Operation(
    name="getJobType",
    method="GET",
    path="/v1/job-types/{name}",
    summary="Get a job type",
    about="What was said of it and what was measured. `measured_pool` beats what was declared.",
    key="operator",
    parameters=(_TYPE_PATH,),
    replies=(Reply(status=200, about="The type.", kind=TypeView, example=_TYPE),),
    problems=("NOT_FOUND",),
)

PUT_TYPE = Operation(
    name="putJobType",
    method="PUT",
    path="/v1/job-types/{name}",
    summary="Register a job type",
    about="Workers do this when they start; by hand it is needed for types that no worker of ours"
    " runs, or before the first one starts. The last word stands. With a `schema`, payloads that do"
    " not fit are refused when they are submitted.",
    key="operator",
    parameters=(_TYPE_PATH,),
    body=TypeSettings,
    body_example={"pool": "short", "timeout_seconds": 10, "schema": {"required": ["to"]}},
    replies=(Reply(status=200, about="The type as it is now.", kind=TypeView, example=_TYPE),),
    problems=(*_BODY, "UNKNOWN_POOL", "TOO_MANY_JOB_TYPES"),
)

DELETE_TYPE = Operation(
    name="deleteJobType",
    method="DELETE",
    path="/v1/job-types/{name}",
    summary="Take back a job type",
    about="Of a type that was put by hand, all that was said and measured is forgotten, and its"
    " name goes as others do. Its jobs are not touched: they run when a worker comes that runs"
    " them, and whoever names the type has it back, counted as theirs. A shared worker that is"
    " there registers it anew, with what its own code says. While a tenant names it, or a schedule"
    " or a pause does, it is listed, with `registered` false. Every server knows within two"
    " seconds.",
    key="operator",
    parameters=(_TYPE_PATH,),
    replies=(Reply(status=204, about="It is not registered any more."),),
    problems=("NOT_FOUND", "CONFLICT"),
)

AUDIT = Operation(
    name="listAudit",
    method="GET",
    path="/v1/audit",
    summary="Who changed what",
    about="Newest first: what operators changed, by key, and what the platform decided by itself,"
    " such as moving a job type to another pool.",
    key="operator",
    parameters=(
        Parameter(
            name="before", place="query", about="`next_before` of the page before.", example="4711",
            schema={"type": "integer", "minimum": 0},
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="A page of changes.",
            kind=AuditList,
            example={
                "entries": [
                    {
                        "id": 17,
                        "at": "2026-01-31T12:00:00Z",
                        "actor": "platform",
                        "action": "job_type_moved",
                        "subject": "email.send",
                        "detail": "From short to medium: 95 % of its runs end within 19.7 s.",
                    }
                ],
                "next_before": None,
            },
        ),
    ),
    problems=("INVALID_REQUEST",),
)  # fmt: skip

REGISTRY = (LIST_POOLS, PUT_POOL, LIST_TYPES, ONE_TYPE, PUT_TYPE, DELETE_TYPE, AUDIT)
