"""What is known of an upload, kept beside it: what came in, and what a look at it found.

A look is good for what was looked at and nothing else: it goes by the version that the object has
in storage. A bucket lets its bearer put another body of the same size to the same address.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.object_storage.object_names import Seen

NO_FIT = "PAYLOAD_DOES_NOT_FIT"  # of the job's type, not of the upload
RULES_MAX = 8  # schemas that an upload is known to fit


class UploadFacts(NamedTuple):
    taken_sha256: bytes = b""  # of what came by way of this platform
    looked_at: Seen | None = None
    sha256: bytes = b""  # of what was looked at, when it can be a payload
    rules: tuple[str, ...] = ()  # digests of schemas that it was held against, too
    flaw: str = ""  # why it cannot be a payload
    flaw_code: str = ""

    def says_enough(self, seen: Seen, rule: str) -> bool:
        """Whether there is nothing to find out about what lies there now."""
        return self.looked_at == seen and bool(self.flaw or not rule or rule in self.rules)

    def found(self, seen: Seen, sha256: bytes, rule: str) -> UploadFacts:
        """It can be a payload."""
        rules = self.rules if self.looked_at == seen else ()
        more = (rule,) if rule else ()
        rules = (*(one for one in rules if one != rule), *more)[-RULES_MAX:]
        return UploadFacts(self.taken_sha256, seen, sha256, rules)

    def flawed(self, seen: Seen, error: InvalidRequest) -> UploadFacts:
        return UploadFacts(self.taken_sha256, seen, flaw=error.message, flaw_code=error.code)

    def is_damaged(self, sha256: bytes) -> bool:
        """Whether what was found is not what came in."""
        return self.taken_sha256 not in (b"", sha256)

    def raise_flaw(self) -> None:
        if self.flaw:
            raise InvalidRequest(self.flaw, code=self.flaw_code, field="/payload_upload")

    def text(self) -> bytes:
        digests = {"taken_sha256": self.taken_sha256.hex(), "sha256": self.sha256.hex()}
        return json.dumps(self._asdict() | digests).encode()


def upload_facts(text: bytes | None) -> UploadFacts:
    """All that is known; nothing at first."""
    if not text:
        return UploadFacts()
    facts = json.loads(text)
    looked_at = facts["looked_at"]
    return UploadFacts(
        bytes.fromhex(facts["taken_sha256"]),
        None if looked_at is None else Seen(*looked_at),
        bytes.fromhex(facts["sha256"]),
        tuple(facts["rules"]),
        facts["flaw"],
        facts["flaw_code"],
    )
