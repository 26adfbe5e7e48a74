"""A text that stands for another which is too large for a row: the name of its object.

It begins with a byte that no JSON text begins with, so one look tells them apart, and rows need no
other column for it.
"""

from __future__ import annotations

import json

from fairway.core.object_storage.object_names import ObjectFacts

MARK = b"\x01"


def refer(facts: ObjectFacts) -> bytes:
    """What a row keeps in place of the text itself."""
    words = {"object": facts.name, "size_bytes": facts.size_bytes, "sha256": facts.sha256.hex()}
    return MARK + json.dumps(words, separators=(",", ":")).encode()


def referred(text: bytes) -> ObjectFacts | None:
    """The object that a text stands for; None when it is the text itself."""
    if text[:1] != MARK:
        return None
    words = json.loads(text[1:])
    return ObjectFacts(words["object"], words["size_bytes"], bytes.fromhex(words["sha256"]))
