"""Keeps time partitions ahead and retention behind, in bounded steps.

What belongs to a shard (keys, runs, actions) is removed by the shard's owner, what belongs to all
by the owner of shard 0. Nothing is forgotten while the store's clock and ours are far apart: a
clock that jumped would make all of history old. A step that fails stops no other, unless the
store is not to be reached: then they all would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from fairway.core.backoff import Outage
from fairway.core.ids import ShardId
from fairway.core.insight.alarm_lines import LINES_KEPT_MAX
from fairway.core.insight.history import KEPT
from fairway.core.insight.marks import MARKS_KEPT_MAX
from fairway.core.retention import may_forget
from fairway.runtime.loops import pause
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.maintenance.partition_retirement import Retirement
from fairway.services.store_clock import StoreClock
from fairway.store import bulk_actions as actions
from fairway.store import flows, leadership, schedules, submissions, unique_jobs
from fairway.store.billing import usage
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import CONNECTION_FAILED
from fairway.store.insight import alarm_history, marks, minutes, sights
from fairway.store.registry import audit
from fairway.store.schema import log_partitions, partition_retirement, partitions
from fairway.store.webhooks import deliveries

log = logger("pruner")

REST_SECONDS = 60.0
SHARDS_PER_ROUND = 8
BUSY_SECONDS = 1.0  # to the next round when there is more to remove
RETRY_SECONDS = 5.0
ROWS_AT_ONCE = 5_000
FLOWS_AT_ONCE = 500
AUDIT_LOOK = 20_000  # newest lines of tenants' own acts: who wrote many of them shows there
AUDIT_OF_TENANT_MAX = 10_000  # that a tenant wrote itself; staff's are kept for their time
KEYS_AT_ONCE = 10_000
KEYS_US = 5_000_000  # of removing keys in one round
KEYS_REST_SECONDS = 0.02

Removal = Callable[[Connection], Awaitable[int]]


class Pruner:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        instruments: Instruments,
        settings: Settings,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._retention = timedelta(days=settings.retention_days)
        self._audit_kept = timedelta(days=settings.audit_days)
        self._events_kept = timedelta(hours=settings.event_retention_hours)
        self._usage_kept = timedelta(days=settings.usage_days)
        self._last = ShardId(-1)  # whose turn was last
        self._outages: dict[tuple[str, ShardId | None], Outage] = {}  # of steps, by their shard
        self._retirement = Retirement(database, instruments.clock)

    async def run_once(self, now_us: int) -> float:
        self._dispatcher.forget_cancelled(now_us)
        shards = self._dispatcher.open_shards()
        skew_seconds = self._store_clock.skew_seconds
        self._metrics.clock_skew.set(skew_seconds)
        rests = []
        if 0 in shards:
            rests.append(await self._attempt("make partitions", self._make_ahead))
            rests.append(await self._attempt("make days of logs", self._make_log_days))
        if not may_forget(skew_seconds):
            log.error("clocks are apart, nothing is forgotten", store_ahead_seconds=skew_seconds)
            return min([REST_SECONDS, *rests])
        if 0 in shards:
            rests += [
                await self._attempt("retire partitions", self._retire),
                await self._attempt("drop days of logs", self._drop_log_days),
                await self._attempt("forget carried jobs and audit", self._forget_common),
            ]
        for shard in self._next(shards):
            rests += [
                await self._attempt("forget keys", partial(self._forget_keys, shard), shard),
                await self._attempt("forget runs", partial(self._forget_runs, shard), shard),
            ]
        return min([REST_SECONDS, *rests])

    def _next(self, shards: Sequence[ShardId]) -> list[ShardId]:
        """Of very many shards the next few: each has its turn within some minutes. Those on a node
        that does not answer come when it does."""
        shards = [shard for shard in shards if not self._database.is_silent(shard)]
        turn = sorted(shards, key=lambda shard: (shard <= self._last, shard))[:SHARDS_PER_ROUND]
        self._last = turn[-1] if turn else self._last
        return turn

    async def _attempt(
        self, what: str, step: Callable[[], Awaitable[float]], shard: ShardId | None = None
    ) -> float:
        try:
            rest_seconds = await step()
        except Exception as error:
            if self._is_store_gone(error):
                raise
            outage = self._outages.setdefault((what, shard), Outage())
            is_told = outage.failed(type(error).__name__, self._clock.now_us())
            tell = log.warning if is_told else log.debug
            tell(
                "retention step failed, the others go on",
                step=what,
                error=repr(error),
                **({} if shard is None else {"shard": shard}),
            )
            return RETRY_SECONDS
        if self._outages.pop((what, shard), None) is not None:
            log.info("retention step works again", step=what)
        return rest_seconds

    def _is_store_gone(self, error: Exception) -> bool:
        """Of a distributed one a node may be: what is on others is tidied all the same."""
        if not isinstance(error, CONNECTION_FAILED):
            return False
        return self._database.placement is None or self._database.hosts.is_unreachable

    @property
    def _keep_since(self) -> datetime:
        return self._store_clock.now() - self._retention

    async def _make_ahead(self) -> float:
        async with self._database.upkeep() as connection:
            for name in await partitions.make_ahead(connection, self._store_clock.now()):
                log.info("partition made", partition=name)
        return REST_SECONDS

    async def _make_log_days(self) -> float:
        async with self._database.upkeep() as connection:
            for name in await log_partitions.make_log_days(connection, self._store_clock.now()):
                log.info("partition made", partition=name)
        return REST_SECONDS

    async def _drop_log_days(self) -> float:
        async with self._database.upkeep() as connection:
            lines_since, now = self._keep_since, self._store_clock.now()
            gone = await log_partitions.drop_log_days(connection, "job_logs", lines_since)
            gone += await log_partitions.drop_log_days(
                connection, "event_log", now - self._events_kept
            )
        for name in gone:
            log.info("partition dropped", partition=name)
        return REST_SECONDS

    async def _retire(self) -> float:
        rest = await self._retirement.run_once(self._keep_since)
        return REST_SECONDS if rest is None else rest

    async def _forget_common(self) -> float:
        now, keep_since = self._store_clock.now(), self._keep_since
        audit_since, usage_since = now - self._audit_kept, now - self._usage_kept
        hours_since = now - KEPT["hour"]
        return await self._remove(
            lambda c: partition_retirement.sweep_carried(c, keep_since, ROWS_AT_ONCE),
            lambda c: audit.forget_audit(c, audit_since, ROWS_AT_ONCE),
            lambda c: audit.forget_floods(
                c, among=AUDIT_LOOK, kept=AUDIT_OF_TENANT_MAX, limit=ROWS_AT_ONCE
            ),
            lambda c: usage.forget_usage(c, usage_since, ROWS_AT_ONCE),
            lambda c: minutes.forget_history(c, "minute", now - KEPT["minute"], ROWS_AT_ONCE),
            lambda c: minutes.forget_history(c, "hour", hours_since, ROWS_AT_ONCE),
            lambda c: sights.forget_sights(c),
            lambda c: leadership.forget_servers(c),
            lambda c: leadership.forget_lost_sessions(c),
            lambda c: alarm_history.forget_alarms(c, hours_since, LINES_KEPT_MAX, ROWS_AT_ONCE),
            lambda c: marks.forget_marks(c, hours_since, MARKS_KEPT_MAX, ROWS_AT_ONCE),
        )

    async def _forget_runs(self, shard: ShardId) -> float:
        keep_since, moving = self._keep_since, self._dispatcher.homes().all_moving
        return await self._remove(
            lambda c: actions.forget(c, shard, keep_since, ROWS_AT_ONCE),
            lambda c: schedules.forget_runs(c, shard, keep_since, ROWS_AT_ONCE),
            lambda c: flows.forget(c, shard, keep_since, FLOWS_AT_ONCE, moving),
            lambda c: deliveries.forget_deliveries(c, shard, keep_since, ROWS_AT_ONCE),
        )

    async def _remove(self, *removals: Removal) -> float:
        """Each once; answers when to come again."""
        async with self._database.background() as connection:
            removed = [await removal(connection) for removal in removals]
        return BUSY_SECONDS if max(removed) >= ROWS_AT_ONCE else REST_SECONDS

    async def _forget_keys(self, shard: ShardId) -> float:
        """As many as have expired: they come as quickly as jobs do, so they go as quickly."""
        until_us = self._clock.now_us() + KEYS_US
        while self._clock.now_us() < until_us:
            async with self._database.background() as connection:
                gone = await submissions.forget_keys(connection, shard, KEYS_AT_ONCE)
                unique = await unique_jobs.forget_unique(connection, shard, KEYS_AT_ONCE)
                if max(gone, unique) < KEYS_AT_ONCE:
                    return REST_SECONDS
            await pause(KEYS_REST_SECONDS)
        return BUSY_SECONDS
