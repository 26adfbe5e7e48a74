"""What a client may know of its rate limit: part of an answer, and of a refusal."""

from __future__ import annotations

from typing import NamedTuple


class Quota(NamedTuple):
    burst: int
    window_seconds: int  # in which an empty bucket fills
    left: int
    full_in_seconds: int
