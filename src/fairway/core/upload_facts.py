"""What is known of an upload, kept beside it: size, digest, and what a look at it found."""

from __future__ import annotations

import json
from typing import NamedTuple

from fairway.core.errors import InvalidRequest


class UploadFacts(NamedTuple):
    size_bytes: int
    sha256: bytes
    is_looked_at: bool = False  # all of it, by the rule for payloads
    flaw: str = ""  # why it cannot be a payload
    flaw_code: str = ""

    def raise_flaw(self) -> None:
        if self.flaw:
            raise InvalidRequest(self.flaw, code=self.flaw_code, field="/payload_upload")

    def text(self) -> bytes:
        facts = self._asdict() | {"sha256": self.sha256.hex()}
        return json.dumps(facts).encode()


def upload_facts(text: bytes | None, size_bytes: int) -> UploadFacts | None:
    """None when nothing is known of what is there now."""
    facts = json.loads(text) if text else {}
    if facts.get("size_bytes") != size_bytes:
        return None
    return UploadFacts(**facts | {"sha256": bytes.fromhex(facts["sha256"])})
