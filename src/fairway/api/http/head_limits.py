"""What the head of a request may have, and what is said to who sends more; nothing is read here."""

from __future__ import annotations

from fairway.core.errors import InvalidRequest

HEAD_BYTES_MAX = 64 << 10
HEADERS_MAX = 128  # each is three objects, however short: a head of empty ones took 1.4 MB
TARGET_BYTES_MAX = 8 << 10  # of the request line: kept in three forms, and taken apart

HEAD_TOO_LARGE = InvalidRequest(
    f"Request line and headers have at most {HEAD_BYTES_MAX} bytes.", code="HEAD_TOO_LARGE"
)
TOO_MANY_HEADERS = InvalidRequest(
    f"A request has at most {HEADERS_MAX} headers, and {TARGET_BYTES_MAX} bytes in its address.",
    code="HEAD_TOO_LARGE",
)
HEAD_TOO_SLOW = InvalidRequest(
    "Request line and headers took too long to arrive.", code="REQUEST_TIMEOUT"
)
