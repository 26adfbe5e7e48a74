"""What a browser shows in place of a key: a session's token, or the code of a link that opens one.

Both are 32 random bytes, kept as their SHA-256 only. The token against forged requests comes from
the session's by HMAC: pages of the dashboard are told it, another site's cannot make it up, and
nothing more has to be kept.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Literal, TypeAlias

SignInKind: TypeAlias = Literal["session", "link"]

SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 600
PER_KEY_MAX = 20  # of either kind; the oldest gives way

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def is_token(text: str) -> bool:
    """Whether it has the form of one: whatever has not is worth no question to the store."""
    return _TOKEN.fullmatch(text) is not None


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def csrf_token(token: str) -> str:
    """What a request must show beside the cookie when it changes something."""
    return hmac.digest(token.encode(), b"fairway csrf", "sha256").hex()


def is_csrf_token(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), csrf_token(token).encode())
