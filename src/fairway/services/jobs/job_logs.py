"""What a job's runs said, read page by page, and waited for."""

from __future__ import annotations

from fairway.core.ids import JobId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.run.log_chunk import FoundChunk, LogPlace
from fairway.runtime.loops import wait
from fairway.services.jobs.watchers import Watchers
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.job_logs import list_lines

CHUNKS_AT_ONCE = 64


class JobLogs:
    def __init__(self, database: Database, watchers: Watchers, tenant_shards: TenantShards) -> None:
        self._database = database
        self._tenant_shards = tenant_shards
        self._watchers = watchers

    async def chunks(
        self, tenant: TenantId, job: JobId, after: LogPlace, attempt: int | None
    ) -> list[FoundChunk]:
        """The next chunks; fewer than `CHUNKS_AT_ONCE` are all that there are by now."""
        whose = (self._tenant_shards.of(tenant), tenant, job)
        async with told_if_away, self._database.quick(tenant) as connection:
            self._tenant_shards.still_takes(tenant, whose[0])  # half of it would look like all
            return await list_lines(connection, whose, after, attempt, CHUNKS_AT_ONCE)

    async def until_news(self, tenant: TenantId, job: JobId, seconds: float) -> None:
        """Until lines came through this server, or for so long: others come by another one."""
        with self._watchers.watch(tenant, job) as news:
            await wait(news, seconds)
