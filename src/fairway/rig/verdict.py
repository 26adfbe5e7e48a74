"""What is said of a run in the end: its aims held, they did not, or nobody can tell.

A run that must not be believed is neither: a figure from a machine that was busy with other things
is no news, good or bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum


class Verdict(Enum):
    """Each with the exit status of the command that made the run."""

    HELD = 0
    NOT_HELD = 1
    UNJUDGED = 3  # 2 is how shells say that a command was not understood

    @property
    def words(self) -> str:
        return {0: "held", 1: "did not hold", 3: "unjudged"}[self.value]


def judge(holds: Iterable[bool | None], doubts: Sequence[str]) -> Verdict:
    """By whether each aim held (None: it was no aim), unless there are reasons to doubt all."""
    if doubts:
        return Verdict.UNJUDGED
    return Verdict.NOT_HELD if any(one is False for one in holds) else Verdict.HELD
