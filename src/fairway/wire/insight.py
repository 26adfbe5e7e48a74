"""What people see of the platform, on the wire: the overview, history as columns, shares.

A number that is not known is null, never a guess. Rates are a second, times are seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.wire.doc import doc

QUEUED = doc("Jobs that wait for a slot.")
RUNNING = doc("Jobs that run.")
OLDEST = doc("How long the oldest job waits that could run; null: none does.")
RATE = "A second, over about the last ten seconds; null until that is known."
RECEIVED = doc("The part of the pool's slot-time that it got in about the last minute.")
ENTITLED = doc("The part that it was due.")
PerStep = list[int | None]
Means = list[float | None]


class AlarmView(Struct, kw_only=True):
    """An alarm that is raised."""

    name: Annotated[str, doc("Which alarm, such as `OLDEST_AGE_OVER_SLO`.")]
    severity: Annotated[
        Literal["warning", "critical"], doc("critical: jobs suffer now; warning: they may soon.")
    ]
    subject: Annotated[str, doc("Whom it is about: the platform, a pool, a tenant, a disk.")]
    since: Annotated[datetime, doc("Since when there has been trouble.")]
    text: Annotated[str, doc("What was seen, in words.")]
    value: Annotated[float, doc("What was measured when it was last too much.")]
    threshold: Annotated[float, doc("Above which it is too much.")]
    runbook: Annotated[str, doc("What to look at first, and what helps.")]
    link: Annotated[str, doc("The page of the dashboard that shows it.")]


class AlarmList(Struct, kw_only=True):
    """The alarms that are raised."""

    items: Annotated[list[AlarmView], doc("The worst first, of those the oldest.")]


class AlarmRecord(Struct, kw_only=True):
    """An alarm that was raised, and until when."""

    name: Annotated[str, doc("Which alarm.")]
    severity: Annotated[Literal["warning", "critical"], doc("As it was raised.")]
    subject: Annotated[str, doc("Whom it is about.")]
    text: Annotated[str, doc("What was seen when it was raised.")]
    raised_at: Annotated[datetime, doc("Since when there was trouble.")]
    ended_at: Annotated[datetime | None, doc("When it was over; null: it is raised.")]


class AlarmHistory(Struct, kw_only=True):
    """A page of alarms, newest first."""

    items: Annotated[list[AlarmRecord], doc("Newest first.")]
    next_cursor: Annotated[str | None, doc("Ask for the next page with it; null on the last.")]


MARK_KIND = doc("deploy, incident or note.")
MARK_TEXT = doc("What happened, in a few words.")


class MarkView(Struct, kw_only=True):
    """A moment to be seen beside a graph."""

    at: Annotated[datetime, doc("When it was, or began.")]
    kind: Annotated[Literal["deploy", "incident", "note"], MARK_KIND]
    text: Annotated[str, MARK_TEXT]
    until: Annotated[datetime | None, doc("Its end; null: a moment, or it goes on.")]


class MarkList(Struct, kw_only=True):
    """Marks of a span."""

    items: Annotated[list[MarkView], doc("The oldest first.")]


class MarkRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A mark to be added, at this moment."""

    text: Annotated[Annotated[str, Meta(min_length=1, max_length=200)], MARK_TEXT]
    kind: Annotated[Literal["deploy", "incident", "note"], MARK_KIND] = "note"


class Percentiles(Struct, kw_only=True):
    """Times in seconds, to within a quarter; null while nothing was measured."""

    p50: Annotated[float | None, doc("Half of them took no longer.")]
    p95: Annotated[float | None, doc("All but one in twenty took no longer.")]
    p99: Annotated[float | None, doc("All but one in a hundred took no longer.")]


class HealthReason(Struct, kw_only=True):
    """Why the platform is not well."""

    code: Annotated[str, doc("Which rule says so.")]
    severity: Annotated[Literal["ok", "warning", "critical"], doc("How bad it is.")]
    text: Annotated[str, doc("The same for people.")]
    link: Annotated[str, doc("The page that shows it.")]


class PlatformHealth(Struct, kw_only=True):
    """The platform in a word."""

    status: Annotated[
        Literal["ok", "warning", "critical"], doc("The worst of the reasons and of the alarms.")
    ]
    reasons: Annotated[
        list[HealthReason], doc("The worst first, without what an alarm below tells already.")
    ]


class HeldJobs(Struct, kw_only=True):
    """Jobs that wait for something else than a slot: so many at least."""

    paused: Annotated[int, doc("By a pause, or with their tenant.")]
    throttled: Annotated[int, doc("By a limit, a throttle or a spend cap.")]
    circuit: Annotated[int, doc("By an open circuit.")]
    no_worker: Annotated[int, doc("Until a worker comes that runs their type.")]


class PoolOverview(Struct, kw_only=True):
    """One pool, over all servers."""

    name: Annotated[str, doc("The pool.")]
    queued: Annotated[int, QUEUED]
    running: Annotated[int, RUNNING]
    slots: Annotated[int, doc("Slots of live workers.")]
    utilisation: Annotated[float | None, doc("The part of the slots in use; null without any.")]
    oldest_runnable_age_seconds: Annotated[float | None, OLDEST]
    slo_seconds: Annotated[float, doc("How long a job should wait at most.")]
    held: Annotated[HeldJobs, doc("Jobs that must not start now.")]
    accepted_per_second: Annotated[float | None, doc(f"Jobs accepted. {RATE}")]
    started_per_second: Annotated[float | None, doc(f"Runs that began. {RATE}")]
    ended_per_second: Annotated[float | None, doc(f"Runs that ended, however. {RATE}")]
    failed_per_second: Annotated[float | None, doc(f"Of these, those that failed. {RATE}")]
    retried_per_second: Annotated[float | None, doc(f"Of these, those tried again. {RATE}")]
    dead_per_second: Annotated[float | None, doc(f"Jobs that died. {RATE}")]
    pickup_seconds: Annotated[Percentiles, doc("From due to started, over the last minute.")]
    end_to_end_seconds: Annotated[Percentiles, doc("From due to its end, over the last minute.")]
    drain_seconds: Annotated[
        float | None, doc("Until nothing waits if things go on like this; null: never, or unknown.")
    ]
    near_knee: Annotated[bool, doc("Whether a little more work would make all of it wait.")]


