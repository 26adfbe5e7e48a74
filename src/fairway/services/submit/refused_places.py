"""Which jobs of a batch with one key were refused when it came first; plain functions.

A batch is the same when its body is, whatever is thought of its jobs by then: a schema may have
changed, or a pool have come. So what is kept beside the key is the digest of the body, and behind
it, as bits, the places of jobs that were not made.
"""

from __future__ import annotations

from collections.abc import Iterable

DIGEST_BYTES = 32


def with_refused(digest: bytes, places: Iterable[int]) -> bytes:
    """What is kept of a batch: its digest, and after that the places of what was refused."""
    bits = sum(1 << place for place in places)
    return digest + bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def is_same_body(one: bytes, other: bytes) -> bool:
    return one[:DIGEST_BYTES] == other[:DIGEST_BYTES]


def refused_places(kept: bytes) -> list[int]:
    bits = int.from_bytes(kept[DIGEST_BYTES:], "little")
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


def made_places(kept: bytes, made: int) -> list[int]:
    """The places of so many jobs that were made, the others refused."""
    refused = set(refused_places(kept))
    return [place for place in range(made + len(refused)) if place not in refused]
