"""How much of a tenant's outbox comes in at a time, and when its transactions are told: no more.

What was committed is never dropped for being too much: it waits until there is room. So the bound
is on what is taken in, and it has two edges, or it would be crossed with every job that leaves.
"""

from __future__ import annotations

WAITING_JOBS_MAX = 100_000  # of one tenant, beyond which its transactions are refused
WAITING_BYTES_MAX = 1 << 30


def jobs_to_move(most: int, *, tokens_left: int, depth: int, depth_limit: int) -> int:
    """So many jobs of a tenant may come in now, by its rate and by its depth limit."""
    return max(0, min(most, tokens_left, depth_limit - depth))


def is_full(jobs: int, size_bytes: int, *, was_full: bool) -> bool:
    """Whether a tenant's transactions are refused; once they are, until half of it is gone."""
    parts = 2 if was_full else 1
    return jobs * parts > WAITING_JOBS_MAX or size_bytes * parts > WAITING_BYTES_MAX
