"""What tenants do with recurring schedules: put, read, pause, run now, make up for the past.

Any server can do all of it: ticks are fired by the owner of the shard, and a run is known by its
tick, so nobody runs one twice. The database's clock decides what is past.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.errors import InvalidRequest, LimitReached, NotFound, Unavailable
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.job import events_of
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.scheduling.schedule import PastRun, RunCause, Schedule, ScheduleKey, ScheduleSpec
from fairway.core.scheduling.ticks import Steps, TooManySteps, while_affordable
from fairway.core.tenant import Tenant
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.runtime.loops import Effort, pause
from fairway.runtime.random_ids import JobIdFactory
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.scheduling.cron import Recurrence, checked
from fairway.services.scheduling.schedule_jobs import (
    Firing,
    firing,
    may_be_tick,
    next_tick,
    recurrence,
)
from fairway.services.sent_traces import SentTraces
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import history, submissions
from fairway.store import schedules as store
from fairway.store.connections.database import Database
from fairway.store.schedules import is_cut as is_cut

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

BACKFILL_MAX = 1000
BACKFILL_STEPS = 100_000
BACKFILL_BYTES = 512 << 10  # of payloads that are written in one go
NEXT_RUNS = 5
NEXT_RUNS_STEPS = 5000
QUICK_STEPS = 400  # worked out at once, in between other requests: half a millisecond or so
TRIGGER_TRIES = 100  # other servers may take the same milliseconds

#: Has work done for a tenant that computes for long: beside the event loop, tenants in turn.
InTurn: TypeAlias = Callable[[TenantId, Callable[[], Any]], Awaitable[Any]]


class SchedulePorts(NamedTuple):
    """Who works things out, who lets runs in, and who hears of what was written."""

    in_turn: InTurn
    admit: Callable[[Tenant, int], None]  # so many jobs, or refuse
    on_change: Callable[[], None]  # another tick may come first
    on_scheduled: Callable[[ShardId], None]  # jobs of this shard are on disk
    spans: JobSpans | None = None
    audit_log: AuditLog = USUAL_LOG


class ScheduleLimits(NamedTuple):
    gap_ms_min: int
    per_tenant_max: int


class Backfilled(NamedTuple):
    made: int
    already: int  # ticks that were fired before


class Schedules:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        ids: JobIdFactory,
        store_clock: StoreClock,
        limits: ScheduleLimits,
        ports: SchedulePorts,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._directory = directory
        self._ids = ids
        self._store_clock = store_clock
        self._limits = limits
        self._tenant_shards = tenant_shards
        self._triggered_ms = 0  # the last tick that was given to a run outside of the clock
        self._ports = ports
        self._traces = SentTraces(ports.spans, directory)

    def key_of(self, tenant: TenantId, name: str) -> ScheduleKey:
        return ScheduleKey(self._tenant_shards.of(tenant), tenant, name)

    def now(self) -> datetime:
        """The database's time, in the whole milliseconds that ticks are counted in."""
        return from_unix_ms(self._store_clock.unix_ms())

    # -- make and change ---------------------------------------------------------------------

    def check(self, spec: ScheduleSpec) -> Recurrence:
        """Refuse what can never run, or far too often."""
        if spec.ends_at is not None and spec.ends_at <= spec.starts_at:
            raise InvalidRequest("ends_at lies before starts_at, or in the past.", field="/ends_at")
        return checked(
            cron=spec.cron,
            every_ms=spec.every_ms,
            zone=spec.zone,
            now_ms=to_unix_ms(spec.starts_at),
            gap_ms_min=self._limits.gap_ms_min,
        )

    async def preview(self, tenant: TenantId, spec: ScheduleSpec) -> tuple[str, list[datetime]]:
        """What it says in words, and its next runs; refuses what `put` would."""

        def work_out() -> tuple[str, list[datetime]]:
            return self.check(spec).text, self._next_runs(spec, NEXT_RUNS_STEPS)

        found: tuple[str, list[datetime]] = await self._ports.in_turn(tenant, work_out)
        return found

    async def put(
        self, key: ScheduleKey, spec: ScheduleSpec, type_name: str, actor: Actor = PLATFORM
    ) -> bool:
        """Make it, or replace it; True when it is new. Ticks before now are never made up for."""
        await self._ports.in_turn(key.tenant, partial(self.check, spec))
        now = self.now()
        following = await self._following(key.tenant, spec, now)
        types = await self._directory.know_types([type_name], key.tenant)  # no connection held
        async with (
            told_if_away,
            self._database.quick(key.tenant) as connection,
            connection.transaction(),
        ):
            self._tenant_shards.still_takes(key.tenant, key.shard)
            others = await store.count_others(connection, key)
            if others >= self._limits.per_tenant_max:
                raise LimitReached(
                    f"There are {others} schedules already, as many as a tenant may have. Delete"
                    " some, or let one schedule submit many jobs.",
                    code="TOO_MANY_SCHEDULES",
                    retry_after_seconds=60,  # time alone does not help
                )
            spec = spec._replace(type=types[type_name])
            known = await store.read_schedule(connection, key)
            is_new = await store.put_schedule(connection, key, spec, now, following)
            act = Act("put_schedule", key.name, key.tenant, *self._sides(known, spec))
            await self._ports.audit_log.add(connection, actor, act)
        self._ports.on_change()
        return is_new

    def _sides(
        self, known: Schedule | None, spec: ScheduleSpec
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What it was and what it is, for the audit; of payloads only whether they differ."""
        after = self._fields(spec)
        if known is None:
            return {}, after
        if known.spec.payload != spec.payload:
            after["payload"] = "another one"
        return self._fields(known.spec), after

    def _fields(self, spec: ScheduleSpec) -> dict[str, Any]:
        said = spec._asdict() | {
            "type": self._directory.type_names.get(spec.type, f"#{spec.type}"),
            "pool": self._directory.pools.by_number[spec.pool].name,
            "payload": None,
            "payload_bytes": len(spec.payload),
        }
        return {name: value for name, value in said.items() if value not in (None, "")}

    async def pause(self, key: ScheduleKey, paused: bool, actor: Actor = PLATFORM) -> Schedule:
        """Paused or going again; ticks that pass meanwhile are settled without runs."""
        schedule = await self.read(key)
        now = self.now()
        following = await self._following(key.tenant, schedule.spec, now)
        async with (
            told_if_away,
            self._database.quick(key.tenant) as connection,
            connection.transaction(),
        ):
            self._tenant_shards.still_takes(key.tenant, key.shard)
            if not await store.pause_schedule(connection, key, paused, now, following):
                raise _absent(key)
            sides = {"paused": schedule.spec.paused}, {"paused": paused}
            act = Act(
                "pause_schedule" if paused else "resume_schedule", key.name, key.tenant, *sides
            )
            await self._ports.audit_log.add(connection, actor, act)
        self._ports.on_change()
        return await self.read(key)

    async def _following(
        self, tenant: TenantId, spec: ScheduleSpec, now: datetime
    ) -> datetime | None:
        found: datetime | None = await self._ports.in_turn(
            tenant, partial(next_tick, spec, to_unix_ms(now))
        )
        return found

    async def remove(self, key: ScheduleKey, actor: Actor = PLATFORM) -> None:
        async with (
            told_if_away,
            self._database.quick(key.tenant) as connection,
            connection.transaction(),
        ):
            self._tenant_shards.still_takes(key.tenant, key.shard)
            known = await store.read_schedule(connection, key)
            if known is None or not await store.delete_schedule(connection, key):
                raise _absent(key)
            act = Act("delete_schedule", key.name, key.tenant, before=self._fields(known.spec))
            await self._ports.audit_log.add(connection, actor, act)

    # -- run outside of the clock ------------------------------------------------------------

    async def trigger(self, key: ScheduleKey) -> JobId:
        """One run now, whatever else runs: a job that is on disk when this returns."""
        schedule = await self.read(key)
        self._admit(key, 1)
        (job_id,) = self._ids.make(key.shard, 1)
        for _ in range(TRIGGER_TRIES):
            tick_ms = self._next_trigger_ms(schedule.spec)
            run = firing(schedule, job_id, tick_ms, RunCause.TRIGGER, due_ms=to_unix_ms(self.now()))
            if await self._fire(key, [run]):
                return job_id
        raise Unavailable("Too many runs of this schedule are being triggered at once.")

    def _next_trigger_ms(self, spec: ScheduleSpec) -> int:
        """A millisecond of its own: a run is known by its tick, and the clock keeps its own."""
        tick_ms = max(to_unix_ms(self.now()), self._triggered_ms + 1)
        if may_be_tick(spec, tick_ms):
            tick_ms += 1
        self._triggered_ms = tick_ms
        return tick_ms

    async def backfill(
        self, key: ScheduleKey, since: datetime, until: datetime, actor: Actor = PLATFORM
    ) -> Backfilled:
        """Runs for ticks of the past that have none, all due now."""
        schedule, now = await self.read(key), self.now()
        if not since <= until <= now:
            raise InvalidRequest(
                "since must lie before until, and until in the past.", field="/until"
            )
        ticks: list[int] = await self._ports.in_turn(
            key.tenant,
            partial(_ticks_between, schedule.spec, to_unix_ms(since), to_unix_ms(until)),
        )
        if len(ticks) > BACKFILL_MAX:
            raise InvalidRequest(
                f"This range has more than {BACKFILL_MAX} ticks: ask for a shorter one, several"
                " times.",
                field="/since",
            )
        self._admit(key, len(ticks))
        asked = {"since": since, "until": until, "ticks": len(ticks)}
        async with told_if_away, self._database.quick(key.tenant) as connection:  # before the runs
            act = Act("backfill_schedule", key.name, key.tenant, after=asked)
            await self._ports.audit_log.add(connection, actor, act)
        made, at_once = 0, max(BACKFILL_BYTES // max(len(schedule.spec.payload), 1), 1)
        for start in range(0, len(ticks), at_once):
            effort = Effort()
            some = ticks[start : start + at_once]
            made += await self._make_up(schedule, some, to_unix_ms(now))
            if start + at_once < len(ticks):
                await pause(effort.rest_seconds(0))  # the store has others to serve
        return Backfilled(made, len(ticks) - made)

    async def _make_up(self, schedule: Schedule, ticks: list[int], due_ms: int) -> int:
        key = schedule.key
        ids = self._ids.make(key.shard, len(ticks))
        firings = [
            firing(schedule, job_id, tick, RunCause.BACKFILL, due_ms=due_ms)
            for job_id, tick in zip(ids, ticks, strict=True)
        ]
        return await self._fire(key, firings)

    def _admit(self, key: ScheduleKey, count: int) -> None:
        """Runs outside of the clock are jobs as any that are submitted: within the same limits."""
        if count:
            self._ports.admit(self._directory.tenants[key.tenant], count)

    async def _fire(self, key: ScheduleKey, firings: list[Firing]) -> int:
        if not firings:
            return 0
        async with (
            told_if_away,
            self._database.writing(key.tenant) as connection,
            self._traces.sending() as begin,
            connection.transaction(),
        ):
            self._tenant_shards.still_takes(key.tenant, key.shard)
            runs = [one.run for one in firings]
            claimed = await store.claim_runs(connection, key.shard, runs)
            jobs = [one.job for one in firings if one.job.id in claimed]
            if jobs:
                ids = {job.id for job in jobs}
                marks = events_of(jobs, self._directory.with_job_events)
                await submissions.insert_jobs(connection, key.shard, begin(jobs), ids, marks)
        self._ports.on_scheduled(key.shard)
        return len(jobs)

    # -- look --------------------------------------------------------------------------------

    async def read(self, key: ScheduleKey) -> Schedule:
        async with told_if_away, self._database.quick(key.tenant) as connection:
            found = await store.read_schedule(connection, key)
        if found is None:
            raise _absent(key)
        return found

    async def page(self, tenant: TenantId, after: str, limit: int) -> list[Schedule]:
        shard = self._tenant_shards.of(tenant)
        async with told_if_away, self._database.quick(tenant) as connection:
            return await store.list_schedules(connection, shard, tenant, after, limit)

    async def runs(
        self, key: ScheduleKey, before: datetime | None, limit: int
    ) -> list[tuple[PastRun, State | None]]:
        """The newest runs, skipped ones too; each with the state of its job, if that is kept."""
        await self.read(key)
        latest = self.now() + timedelta(days=1)
        async with told_if_away, self._database.quick(key.tenant) as connection:
            found = await store.list_runs(connection, key, before or latest, limit)
            jobs = [(key.tenant, run.job) for run in found if run.job is not None]
            states = await history.read_states(connection, key.shard, jobs)
        known = {job: State(state) for job, (state, _) in states.items()}
        return [(run, known.get(run.job or "")) for run in found]

    async def next_runs(self, tenant: TenantId, spec: ScheduleSpec) -> list[datetime]:
        """The next ticks by today's rules of the zone; none for a paused or ended schedule.

        Of one that comes rarely there may be fewer: they are only shown.
        """
        try:
            return self._next_runs(spec, QUICK_STEPS, is_whole=True)
        except TooManySteps:
            work = partial(self._next_runs, spec, NEXT_RUNS_STEPS)
            found: list[datetime] = await self._ports.in_turn(tenant, work)
            return found

    def _next_runs(
        self, spec: ScheduleSpec, steps: int, *, is_whole: bool = False
    ) -> list[datetime]:
        now_ms = max(to_unix_ms(self.now()), to_unix_ms(spec.starts_at) - 1)
        found = recurrence(spec).after(now_ms, Steps(steps))
        ticks = islice(found if is_whole else while_affordable(found), NEXT_RUNS)
        moments = [from_unix_ms(tick) for tick in ticks]
        return [tick for tick in moments if spec.ends_at is None or tick <= spec.ends_at]


def _absent(key: ScheduleKey) -> NotFound:
    return NotFound(f"There is no schedule {key.name!r}.")


def _ticks_between(spec: ScheduleSpec, first_ms: int, last_ms: int) -> list[int]:
    """Ticks of a range, one more than may be made up for at most."""
    source = recurrence(spec).after(first_ms - 1, Steps(BACKFILL_STEPS))
    try:
        return list(islice(takewhile(lambda tick: tick <= last_ms, source), BACKFILL_MAX + 1))
    except TooManySteps:
        raise InvalidRequest(
            "This range is too long to be worked out in one go: ask for a shorter one, several"
            " times.",
            field="/since",
        ) from None
