"""What an operator can do: tenants, tiers and pauses (`tenancy.py`), and keys."""

from __future__ import annotations

from fairway.api.reference.registry import REGISTRY
from fairway.api.reference.shape import Group, Operation, Parameter, Reply
from fairway.api.reference.tenancy import BODY, TENANCY
from fairway.wire.operator import KeyAdded, NewKey

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
    problems=(*BODY, "NOT_FOUND"),
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
    about="Tenants, tiers, pauses, pools, job types, keys. Most need the operator's key, which"
    " `fairway up` shows when it makes it and keeps in `client.json` of its data folder.",
    operations=(*TENANCY, *REGISTRY, ADD_KEY, REVOKE_KEY),
)
