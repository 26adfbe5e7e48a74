"""Room on a disk that is kept for what was accepted: jobs are refused before their outcomes are.

A database without room for a row refuses everybody, and one without room for its log stops. So the
last of the room is not given to new jobs: those that are there can end, and old ones be dropped.
"""

from __future__ import annotations

BACK_PART = 10  # as much room more than the reserve as this part of it, before jobs come in again


def is_low(free_bytes: int, reserve_bytes: int, *, was_low: bool) -> bool:
    """Whether no more jobs are to be accepted; not on and off with every row."""
    margin_bytes = reserve_bytes // BACK_PART if was_low else 0
    return free_bytes < reserve_bytes + margin_bytes
