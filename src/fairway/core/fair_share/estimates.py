"""How long a run of each job type will probably take: what a grant charges in advance.

A moving average per job type, clamped so that no guess costs a tenant more than the prepayment
limit. Being wrong is allowed: the scheduler charges by real time in the end. Integers only.
"""

from __future__ import annotations

from fairway.core.ids import TypeId

_SMOOTHING = 3  # each run moves the average by 1/8 of its error


class Estimate:
    """The expected run of one job type, and how often runs outlasted it."""

    __slots__ = ("guessed", "long_us", "prepaid_us", "runs", "runs_over")

    def __init__(self, prepaid_us: int) -> None:
        self.prepaid_us = prepaid_us
        self.long_us = 0  # of runs beyond the bound of a prepayment, for people
        self.guessed = True  # nothing is known yet: the first run counts in full
        self.runs = 0
        self.runs_over = 0


class Estimates:
    """All job types of one pool."""

    def __init__(self, first_us: int, min_us: int, max_us: int) -> None:
        self._min_us = min_us
        self._max_us = max_us
        self._first_us = self._clamp(first_us)
        self.by_type: dict[TypeId, Estimate] = {}

    def of(self, type_id: TypeId) -> Estimate:
        estimate = self.by_type.get(type_id)
        if estimate is None:
            estimate = self.by_type[type_id] = Estimate(self._first_us)
        return estimate

    def peek(self, type_id: TypeId) -> Estimate:
        """Like `of`, but asking leaves no trace."""
        return self.by_type.get(type_id) or Estimate(self._first_us)

    def expect(self, type_id: TypeId, run_us: int) -> None:
        """Start from a figure known from elsewhere, such as last week's average."""
        estimate = self.of(type_id)
        estimate.prepaid_us = self._clamp(run_us)
        estimate.long_us = run_us if run_us > self._max_us else 0
        estimate.guessed = False

    def forget(self, type_id: TypeId) -> None:
        """Runs that go on keep theirs; the next one of this type begins anew."""
        self.by_type.pop(type_id, None)

    def learn(self, estimate: Estimate, run_us: int) -> None:
        # Clamped before averaging: one run of an hour must not make the next hundred look long.
        sample_us, guess_us = run_us, estimate.prepaid_us
        if sample_us > guess_us:
            estimate.runs_over += 1
            if sample_us > self._max_us:
                sample_us, before_us = self._max_us, estimate.long_us or run_us
                estimate.long_us = before_us + ((run_us - before_us) >> _SMOOTHING)
        elif sample_us < self._min_us:
            sample_us = self._min_us
        estimate.runs += 1
        if estimate.guessed:
            estimate.guessed = False
            estimate.prepaid_us = sample_us
        else:
            estimate.prepaid_us = guess_us + ((sample_us - guess_us) >> _SMOOTHING)

    def mean_us(self, estimate: Estimate) -> int:
        """A run without the bounds of a prepayment: what people want to know."""
        is_long = estimate.long_us and 10 * estimate.prepaid_us > 9 * self._max_us
        return estimate.long_us if is_long else estimate.prepaid_us

    def _clamp(self, run_us: int) -> int:
        return max(self._min_us, min(run_us, self._max_us))
