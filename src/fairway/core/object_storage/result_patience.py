"""How long a finished run's result is held on to while object storage does not take it.

The longer the run, the dearer it is to run again: ten times as long as it ran, within bounds. By
then the run counts as failed for want of a dependency, and the job is tried again later.
"""

from __future__ import annotations

from fairway.core.failure.fault import Fault, error_document
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind

PATIENCE_SECONDS_MIN = 30.0
PATIENCE_SECONDS_MAX = 3600.0
PATIENCE_PER_RUN = 10.0

DEPENDENCY = "object storage"


def patience_seconds(ran_us: int) -> float:
    wanted = PATIENCE_PER_RUN * ran_us / 1e6
    return min(max(wanted, PATIENCE_SECONDS_MIN), PATIENCE_SECONDS_MAX)


def not_kept(ran_us: int, size_bytes: int) -> Outcome:
    """What is recorded of a run that went well and whose result could not be kept."""
    fault = Fault(
        "ResultNotKept",
        f"The run succeeded, but object storage did not take its result of {size_bytes} bytes.",
        dependency=DEPENDENCY,
    )
    error = error_document(None, "", fault)
    return Outcome(OutcomeKind.FAILED, ran_us, failure=FailureClass.DEPENDENCY, error=error)