class WorkerCounts(Struct, kw_only=True):
    """Workers that are heard."""

    live: Annotated[int, doc("All of them.")]
    draining: Annotated[int, doc("Those that take no more jobs.")]


class ShardCounts(Struct, kw_only=True):
    """Shards, and how many of them some server owns."""

    owned: Annotated[int, doc("Their jobs are given out.")]
    total: Annotated[int, doc("All there are.")]


class RestraintCounts(Struct, kw_only=True):
    """What holds failing jobs back."""

    circuit: Annotated[int, doc("Open circuits.")]
    quarantine: Annotated[int, doc("Job types in quarantine.")]
    throttle: Annotated[int, doc("Tenants that are throttled.")]


class Overview(Struct, kw_only=True):
    """The platform as it is now, over all of its servers."""

    at: Annotated[datetime, doc("When that was seen.")]
    health: Annotated[PlatformHealth, doc("In a word, with reasons.")]
    pools: Annotated[list[PoolOverview], doc("Every pool.")]
    workers: Annotated[WorkerCounts, doc("Workers.")]
    shards: Annotated[ShardCounts, doc("Shards.")]
    restraints: Annotated[RestraintCounts, doc("Circuits, quarantines, throttles.")]
    alarms: Annotated[list[AlarmView], doc("Alarms that are raised, as `GET /v1/alarms` has them.")]


class OwnPoolOverview(Struct, kw_only=True):
    """One pool, as far as it is the tenant's own. Rates and times are of the last minute."""

    name: Annotated[str, doc("The pool.")]
    queued: Annotated[int, QUEUED]
    running: Annotated[int, RUNNING]
    oldest_runnable_age_seconds: Annotated[float | None, OLDEST]
    accepted_per_second: Annotated[
        float | None, doc("Jobs accepted; null with several servers: each takes some.")
    ]
    started_per_second: Annotated[float | None, doc("Runs that began.")]
    ended_per_second: Annotated[float | None, doc("Runs that ended, however.")]
    failed_per_second: Annotated[float | None, doc("Of these, those that failed.")]
    retried_per_second: Annotated[float | None, doc("Of these, those tried again.")]
    dead_per_second: Annotated[float | None, doc("Jobs that died.")]
    pickup_seconds: Annotated[Percentiles, doc("From due to started.")]
    end_to_end_seconds: Annotated[Percentiles, doc("From due to its end.")]
    share_received: Annotated[float | None, RECEIVED]
    share_entitled: Annotated[float | None, ENTITLED]


class TenantOverview(Struct, kw_only=True):
    """What is one tenant's own."""

    at: Annotated[datetime, doc("When that was seen.")]
    tenant: Annotated[str, doc("Whose.")]
    pools: Annotated[list[OwnPoolOverview], doc("Every pool.")]


class History(Struct, kw_only=True):
    """Columns for a graph, side by side with `at`; null where nothing is known."""

    of: Annotated[Literal["pool", "type", "tenant"], doc("What it is about.")]
    name: Annotated[str, doc("Which one.")]
    step_seconds: Annotated[int, doc("From one value to the next.")]
    at: Annotated[list[int], doc("The beginning of each step, in seconds since 1970.")]
    accepted: Annotated[PerStep, doc("Jobs accepted in each step.")]
    started: Annotated[PerStep, doc("Runs that began in each step.")]
    succeeded: Annotated[PerStep, doc("Runs that ended well in each step.")]
    failed: Annotated[PerStep, doc("Runs that failed in each step.")]
    retried: Annotated[PerStep, doc("Of those, those tried again.")]
    dead: Annotated[PerStep, doc("Jobs that died in each step.")]
    queued: Annotated[Means, doc("Jobs that waited: the mean of each step.")]
    running: Annotated[Means, doc("Jobs that ran: the mean of each step.")]
    slots: Annotated[Means, doc("Slots of live workers: the mean of each step.")]
    oldest_age_seconds: Annotated[Means, doc("Of the oldest that could run: the greatest.")]
    pickup_p50: Annotated[Means, doc("From due to started: half took no longer.")]
    pickup_p99: Annotated[Means, doc("All but one in a hundred took no longer.")]
    run_p50: Annotated[Means, doc("Runs that ended well: half took no longer.")]
    run_p99: Annotated[Means, doc("All but one in a hundred took no longer.")]


class Share(Struct, kw_only=True):
    """A tenant in a pool."""

    tenant: Annotated[str, doc("Whose.")]
    pool: Annotated[str, doc("Where.")]
    weight: Annotated[int, doc("Its weight.")]
    queued: Annotated[int, QUEUED]
    running: Annotated[int, RUNNING]
    share_received: Annotated[float | None, RECEIVED]
    share_entitled: Annotated[float | None, ENTITLED]
    throttled: Annotated[bool, doc("Whether a throttle or a cap holds its jobs back.")]


class ShareList(Struct, kw_only=True):
    """A page of shares, those with the most jobs first."""

    items: Annotated[list[Share], doc("The largest first.")]
    next: Annotated[str | None, doc("`cursor` of the next page; null on the last.")]
