"""Signatures by Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, as `v1,<base64>`.

A receiver that knows the secret finds out that we sent it, that nobody changed it, and when it was
sent. While a secret is replaced there is one signature for each, and the receiver may know either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32  # of those that are made here; the standard has 24 to 64


def secret_text(chance: bytes) -> str:
    """A secret as it is shown, of so many random bytes."""
    return PREFIX + base64.b64encode(chance).decode()


def secret_bytes(secret: str) -> bytes:
    """Raises ValueError for a text that is none."""
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook's secret is whsec_ and base64") from None


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def signatures(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The header's value: one of each secret, with spaces between."""
    return " ".join(signature(one, message_id, timestamp, body) for one in secrets)


def is_signed(
    given: str, secrets: Sequence[str], message_id: str, timestamp: int, body: bytes
) -> bool:
    """Whether one of the given signatures is of one of these secrets. Takes the same time for
    every wrong one."""
    wanted = [signature(one, message_id, timestamp, body).encode() for one in secrets]
    found = [text.encode() for text in given.split(" ")]
    return sum(hmac.compare_digest(mine, theirs) for mine in wanted for theirs in found) > 0
