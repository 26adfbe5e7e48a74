"""Times as counts in few buckets, so that quantiles of servers and minutes can be merged.

A bucket is half of a power of two of milliseconds: a quantile is right to within a quarter. A
histogram is a list of counts without zeros at its end; two of them are merged by adding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

BUCKETS_MAX = 64  # the last one begins at 37 days
BUSY_BATCH = 16  # of as many as this and more,
SAMPLE_STEP = 8  # every so many-th is measured


class Quantiles(NamedTuple):
    """In seconds; None while nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


def bucket_of(ms: int) -> int:
    """Each power of two has two: below one and a half times it, and from there on."""
    if ms < 2:
        return max(ms, 0)
    bits = ms.bit_length()
    return min(2 * bits - 2 + ((ms >> (bits - 2)) & 1), BUCKETS_MAX - 1)


def begin_ms(bucket: int) -> int:
    """The smallest time in it."""
    if bucket < 2:
        return bucket
    return (2 + (bucket & 1)) << ((bucket >> 1) - 1)


def sample_step(count: int) -> int:
    """All of a few are measured, some of many."""
    return 1 if count < BUSY_BATCH else SAMPLE_STEP


def count_in(counts: list[int], bucket: int) -> None:
    if bucket >= len(counts):
        counts.extend([0] * (bucket + 1 - len(counts)))
    counts[bucket] += 1


def add_to(counts: list[int], others: Sequence[int]) -> None:
    if len(others) > len(counts):
        counts.extend([0] * (len(others) - len(counts)))
    for bucket, count in enumerate(others):
        if count:
            counts[bucket] += count


def merged(parts: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip_longest(*parts, fillvalue=0)]


def since(newer: Sequence[int], older: Sequence[int]) -> list[int]:
    """What was counted between two looks at a histogram that only grows."""
    return [new - old for new, old in zip_longest(newer, older, fillvalue=0)]


def quantile_seconds(counts: Sequence[int], per_mille: int) -> float | None:
    """The middle of the bucket in which it lies."""
    total, seen = sum(counts), 0
    if not total:
        return None
    rank = max(-(-total * per_mille // 1000), 1)
    bucket = 0
    for bucket, count in enumerate(counts):  # noqa: B007  (the one at which it ends)
        seen += count
        if seen >= rank:
            break
    return (begin_ms(bucket) + begin_ms(bucket + 1)) / 2000


def quantiles(counts: Sequence[int]) -> Quantiles:
    return Quantiles(*(quantile_seconds(counts, mille) for mille in (500, 950, 990)))
