"""From an API key to who is asking. The tenant comes from the key and from nowhere else."""

from __future__ import annotations

from fairway.api.http.asgi import CONNECTION, Scope, header
from fairway.core.backpressure.connections import address_of
from fairway.core.errors import Forbidden
from fairway.core.tenant import Tenant
from fairway.services.registry.tenants_and_keys import Directory, Principal


def _unauthenticated(message: str) -> Forbidden:
    return Forbidden(message, code="UNAUTHENTICATED")


async def principal_of(scope: Scope, directory: Directory) -> Principal:
    """Who holds the key of this request. A wrong key and an unknown one look the same."""
    value = header(scope, b"authorization")
    if value is None:
        raise _unauthenticated("Send your API key as `Authorization: Bearer fw_…`.")
    scheme, _, text = value.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise _unauthenticated("The Authorization header must be `Bearer fw_…`.")
    principal = directory.known(text) or await directory.authenticate(text, _address(scope))
    if principal is None:
        raise _unauthenticated("This API key is not valid.")
    connection = scope.get(CONNECTION)
    if connection is not None and not connection.is_known:
        connection.proved(principal.holder)
    return principal


async def tenant_of(scope: Scope, directory: Directory) -> Tenant:
    _, tenant = await key_and_tenant_of(scope, directory)
    return tenant


async def key_and_tenant_of(scope: Scope, directory: Directory) -> tuple[str, Tenant]:
    """Also the id of the key: for what lasts, and ends with the key."""
    principal = await principal_of(scope, directory)
    if principal.scope != "tenant" or principal.tenant is None:
        raise Forbidden("This needs a tenant's key; yours is for something else.")
    return principal.key_id, directory.tenants[principal.tenant.id]  # the limits in force now


async def worker_of(scope: Scope, directory: Directory) -> Principal:
    principal = await principal_of(scope, directory)
    if principal.scope != "worker":
        raise Forbidden("This needs a worker's key; yours is for something else.")
    return principal


async def operator_of(scope: Scope, directory: Directory) -> Principal:
    principal = await principal_of(scope, directory)
    if principal.scope != "operator":
        raise Forbidden("This needs an operator's key; yours is for something else.")
    return principal


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return address_of(client[0]) if client else ""
