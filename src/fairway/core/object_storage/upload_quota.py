"""What uploads may cost a tenant: bytes that are kept of them, and time on the way.

An upload is charged for its bytes, and for a megabyte at least, so that one bound holds both their
size and their number; how many are kept has a bound of its own as well, because they are counted
one by one. One that a job has taken over is kept as long as any other, and still counts
among all of them. A sender has a moment to begin and must then keep up a small rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

BODY, FACTS, CLAIMED = "body", "found", "claimed"  # the leaves of an upload

CHARGE_BYTES_MIN = 1 << 20
GRACE_SECONDS = 15.0
RATE_BYTES_PER_SECOND = 64 << 10


def charge_bytes(size_bytes: int) -> int:
    return max(size_bytes, CHARGE_BYTES_MIN)


class Charges(NamedTuple):
    """What the uploads of a tenant are charged."""

    unclaimed_bytes: int = 0  # those that no job has taken over
    kept_bytes: int = 0  # all of them
    kept: int = 0  # how many these are

    def plus(self, other: Charges) -> Charges:
        return Charges(*map(sum, zip(self, other, strict=True)))


def charges_of(listing: Iterable[tuple[str, int]]) -> Charges:
    bodies: dict[str, int] = {}
    claimed: set[str] = set()
    for name, size_bytes in listing:
        upload, _, leaf = name.rpartition("/")
        if leaf == BODY:
            bodies[upload] = charge_bytes(size_bytes)
        elif leaf == CLAIMED:
            claimed.add(upload)
    unclaimed = sum(charge for upload, charge in bodies.items() if upload not in claimed)
    return Charges(unclaimed, sum(bodies.values()), len(bodies))


def patience_seconds(received_bytes: int, seconds_max: float) -> float:
    """How long a sender of so many bytes may have kept us waiting, all in all."""
    return min(GRACE_SECONDS + received_bytes / RATE_BYTES_PER_SECOND, seconds_max)
