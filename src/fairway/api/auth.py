"""From an API key to who is asking. The tenant comes from the key and from nowhere else.

A browser that signed in shows a cookie in place of the key, where no key came and never to what is
for workers; what changes something needs the session's token against forgery beside it. An operator
may name a tenant to act for, in a header: with the operator's permissions, and under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from starlette.requests import Request

from fairway.api.endpoint import Endpoint, KeyScope
from fairway.api.http.asgi import CONNECTION, Scope
from fairway.api.http.headers import header
from fairway.api.http.sign_in_cookie import check_not_forged, token_in_cookie
from fairway.api.origin import origin_of, sender_of
from fairway.api.tenant_parts.meant import PART, part_meant, parts_asked
from fairway.core.audit import Actor, ActorKind
from fairway.core.backpressure.connections import address_of
from fairway.core.errors import Forbidden, Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.registry.sign_ins import session_over
from fairway.services.registry.tenants_and_keys import Directory
from fairway.wire.exchange import Hello

CALLER = "fairway.caller"  # in a scope: who was admitted
SESSION = "fairway.session"  # in a scope: the session by whose cookie
ACT_FOR = b"fairway-tenant"
READING = ("GET", "HEAD")


class _NoKey(Forbidden):
    """None came at all: a cookie may stand for one."""


class CookieSession(NamedTuple):
    """What a request was admitted by, if it was by a cookie."""

    token: str
    expires_at: datetime


def _unauthenticated(message: str) -> Forbidden:
    return Forbidden(message, code="UNAUTHENTICATED")


async def holder_of(text: str, address: str, platform: Platform) -> Principal | None:
    """Of a key not checked before. Nobody hears that a key is wrong before all of them are here."""
    are_all_here = platform.regions is None or platform.regions.knows_directory
    principal = await platform.directory.authenticate(text, address, is_complete=are_all_here)
    if principal is None and not are_all_here:
        raise Unavailable("This region does not know the directory's keys yet. Try again soon.")
    return principal


async def principal_of(scope: Scope, platform: Platform, shown: str | None = None) -> Principal:
    """Who holds the key of this request. A wrong key and an unknown one look the same.

    `shown`: a key that came by another way than the header.
    """
    text, directory = _key_in_header(scope) if shown is None else shown, platform.directory
    principal = directory.known(text)
    if principal is None:
        principal = await holder_of(text, caller_address(scope, platform), platform)
    if principal is None:
        raise _unauthenticated("This API key is not valid.")
    connection = scope.get(CONNECTION)
    if connection is not None and not connection.is_known:
        connection.proved(principal.holder)
    return principal


async def _signed_in(
    scope: Scope, platform: Platform, endpoint: Endpoint, missing: Forbidden
) -> Principal:
    """Who holds the session of this request's cookie."""
    token = token_in_cookie(scope)
    if token is None or not endpoint.takes_cookie:
        raise missing
    found = await platform.sign_ins.find(token, caller_address(scope, platform))
    if found is None:
        raise session_over()
    if scope["method"] not in READING:
        check_not_forged(scope, token)
    scope[SESSION] = CookieSession(token, found.expires_at)
    connection = scope.get(CONNECTION)
    if connection is not None and not connection.is_known:
        connection.proved(found.principal.holder)
    return found.principal


def _key_in_header(scope: Scope) -> str:
    value = header(scope, b"authorization")
    if value is None:
        sentence = "Send your API key as `Authorization: Bearer fw_…`."
        raise _NoKey(sentence, code="UNAUTHENTICATED")
    scheme, _, text = value.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise _unauthenticated("The Authorization header must be `Bearer fw_…`.")
    return text


async def admit(
    scope: Scope, platform: Platform, endpoint: Endpoint, shown: str | None = None
) -> Principal:
    """Who asks, if their key is of a kind that the endpoint takes and may do what it does."""
    try:
        principal = await principal_of(scope, platform, shown)
    except _NoKey as missing:
        principal = await _signed_in(scope, platform, endpoint, missing)
    if principal.scope not in endpoint.keys:
        principal = await _acting(scope, platform, endpoint, principal)
    if endpoint.permission not in principal.may:
        raise _lacking(endpoint, principal)
    if principal.tenant is not None and principal.tenant.parts:
        said, parts = header(scope, PART), platform.directory.parts
        part = part_meant(endpoint.call, scope["path"], said, principal.tenant, parts)
        principal = principal._replace(tenant=part)
    scope[CALLER] = principal
    return principal


async def _acting(
    scope: Scope, platform: Platform, endpoint: Endpoint, principal: Principal
) -> Principal:
    """An operator who acts for the tenant that it names, where a tenant's key is wanted."""
    named = header(scope, ACT_FOR)
    if principal.scope != "operator" or named is None or not endpoint.lets_operators_act:
        whose = " or ".join(_WHOSE[key] for key in endpoint.keys)
        raise Forbidden(f"This needs {whose} key; yours is for something else.")
    if endpoint.permission not in principal.may:  # before anything is told of the tenant
        raise _lacking(endpoint, principal)
    tenant = await platform.visits.begin(
        named.decode("latin-1"),
        actor_by(principal, scope, platform),
        is_reading=endpoint.permission == "read",
    )
    return principal._replace(tenant=tenant)


def _lacking(endpoint: Endpoint, principal: Principal) -> Forbidden:
    has = ", ".join(sorted(principal.may)) or "none"
    return Forbidden(
        f"This needs a key with the permission {endpoint.permission!r}; yours has {has}."
    )


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
    return actor_by(caller_of(request), request.scope, platform_of(request))


def actor_by(caller: Principal, scope: Scope, platform: Platform) -> Actor:
    kind: ActorKind = "operator" if caller.scope == "operator" else "tenant"
    origin = origin_of(scope, platform.cluster.secret, platform.settings.trusted_proxies)
    return Actor(caller.key_id, caller.name, kind, *origin)


def tenant_of(request: Request) -> Tenant:
    return tenant_in_force(caller_of(request), platform_of(request).directory)


def part_ids(request: Request, tenant: Tenant) -> list[TenantId]:
    """The parts of whoever was admitted that are meant: itself, as a rule; of a tenant in several
    shards all of them, or the one that is named."""
    parts = platform_of(request).directory.parts
    return [one.id for one in parts_asked(header(request.scope, PART), tenant, parts)]


#: What a handler may ask for, by the names of its parameters.
GIVEN: dict[str, Callable[[Request], Any]] = {
    "request": lambda request: request,
    "platform": platform_of,
    "principal": caller_of,
    "tenant": tenant_of,
    "actor": actor_of,
}


def caller_address(scope: Scope, platform: Platform) -> str:
    """By which guesses are counted: not all who come through one proxy pay for one of them."""
    return address_of(sender_of(scope, platform.cluster.secret, platform.settings.trusted_proxies))
