"""Which object storage belongs to which database: a marker object, known to both.

Servers of one database must share one object storage. A server that looks elsewhere would take data
that nobody finds, and miss what is there. So the storage carries a marker, and the database knows
it. A marker is random, so that a second storage never gets the same by accident, and signed with
the cluster's secret, so that one that was written just before a crash is known as ours.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum


class MarkerState(StrEnum):
    """What a storage is to a database."""

    OURS = "ours"
    FREE = "free"  # neither has a marker yet
    BEGUN = "begun"  # it has a marker of ours that the database has not heard of
    MISSING = "missing"  # the database has one, and this storage none
    FOREIGN = "foreign"  # it has the marker of another storage, or of another database


#: Why a storage is refused, and what to do. Tenants may read it: it names no address.
REFUSALS = {
    MarkerState.MISSING: "Large data is not taken here: this server's object storage is not the one"
    " that the database knows (it lacks the object `cluster`). The operator must give all servers"
    " of a database the same FAIRWAY_STORAGE_URL, and mount its disk.",
    MarkerState.FOREIGN: "Large data is not taken here: this server's object storage belongs to"
    " another database (its object `cluster` says so). The operator must give each database a"
    " storage of its own, and all servers of a database the same FAIRWAY_STORAGE_URL.",
}


def make_marker(secret: str, nonce: str) -> str:
    return f"{nonce}.{_signature(secret, nonce)}"


def standing_of(known: str | None, found: str | None, secret: str) -> MarkerState:
    """`known` to the database, `found` in the storage."""
    if found is None:
        return MarkerState.FREE if known is None else MarkerState.MISSING
    if known is not None:
        return MarkerState.OURS if found == known else MarkerState.FOREIGN
    nonce, _, signature = found.partition(".")
    is_signed = hmac.compare_digest(signature.encode(), _signature(secret, nonce).encode())
    return MarkerState.BEGUN if is_signed else MarkerState.FOREIGN


def _signature(secret: str, nonce: str) -> str:
    return hmac.new(secret.encode(), f"storage:{nonce}".encode(), hashlib.sha256).hexdigest()
