"""What one tenant causes without end is bounded for it alone: news of lateness."""

from __future__ import annotations

from fairway.core.ids import JobId
from fairway.services.scheduling.expirer import (
    NEWS_MAX,
    NEWS_TENANT_MAX,
    LateExecution,
    within_bounds,
)


def test_very_many_late_jobs_of_one_tenant_leave_room_for_anothers() -> None:
    flood = [LateExecution(1, JobId(str(n)), 5, "skipped") for n in range(3 * NEWS_MAX)]
    few = [LateExecution(2, JobId(str(n)), 5, "skipped") for n in range(7)]
    kept = within_bounds(flood + few)
    assert [one for one in kept if one.tenant == 2] == few
    assert len(kept) == NEWS_TENANT_MAX + len(few)
    crowd = [LateExecution(n, JobId(str(n)), 5, "skipped") for n in range(2 * NEWS_MAX)]
    assert len(within_bounds(crowd)) == NEWS_MAX
