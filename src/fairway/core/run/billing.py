"""Which runs a tenant pays for: slot-time of every run, except those the platform cut short.

A run that ended by itself is paid for, however it ended: a failure used the slot as a success does.
A run whose worker died or fell silent, or that was handed back for a deploy, is not.
"""

from __future__ import annotations

from fairway.core.run.outcome import FailureClass, OutcomeKind

LOST = "lost"  # said of a run whose worker was never heard of again
SKIPPED = "skipped"  # said of a job that was too late: it was not run


def is_billable(said: str, failure: FailureClass | None) -> bool:
    """`said` is how the run ended in the job's history."""
    return said not in (LOST, OutcomeKind.RETURNED) and failure is not FailureClass.WORKER_CRASH


def is_attempt(said: str, failure: FailureClass | None) -> bool:
    """Whether it counts among the runs that are paid for."""
    return said != SKIPPED and is_billable(said, failure)
