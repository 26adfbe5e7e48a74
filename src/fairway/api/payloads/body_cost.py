"""What a body costs to look at, found out before it is looked at.

The codec does not let go of the interpreter while it decodes, not even in a thread: time that one
call of it takes is time in which nobody else is answered. It goes with the number of values, far
more than with bytes. So values are counted, which is cheap; too many are refused; and what is
large but allowed is looked at in a thread, one body at a time (`HeavyWork`), so that the loop waits
for one call of the codec at most.
"""

from __future__ import annotations

import codecs

from fairway.api.http.asgi import Scope, declared_bytes
from fairway.core.errors import InvalidRequest
from fairway.wire.value_count import VALUES_MAX, values_at_most

LIGHT_BYTES = 256 << 10  # looked at in between other requests
CAREFUL_BYTES_MAX = 16 << 10  # looked at with care in between other requests
CAREFUL_VALUES_MAX = 1_000  # a careful look takes half a millisecond for so many
CHUNK_BYTES = 64 << 10
UPLOAD_IT = (
    "Put a larger payload where POST /v1/uploads says, and send payload_upload in its place."
)


def is_large(scope: Scope) -> bool:
    """Whether a body is so long that refusing it costs, or does not say how long it is."""
    size = declared_bytes(scope)
    return size is None or size >= CAREFUL_BYTES_MAX


def is_brief(text: bytes) -> bool:
    """Whether a careful look at it is brief enough to take it in between other requests."""
    return len(text) <= CAREFUL_BYTES_MAX and values_at_most(text) <= CAREFUL_VALUES_MAX


def weigh(text: bytes, values_max: int = VALUES_MAX, instead: str = UPLOAD_IT) -> None:
    """Refuse a text with more values than this. Light ones are not even counted."""
    if not is_light(text, values_max):
        raise InvalidRequest(
            f"This holds more than {values_max} values, the most that is taken at once. {instead}",
            code="TOO_MANY_VALUES",
        )


def is_light(text: bytes, values_max: int = VALUES_MAX) -> bool:
    """Whether a text has no more values than this."""
    if len(text) <= values_max or _count(text, values_max) <= values_max:
        return True
    return _count_outside_strings(text, values_max) <= values_max


def check_text(text: bytes) -> None:
    """Refuse what is not UTF-8, in parts; raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), CHUNK_BYTES):
        decoder.decode(text[start : start + CHUNK_BYTES])
    decoder.decode(b"", final=True)


def _count(text: bytes, values_max: int) -> int:
    """Values at most, or the first number beyond the limit: what begins one may stand in a string,
    too."""
    count = start = 0
    while start < len(text) and count <= values_max:
        count += values_at_most(text[start : start + CHUNK_BYTES])
        start += CHUNK_BYTES
    return count


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
        count += values_at_most(b"".join(pieces[is_inside::2]))
        is_inside = (is_inside + len(pieces) - 1) % 2
    return count
