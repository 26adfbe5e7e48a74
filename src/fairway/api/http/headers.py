"""Request headers with a meaning: Prefer, Idempotency-Key, If-None-Match."""

from __future__ import annotations

import re

from fairway.api.http.asgi import Scope, header
from fairway.core.errors import InvalidRequest

WAIT_MAX_SECONDS = 60
KEY_LENGTH_MAX = 255

_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,4})")


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
    if not 1 <= len(key) <= KEY_LENGTH_MAX or not key.isprintable() or not key.isascii():
        raise InvalidRequest(
            f"Idempotency-Key must be 1 to {KEY_LENGTH_MAX} printable ASCII characters.",
            code="INVALID_HEADER",
            field="Idempotency-Key",
        )
    return key


def etag(version: str) -> bytes:
    return f'W/"{version}"'.encode()


def known_versions(scope: Scope) -> list[str]:
    """The versions in `If-None-Match`: what the client has already, or `*` for any."""
    value = header(scope, b"if-none-match")
    if value is None:
        return []
    tags = value.decode("latin-1").split(",")
    return [tag.strip().removeprefix("W/").strip('"') for tag in tags]
