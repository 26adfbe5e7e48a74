"""From an API key to who is asking. The tenant comes from the key and from nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from fairway.api.endpoint import Endpoint, KeyScope
from fairway.api.http.asgi import CONNECTION, Scope
from fairway.api.http.headers import header
from fairway.api.origin import origin_of
from fairway.core.audit import Actor, ActorKind
from fairway.core.backpressure.connections import address_of
from fairway.core.errors import Forbidden
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.registry.tenants_and_keys import Directory
from fairway.wire.exchange import Hello

CALLER = "fairway.caller"  # in a scope: who was admitted


def _unauthenticated(message: str) -> Forbidden:
    return Forbidden(message, code="UNAUTHENTICATED")


async def principal_of(scope: Scope, directory: Directory, shown: str | None = None) -> Principal:
    """Who holds the key of this request. A wrong key and an unknown one look the same.

    `shown`: a key that came by another way than the header.
    """
    text = _key_in_header(scope) if shown is None else shown
    principal = directory.known(text) or await directory.authenticate(text, _address(scope))
    if principal is None:
        raise _unauthenticated("This API key is not valid.")
    connection = scope.get(CONNECTION)
    if connection is not None and not connection.is_known:
        connection.proved(principal.holder)
    return principal


def _key_in_header(scope: Scope) -> str:
    value = header(scope, b"authorization")
    if value is None:
        raise _unauthenticated("Send your API key as `Authorization: Bearer fw_…`.")
    scheme, _, text = value.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise _unauthenticated("The Authorization header must be `Bearer fw_…`.")
    return text


async def admit(
    scope: Scope, directory: Directory, endpoint: Endpoint, shown: str | None = None
) -> Principal:
    """Who asks, if their key is of a kind that the endpoint takes and may do what it does."""
    principal = await principal_of(scope, directory, shown)
    if principal.scope not in endpoint.keys:
        whose = " or ".join(_WHOSE[key] for key in endpoint.keys)
        raise Forbidden(f"This needs {whose} key; yours is for something else.")
    if endpoint.permission not in principal.may:
        has = ", ".join(sorted(principal.may)) or "none"
        raise Forbidden(
            f"This needs a key with the permission {endpoint.permission!r}; yours has {has}."
        )
    scope[CALLER] = principal
    return principal


_WHOSE: dict[KeyScope, str] = {
    "tenant": "a tenant's",
    "worker": "a worker's",
    "operator": "an operator's",
}


def tenant_in_force(caller: Principal, directory: Directory) -> Tenant:
    """Whose key it is, with the limits as they are now."""
    assert caller.tenant is not None
    return directory.tenants[caller.tenant.id]


def check_bounds(principal: Principal, hello: Hello) -> None:
    """A worker's key may be bound to pools and job types: it offers to run nothing else."""
    pools, types = principal.pools, principal.types  # None: any
    beyond = [] if pools is None else sorted(set(hello.slots).difference(pools))
    if pools is not None and beyond:
        raise Forbidden(
            f"This key serves the pools {', '.join(sorted(pools))}, not {', '.join(beyond)}.",
            field="/hello/slots",
        )
    beyond = [] if types is None else sorted({one.name for one in hello.types}.difference(types))
    if types is not None and beyond:
        raise Forbidden(
            f"This key runs the job types {', '.join(sorted(types))}, not {', '.join(beyond)}.",
            field="/hello/types",
        )


# -- for handlers of Starlette's requests --------------------------------------------------------


def platform_of(request: Request) -> Platform:
    platform: Platform = request.app.state.platform
    return platform


def caller_of(request: Request) -> Principal:
    """Who was admitted: the endpoint says which kinds of key it takes."""
    caller: Principal = request.scope[CALLER]
    return caller


def actor_of(request: Request) -> Actor:
    """The same, as the audit names them."""
    caller, platform = caller_of(request), platform_of(request)
    kind: ActorKind = "operator" if caller.scope == "operator" else "tenant"
    origin = origin_of(request.scope, platform.cluster.secret, platform.settings.trusted_proxies)
    return Actor(caller.key_id, caller.name, kind, *origin)


def tenant_of(request: Request) -> Tenant:
    return tenant_in_force(caller_of(request), platform_of(request).directory)


#: What a handler may ask for, by the names of its parameters.
GIVEN: dict[str, Callable[[Request], Any]] = {
    "request": lambda request: request,
    "platform": platform_of,
    "principal": caller_of,
    "tenant": tenant_of,
    "actor": actor_of,
}


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return address_of(client[0]) if client else ""
