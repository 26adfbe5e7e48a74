"""What a caller of the SDK may have to catch, on top of the tree in `core/errors.py`.

FairwayError
├── JobEnded                the job is over and there is no result
│   ├── JobFailed           it is dead: carries the last error
│   ├── JobCancelled        somebody, or its own handler, called it off
│   ├── JobExpired          its last moment to start passed
│   └── ResultIgnored       it succeeded, and its type keeps no results
├── StillRunning            the wait is over, the job is not (also a TimeoutError)
├── Refused
│   ├── BatchRefused        some jobs of a batch were kept out (in `sdk/client/enqueue.py`)
│   └── InvalidRequest
│       └── InvalidArguments    (in `sdk/handler/codec.py`)
└── Unavailable
    └── Unreachable         no answer from the server
"""

from __future__ import annotations

from typing import Any

from fairway.core.errors import FairwayError
from fairway.sdk.client.status import status_of
from fairway.wire.messages import JobView


class JobEnded(FairwayError):
    """The job ended without a result."""

    code = "JOB_ENDED"

    def __init__(self, view: JobView) -> None:
        self.view = status_of(view)
        self.error: dict[str, Any] = _document(self.view.error)
        super().__init__(_sentence(view, self.error))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.view,)


class JobFailed(JobEnded):
    """The job is dead."""

    code = "JOB_FAILED"


class JobCancelled(JobEnded):
    """The job was cancelled."""

    code = "JOB_CANCELLED"


class JobExpired(JobEnded):
    """The job expired before it could start."""

    code = "JOB_EXPIRED"


class ResultIgnored(JobEnded):
    """The job succeeded, and its type keeps no results (`ignore_result=True`)."""

    code = "RESULT_IGNORED"


class StillRunning(FairwayError, TimeoutError):
    """The job has not ended within the time given."""

    code = "STILL_RUNNING"


def ended_without_result(view: JobView) -> JobEnded:
    return _BY_STATE.get(view.state, JobFailed)(view)


_BY_STATE: dict[str, type[JobEnded]] = {
    "dead": JobFailed,
    "cancelled": JobCancelled,
    "expired": JobExpired,
    "succeeded": ResultIgnored,
}


def _document(error: Any) -> dict[str, Any]:
    return error if isinstance(error, dict) else {}


def _sentence(view: JobView, error: dict[str, Any]) -> str:
    if view.state == "succeeded":
        return (
            f"{view.type} {view.id} succeeded, and what it returned was not kept: it is declared"
            " with ignore_result=True"
        )
    cause = ": ".join(str(error[key]) for key in ("type", "message") if error.get(key))
    attempts = f"{view.attempts} attempt{'' if view.attempts == 1 else 's'}"
    tries = f" after {attempts}" if view.state == "dead" else ""
    return f"{view.type} {view.id} is {view.state}{tries}" + (f" ({cause})" if cause else "")
