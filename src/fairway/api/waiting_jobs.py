"""Jobs on their way to whoever writes them: how many, and how many of each tenant there may be."""

from __future__ import annotations

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId

TENANT_PART = 4  # of the jobs that may wait, this part is one tenant's at most


class WaitingJobs:
    """How many wait to be sent, in all and of each tenant."""

    def __init__(self, jobs_max: int, to: str) -> None:
        self._jobs_max = jobs_max
        self._to = to  # whom they are on their way to, for people
        self._by_tenant: dict[TenantId, int] = {}
        self.jobs = 0

    def add(self, tenant: TenantId, jobs: int) -> None:
        self.jobs += jobs
        self._by_tenant[tenant] = self._by_tenant.get(tenant, 0) + jobs

    def remove(self, tenant: TenantId, jobs: int) -> None:
        self.jobs -= jobs
        left = self._by_tenant.pop(tenant, 0) - jobs
        if left > 0:
            self._by_tenant[tenant] = left

    def check_room(self, tenant: TenantId, count: int) -> None:
        """One tenant's jobs leave room for those of others."""
        waiting = self._by_tenant.get(tenant, 0)
        if waiting and waiting + count > self._jobs_max // TENANT_PART:
            raise Unavailable(
                f"More jobs of yours are on their way to {self._to} than this server holds; nothing"
                " of this was accepted. Send it again shortly.",
                code="OVERLOADED",
            )
