"""API keys: `fw_<scope>_<public part>_<secret>_<checksum>`.

The public part finds the key, the checksum refuses typos and guesses before any look-up, and only
the SHA-256 of the secret is kept: the secret is random, so a slow hash would add nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from typing import NamedTuple

SCOPES = ("tenant", "worker", "operator")


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
