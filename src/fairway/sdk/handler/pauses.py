"""Pauses between the tries of a job, as its type declares them.

    Retry(5, backoff=("1s", "5s", "1m"))                                 these, the last one repeats
    Retry(9, backoff=Exponential("1s", factor=2, most="10m"))            1 s, 2 s, 4 s … 10 min

Both are spread by ± 20 % unless `jitter=` says otherwise: jobs that failed together must not come
back together. Pure: the dice are handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Protocol

from fairway.core.backoff import grown_ms
from fairway.core.failure.retry import JITTER, spread_ms
from fairway.sdk.durations import Duration, milliseconds_of
from fairway.wire.bounds import DELAY_MS_MAX

MIDDLE_SAMPLE = 0.5  # spreads nothing


class Pauses(Protocol):
    def pause_ms(self, attempt: int, sample: float) -> int:
        """After the n-th attempt; `sample` is uniform in [0, 1). 0 leaves it to the platform."""


class Exponential:
    """Each pause is `factor` times the one before, up to `most`; spread by ± `jitter` of it."""

    def __init__(
        self,
        first: Duration,
        *,
        factor: float = 2.0,
        most: Duration = "1h",
        jitter: float = JITTER,
    ) -> None:
        self.first_ms = milliseconds_of(first, DELAY_MS_MAX)
        self.most_ms = milliseconds_of(most, DELAY_MS_MAX)
        self.factor = float(factor)
        self.jitter = checked_jitter(jitter)
        if not self.first_ms:
            raise ValueError(f"Exponential: the first pause must be longer than nothing: {first!r}")
        if not (isfinite(factor) and factor >= 1):
            raise ValueError(f"Exponential: factor must be at least 1, not {factor!r}")
        if self.most_ms < self.first_ms:
            raise ValueError(f"Exponential: most={most!r} is shorter than the first, {first!r}")

    def pause_ms(self, attempt: int, sample: float) -> int:
        pause_ms = grown_ms(self.first_ms, self.factor, attempt - 1, self.most_ms)
        return spread_ms(pause_ms, self.jitter, sample)

    def __repr__(self) -> str:
        return f"Exponential({self.first_ms} ms × {self.factor:g}, most {self.most_ms} ms)"


class ListedPauses:
    """Pauses one by one; the last repeats."""

    def __init__(self, pauses: Sequence[Duration], jitter: float) -> None:
        self.each_ms = tuple(milliseconds_of(pause, DELAY_MS_MAX) for pause in pauses)
        self.jitter = checked_jitter(jitter)

    def pause_ms(self, attempt: int, sample: float) -> int:
        if not self.each_ms:
            return 0
        pause_ms = self.each_ms[min(attempt, len(self.each_ms)) - 1]
        return spread_ms(pause_ms, self.jitter, sample)


def chosen_pauses(backoff: Sequence[Duration] | Exponential, jitter: float | None) -> Pauses:
    if not isinstance(backoff, Exponential):
        if isinstance(backoff, str):  # a sequence too, of letters
            raise ValueError(f"backoff is a list of pauses: write it as ({backoff!r},)")
        return ListedPauses(backoff, JITTER if jitter is None else jitter)
    if jitter is not None:
        raise ValueError("give the jitter to Exponential(…, jitter=), not to Retry")
    return backoff


def checked_jitter(jitter: float) -> float:
    if not 0 <= jitter <= 1:
        raise ValueError(f"jitter must be 0 to 1, a part of the pause, not {jitter!r}")
    return jitter
