"""Where a request comes from, for the audit and for counting guesses, and its id.

The address is the connection's own, unless a proxy that the operator trusts says whom it speaks
for, or a server of this cluster passes the request on and proves that it is one.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias

from fairway.api.http.asgi import Scope
from fairway.api.http.headers import header

REQUEST_ID = "fairway.request_id"  # in a scope, once somebody asked for it
ORIGIN = b"x-fairway-origin"  # from server to server: address and request id
SECRET = b"x-fairway-cluster"
FORWARDED_FOR = b"x-forwarded-for"
ADDRESS_MAX = 64  # characters
HOPS_MAX = 32

Network: TypeAlias = IPv4Network | IPv6Network


class Origin(NamedTuple):
    address: str
    request_id: str


def origin_of(scope: Scope, secret: str, proxies: str) -> Origin:
    """`secret` is the cluster's; `proxies` are the networks of trusted ones, with commas."""
    if (passed := _passed_on(scope, secret)) is not None:
        scope[REQUEST_ID] = passed.request_id
        return passed
    return Origin(_spoken_by(scope, proxies), request_id_of(scope))


def sender_of(scope: Scope, secret: str, proxies: str) -> str:
    """The address alone."""
    passed = _passed_on(scope, secret)
    return _spoken_by(scope, proxies) if passed is None else passed.address


def _spoken_by(scope: Scope, proxies: str) -> str:
    client = scope.get("client")
    peer = client[0] if client else ""
    said = (header(scope, FORWARDED_FOR) or b"").decode("latin-1")
    return speaker(peer, said, networks(proxies))


def request_id_of(scope: Scope) -> str:
    """The same for as long as the request lasts: in the audit, in the reply, in a problem."""
    found: str = scope.setdefault(REQUEST_ID, "") or secrets.token_hex(8)
    scope[REQUEST_ID] = found
    return found


def passing_on(scope: Scope, secret: str, proxies: str) -> tuple[tuple[bytes, bytes], ...]:
    """Headers that tell the owner where a request came from."""
    origin = origin_of(scope, secret, proxies)
    told = f"{origin.request_id} {origin.address}".encode("latin-1", "replace")
    return ((SECRET, secret.encode()), (ORIGIN, told))


def speaker(peer: str, forwarded_for: str, trusted: Iterable[Network]) -> str:
    """Who speaks: the peer; behind trusted proxies the last that none of them vouches for."""
    nearest_first = [*reversed(forwarded_for.split(",")[-HOPS_MAX:])] if forwarded_for else []
    found = peer
    for hop in nearest_first:
        if not _is_in(found, trusted) or not _is_address(hop.strip()):
            break
        found = hop.strip()
    return found[:ADDRESS_MAX]


@cache
def networks(text: str) -> tuple[Network, ...]:
    """ValueError for what is none."""
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def _passed_on(scope: Scope, secret: str) -> Origin | None:
    told = header(scope, ORIGIN)
    if told is None or not hmac.compare_digest(header(scope, SECRET) or b"", secret.encode()):
        return None
    request_id, _, address = told.decode("latin-1").partition(" ")
    return Origin(address[:ADDRESS_MAX], request_id[:ADDRESS_MAX])


def _is_in(address: str, trusted: Iterable[Network]) -> bool:
    if not _is_address(address):
        return False
    found = ip_address(address.partition("%")[0])
    return any(found.version == one.version and found in one for one in trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True
