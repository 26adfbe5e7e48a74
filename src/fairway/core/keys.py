"""API keys: `fw_<scope>_<public part>_<secret>_<checksum>`, and what each may do.

The public part finds the key, the checksum refuses typos and guesses before any look-up, and only
the SHA-256 of the secret is kept: the secret is random, so a slow hash would add nothing. The scope
says whose things a key opens; its permissions, what may be done with them.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.ids import TenantId

SCOPES = ("tenant", "worker", "operator")

#: read: look; submit: hand in jobs; operate: cancel, replay, pause, schedule; admin: tenants and
#: keys; worker: run jobs.
Permission: TypeAlias = Literal["read", "submit", "operate", "admin", "worker"]

#: All that a key of a scope may do; what a key may is some of it.
PERMISSIONS: dict[str, tuple[Permission, ...]] = {
    "tenant": ("read", "submit", "operate"),
    "worker": ("read", "worker"),
    "operator": ("read", "operate", "admin"),
}


class ApiKey(NamedTuple):
    scope: str
    id: str
    secret: str

    @classmethod
    def compose(cls, scope: str, key_id: str, secret: str) -> ApiKey:
        # The separator must stay unambiguous inside the secret.
        return cls(scope, key_id, secret.replace("_", "A").replace("-", "B"))

    @classmethod
    def parse(cls, text: str) -> ApiKey | None:
        """None when the text is no key of ours: wrong shape or wrong checksum."""
        parts = text.split("_")
        if not text.isascii() or len(parts) != 5 or parts[0] != "fw" or parts[1] not in SCOPES:
            return None
        key = cls(parts[1], parts[2], parts[3])
        return key if hmac.compare_digest(parts[4], key._checksum()) else None

    @property
    def text(self) -> str:
        return f"fw_{self.scope}_{self.id}_{self.secret}_{self._checksum()}"

    @property
    def secret_hash(self) -> bytes:
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, secret_hash: bytes) -> bool:
        return hmac.compare_digest(self.secret_hash, secret_hash)

    def _checksum(self) -> str:
        return f"{zlib.crc32(f'{self.scope}_{self.id}_{self.secret}'.encode()):08x}"


class KeyFacts(NamedTuple):
    """What may be told of a key."""

    id: str
    scope: str
    tenant: TenantId | None
    name: str
    permissions: Sequence[str] | None
    pools: Sequence[str] | None
    types: Sequence[str] | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    only_tenants: Sequence[TenantId] | None = None  # a shared worker's key runs jobs of these only


def permitted(scope: str, chosen: Iterable[str] | None) -> frozenset[str]:
    """What a key may do: all that its scope can, unless less was chosen; never more."""
    whole = frozenset[str](PERMISSIONS[scope])
    return whole if chosen is None else whole.intersection(chosen)
