"""What a body costs to look at, found out before it is looked at.

The codec does not let go of the interpreter while it decodes, not even in a thread: time that one
call of it takes is time in which nobody else is answered. It goes with the number of values, far
more than with bytes. So values are counted, which is cheap; too many are refused; and what is
large but allowed is looked at in a thread, one body at a time (`HeavyLane`), so that the loop waits
for one call of the codec at most.
"""

from __future__ import annotations

import codecs

from fairway.api.plain import Scope, declared_bytes
from fairway.core.errors import InvalidRequest

LIGHT_BYTES = 256 << 10  # looked at in between other requests
VALUES_MAX = 100_000  # of a text that is decoded in one call
BATCH_VALUES_MAX = 300_000  # of one that is taken apart first
CHUNK_BYTES = 256 << 10
_BEGINS_VALUE = b",[{"


def is_large(scope: Scope) -> bool:
    """Whether a body is more than light, or does not say how long it is."""
    size = declared_bytes(scope)
    return size is None or size > LIGHT_BYTES


def weigh(text: bytes, values_max: int = VALUES_MAX) -> None:
    """Refuse a text with more values than this. Light ones are not even counted."""
    if len(text) <= values_max or _count(text) <= values_max:
        return
    if _count_outside_strings(text, values_max) > values_max:
        raise InvalidRequest(
            f"At most {values_max} values are taken in one body. Send several smaller ones, or put"
            " large data into storage and send a reference.",
            code="TOO_MANY_VALUES",
        )


def check_text(text: bytes) -> None:
    """Refuse what is not UTF-8, in parts; raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), CHUNK_BYTES):
        decoder.decode(text[start : start + CHUNK_BYTES])
    decoder.decode(b"", final=True)


def _count(text: bytes) -> int:
    """Values at most: what begins one may also stand in a string."""
    return sum(
        _count_part(text[start : start + CHUNK_BYTES]) for start in range(0, len(text), CHUNK_BYTES)
    )


def _count_part(part: bytes) -> int:
    return len(part) - len(part.translate(None, _BEGINS_VALUE))


def _count_outside_strings(text: bytes, values_max: int) -> int:
    """Of well-formed JSON the number of values, or the first number beyond the limit."""
    count = start = is_inside = 0
    while start < len(text) and count <= values_max:
        part = text[start : start + CHUNK_BYTES]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # do not part an escape
            part = text[start : start + CHUNK_BYTES + 1]
        start += len(part)
        if b"\\" in part:
            part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = part.split(b'"')
        count += _count_part(b"".join(pieces[is_inside::2]))
        is_inside = (is_inside + len(pieces) - 1) % 2
    return count
