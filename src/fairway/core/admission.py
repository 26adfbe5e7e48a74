"""Whether a submission is let in: rate first, then depth. Before any write, and never in silence.

The rate is a token bucket in its exact form (GCRA): one number per tenant, the moment until which
its tokens are spoken for. Whoever obeys the answer never sees a second refusal. This file knows
limits and numbers; codes and headers are made elsewhere from what it returns.
"""

from __future__ import annotations

from typing import NamedTuple


class Rate(NamedTuple):
    """So many jobs a second, and so many at once after a quiet time."""

    per_second: int
    burst: int


class Grant(NamedTuple):
    """The rate allows it. `spoken_for_us` is what to remember."""

    spoken_for_us: int
    remaining: int
    full_in_seconds: float


class Wait(NamedTuple):
    """Not yet: come back after this long. `never` means that it is larger than the burst."""

    seconds: float
    remaining: int
    full_in_seconds: float
    never: bool = False


def admit(rate: Rate, spoken_for_us: int, jobs: int, now_us: int) -> Grant | Wait:
    """Take `jobs` tokens at `now_us`, or say when they will be there."""
    step_us = 1_000_000 / rate.per_second
    window_us = step_us * rate.burst
    begin_us = max(spoken_for_us, now_us)
    after_us = begin_us + jobs * step_us
    if after_us - now_us <= window_us:
        taken = round(after_us)
        return Grant(taken, _remaining(taken, rate, now_us), (taken - now_us) / 1e6)
    remaining = _remaining(begin_us, rate, now_us)
    full_in = (begin_us - now_us) / 1e6
    return Wait((after_us - window_us - now_us) / 1e6, remaining, full_in, jobs > rate.burst)


def _remaining(spoken_for_us: float, rate: Rate, now_us: int) -> int:
    spoken = max(spoken_for_us - now_us, 0) * rate.per_second / 1_000_000
    return max(int(rate.burst - spoken + 1e-6), 0)
