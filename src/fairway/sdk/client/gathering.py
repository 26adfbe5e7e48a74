"""How many jobs of different callers travel in one call, and when a call goes. Pure.

A lone job goes at once. While calls are under way, jobs gather: a few more calls may go beside
them, when enough wait to be worth one. A call that is refused as a whole is sent again as smaller
ones, so that what one job did or lacked is told to its own caller alone.
"""

from __future__ import annotations

from collections.abc import Iterable

CALLS_MAX = 4  # under way at a time
JOBS_MAX = 500  # in one call
BYTES_MAX = 192 << 10  # in one call: servers look at so much without care (`body_cost.py`)
JOB_BYTES_MAX = 16 << 10  # larger jobs travel alone: others need not wait for their bytes
FURTHER_JOBS = 25  # that make a call worth while when others are under way

NEVER = 1 << 62


def jobs_wanted(calls: int) -> int:
    """How many jobs must wait for one more call to go, with so many under way."""
    if calls == 0:
        return 1
    return FURTHER_JOBS if calls < CALLS_MAX else NEVER


def call_end(sizes_bytes: Iterable[int], jobs_max: int) -> int:
    """How many of those that wait, first come first served, make one call; at least one."""
    total = count = 0
    for size in sizes_bytes:
        total += size
        if count and (count >= jobs_max or total > BYTES_MAX):
            return count
        count += 1
    return count


def smaller(jobs: int) -> int:
    """How many jobs a call may have after one with so many was refused as a whole."""
    return max(1, jobs // 2)


def larger(jobs_max: int) -> int:
    """How many it may have after one was taken."""
    return min(2 * jobs_max, JOBS_MAX)
