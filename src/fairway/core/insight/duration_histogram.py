"""How long runs take, as a stream: a histogram with few buckets that forgets the distant past.

Each power of two is cut into eight, so a percentile is right to within an eighth. When a window is
full every count is halved, so the last runs weigh most and memory stays the same for ever. Integers
only; no run is kept.
"""

from __future__ import annotations

WINDOW = 2048  # runs
_CUTS = 3  # each power of two is cut into 2**3
P95 = 950  # per mille


class DurationHistogram:
    __slots__ = ("_counts", "runs")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.runs = 0  # counted within the window

    def add(self, ran_us: int) -> None:
        bucket = _bucket(ran_us)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.runs += 1
        if self.runs >= WINDOW:
            self._forget_half()

    def percentile_us(self, per_mille: int = P95) -> int:
        """No more than this share of runs took longer; 0 when nothing is known."""
        wanted, seen = -(-self.runs * per_mille // 1000), 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= wanted:
                return _middle_us(bucket)
        return 0

    def share_over(self, bound_us: int) -> int:
        """Per mille of the runs that took longer than this."""
        edge = _bucket(bound_us)
        over = sum(count for bucket, count in self._counts.items() if bucket > edge)
        return over * 1000 // self.runs if self.runs else 0

    def _forget_half(self) -> None:
        halved = {bucket: count >> 1 for bucket, count in self._counts.items()}
        self._counts = {bucket: count for bucket, count in halved.items() if count}
        self.runs = sum(self._counts.values())


def _bucket(ran_us: int) -> int:
    """The power of two, and the next three bits below it."""
    bits = max(ran_us, 1 << _CUTS).bit_length()
    return (bits << _CUTS) | ((max(ran_us, 1 << _CUTS) >> (bits - 1 - _CUTS)) & ((1 << _CUTS) - 1))


def _middle_us(bucket: int) -> int:
    bits, cut = bucket >> _CUTS, bucket & ((1 << _CUTS) - 1)
    width = 1 << (bits - 1 - _CUTS)
    return (((1 << _CUTS) | cut) * width) + width // 2
