"""What an operator can do: add tenants, make and revoke keys."""

from __future__ import annotations

from fairway.api.reference.shape import Group, Operation, Parameter, Reply
from fairway.wire.operator import KeyAdded, NewKey, NewTenant, TenantAdded

_BODY = ("INVALID_JSON", "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
         "REQUEST_TIMEOUT")  # fmt: skip

ADD_TENANT = Operation(
    name="addTenant",
    method="POST",
    path="/v1/tenants",
    summary="Add a tenant",
    about="Adds a customer and makes its first key. The key is in this reply and nowhere else:"
    " only a hash of it is kept.",
    key="operator",
    body=NewTenant,
    body_example={"name": "acme", "weight": 100},
    replies=(
        Reply(
            status=201,
            about="The tenant and its key.",
            kind=TenantAdded,
            example={
                "id": 7,
                "name": "acme",
                "weight": 100,
                "depth_limit": 10_000_000,
                "api_key": "fw_tenant_3fa9c1d2_…",
            },
        ),
    ),
    problems=(*_BODY, "CONFLICT"),
)

ADD_KEY = Operation(
    name="addKey",
    method="POST",
    path="/v1/keys",
    summary="Make a key",
    about="For a tenant's programs, or for workers: of one tenant, or of all when no tenant is"
    " named. To rotate a key, make the new one, move to it, revoke the old one.",
    key="operator",
    body=NewKey,
    body_example={"scope": "worker"},
    replies=(
        Reply(
            status=201,
            about="The key.",
            kind=KeyAdded,
            example={
                "id": "b81f02aa",
                "scope": "worker",
                "tenant": None,
                "api_key": "fw_worker_b81f02aa_…",
            },
        ),
    ),
    problems=(*_BODY, "NOT_FOUND"),
)

REVOKE_KEY = Operation(
    name="revokeKey",
    method="DELETE",
    path="/v1/keys/{id}",
    summary="Revoke a key",
    about="The key stops working on every server within five seconds.",
    key="operator",
    parameters=(
        Parameter(
            name="id",
            place="path",
            about="The key's public part: `fw_tenant_<id>_…`.",
            example="b81f02aa",
            shell="$KEY_ID",
        ),
    ),
    replies=(Reply(status=204, about="The key is revoked."),),
    problems=("NOT_FOUND",),
)

OPERATORS = Group(
    name="Operators",
    about="Tenants and their keys. These need the operator's key, which `fairway up` prints.",
    operations=(ADD_TENANT, ADD_KEY, REVOKE_KEY),
)
