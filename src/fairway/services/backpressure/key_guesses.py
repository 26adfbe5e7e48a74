"""Wrong keys, counted by the address they come from: guessing is slow, and cheap to bear.

A key that is well formed and not valid is a guess: anybody can compute its checksum. An address has
some of them at once and a few a second; beyond that it is told to come back later, and the store
is not asked about keys from there that are not in memory. Keys that are in memory are judged as
ever, so nobody is shut out by a neighbour behind the same address.
"""

from __future__ import annotations

from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.errors import LimitReached
from fairway.runtime.telemetry import Instruments

GUESSES_AT_ONCE = 100
GUESSES_PER_SECOND = 5
ADDRESSES_MAX = 10_000


class Guesses:
    def __init__(self, instruments: Instruments) -> None:
        self._clock = instruments.clock
        self._counter = instruments.metrics.wrong_keys
        self._buckets: dict[str, Bucket] = {}  # the address that guessed last is the last one

    def wait_seconds(self, address: str) -> float:
        """How long until this address may guess again; 0 while it may."""
        bucket = self._buckets.get(address)
        if bucket is None:
            return 0.0
        return bucket.debt_us(GUESSES_PER_SECOND, GUESSES_AT_ONCE, self._clock.now_us()) / 1e6

    def failed(self, address: str) -> None:
        now_us = self._clock.now_us()
        bucket = self._buckets.pop(address, None) or Bucket(GUESSES_AT_ONCE, now_us)
        bucket.charge(1, GUESSES_PER_SECOND, GUESSES_AT_ONCE, now_us)
        self._buckets[address] = bucket
        self._counter.inc()
        if len(self._buckets) > ADDRESSES_MAX:
            del self._buckets[next(iter(self._buckets))]


def too_many(wait_seconds: float) -> LimitReached:
    """What an address hears that guessed too often."""
    return LimitReached(
        "Too many wrong API keys came from this address.",
        code="TOO_MANY_WRONG_KEYS",
        retry_after_seconds=wait_seconds,
    )
