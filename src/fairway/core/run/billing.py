"""Which runs a tenant pays for: slot-time of every run, except those the platform cut short.

A run that ended by itself is paid for, however it ended: a failure used the slot as a success does,
and so does a run that killed the process it ran in. A run whose worker died or fell silent, or that
was handed back for a deploy, is not; nor one whose process died by nobody knows whose doing: of
that its keeper says no time (decision 0054).
"""

from __future__ import annotations

from fairway.core.run.outcome import FailureClass, OutcomeKind

LOST = "lost"  # said of a run whose worker was never heard of again
SKIPPED = "skipped"  # said of a job that was too late: it was not run


def is_billable(said: str, failure: FailureClass | None, ran_us: int) -> bool:
    """`said` is how the run ended in the job's history, `ran_us` what its worker measured."""
    if said in (LOST, OutcomeKind.RETURNED):
        return False
    return failure is not FailureClass.WORKER_CRASH or ran_us > 0


def is_attempt(said: str, failure: FailureClass | None, ran_us: int) -> bool:
    """Whether it counts among the runs that are paid for."""
    return said != SKIPPED and is_billable(said, failure, ran_us)
