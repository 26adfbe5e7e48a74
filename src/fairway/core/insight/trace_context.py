"""W3C trace context, as a job carries it: which trace it belongs to, and under which span.

`traceparent` is text on the wire and 25 bytes in memory and on disk. Whatever is not well formed is
no trace at all: the standard says to go on without it, so nothing here raises, and nobody is
refused for it. `tracestate` is not kept: it is other vendors' and has no bound that is worth a row.
"""

from __future__ import annotations

import re

TRACE_BYTES = 25  # trace id 16, span id 8, flags 1
TEXT_CHARACTERS = 55
TEXT_CHARACTERS_MAX = 256  # of a version to come, which may say more; what we know comes first

_SAMPLED, _RANDOM = 1, 2  # flags; the others must not be passed on
_FLAGS = TRACE_BYTES - 1
_FORM = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
    r"(?P<more>-.*)?",
    re.ASCII,
)


def trace_of(text: str) -> bytes | None:
    """None for what is not well formed."""
    if not TEXT_CHARACTERS <= len(text) <= TEXT_CHARACTERS_MAX:
        return None
    found = _FORM.fullmatch(text)
    if found is None or (found["version"] == "00" and found["more"] is not None):
        return None
    packed = bytearray.fromhex(found[2] + found[3] + found[4])
    packed[_FLAGS] &= _SAMPLED | _RANDOM
    return bytes(packed)


def traceparent_of(trace: bytes) -> str:
    digits = trace.hex()
    return f"00-{digits[:32]}-{digits[32:48]}-{digits[48:]}"


def is_sampled(trace: bytes) -> bool:
    """Whether whoever began it wants its spans."""
    return bool(trace[_FLAGS] & _SAMPLED)


def unsampled(trace: bytes) -> bytes:
    """The same trace, of which no spans are made from here on."""
    return trace[:_FLAGS] + bytes([trace[_FLAGS] & ~_SAMPLED])


def trace_id_of(trace: bytes) -> int:
    return int.from_bytes(trace[:16])


def span_id_of(trace: bytes) -> int:
    return int.from_bytes(trace[16:24])


def packed(trace_id: int, span_id: int, *, is_sampled: bool) -> bytes:
    return trace_id.to_bytes(16) + span_id.to_bytes(8) + bytes([int(is_sampled)])
