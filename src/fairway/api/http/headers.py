"""Headers with a meaning.

Prefer, Idempotency-Key, If-None-Match, traceparent; RateLimit, Retry-After, ETag.
"""

from __future__ import annotations

import re
from math import ceil
from typing import TypeAlias

from starlette.types import Scope

from fairway.core.backpressure.rate_limit import Quota
from fairway.core.errors import InvalidRequest
from fairway.core.insight.trace_context import trace_of

Header: TypeAlias = tuple[bytes, bytes]

HEADERS = "fairway.headers"  # in a scope: by name
WAIT_MAX_SECONDS = 60
KEY_LENGTH_MAX = 255

_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,4})")


def header(scope: Scope, name: bytes) -> bytes | None:
    """A request's header; of several with one name, the first."""
    known: dict[bytes, bytes] | None = scope.get(HEADERS)
    if known is None:  # a request is asked for half a dozen of them
        known = scope[HEADERS] = dict(reversed(scope["headers"]))
    return known.get(name)


# -- of requests ---------------------------------------------------------------------------------


def wait_seconds(scope: Scope) -> int:
    """`Prefer: wait=N` (RFC 7240), at most a minute; 0 when not asked."""
    value = header(scope, b"prefer")
    found = _WAIT.search(value) if value else None
    return min(int(found[1]), WAIT_MAX_SECONDS) if found else 0


def idempotency_key(scope: Scope) -> str | None:
    """`Idempotency-Key` (draft -07): a quoted string; unquoted is taken as well."""
    value = header(scope, b"idempotency-key")
    if value is None:
        return None
    key = value.decode("latin-1").strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not is_key(key):
        raise InvalidRequest(
            f"Idempotency-Key must be 1 to {KEY_LENGTH_MAX} printable ASCII characters.",
            code="INVALID_HEADER",
            field="Idempotency-Key",
        )
    return key


def is_key(text: str) -> bool:
    return 1 <= len(text) <= KEY_LENGTH_MAX and text.isprintable() and text.isascii()


def trace_header(scope: Scope) -> bytes | None:
    """`traceparent` (W3C trace context); one that is not well formed is as good as none."""
    value = header(scope, b"traceparent")
    return None if value is None else trace_of(value.decode("latin-1").strip())


def known_versions(scope: Scope) -> list[str]:
    """The versions in `If-None-Match`: what the client has already, or `*` for any."""
    value = header(scope, b"if-none-match")
    if value is None:
        return []
    tags = value.decode("latin-1").split(",")
    return [tag.strip().removeprefix("W/").strip('"') for tag in tags]


# -- of replies ----------------------------------------------------------------------------------


def etag(version: str) -> bytes:
    return f'W/"{version}"'.encode()


def retry_after(seconds: float) -> Header:
    """Rounded up: who comes back when told to must not be too early."""
    return (b"retry-after", str(max(1, ceil(seconds))).encode())


def rate_limit(quota: Quota) -> tuple[Header, Header]:
    """`RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers), in jobs."""
    return (
        (b"ratelimit-policy", b'"jobs";q=%d;w=%d' % (quota.burst, quota.window_seconds)),
        (b"ratelimit", b'"jobs";r=%d;t=%d' % (quota.left, quota.full_in_seconds)),
    )
