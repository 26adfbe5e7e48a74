"""Runs that failed and whose reports are on their way: told in the log, and named if they died.

Whether a job is dead the platform decides, and says with the word that its report is on disk.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.wire.exchange import Lease, Report
from fairway.worker.exchange.failure_log import FailureLines
from fairway.worker.pipe.pipe import DeadJob

KEPT_MAX = 500  # a report is heard of within moments


class FailedRuns:
    def __init__(self) -> None:
        self._lines = FailureLines()
        self._failed: dict[int, DeadJob] = {}  # by number of the report, oldest first

    def note(self, lease: Lease, report: Report) -> None:
        self._lines.tell(lease, report)
        if len(self._failed) >= KEPT_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[report.n] = DeadJob(
            job=lease.job,
            type=lease.type,
            tenant=lease.tenant,
            attempt=lease.attempt,
            failure=report.failure or "",
            error=report.error,
        )

    def dead(self, numbers: Iterable[int]) -> list[DeadJob]:
        """Of these reports, those that are still known."""
        return [self._failed.pop(number) for number in numbers if number in self._failed]
