"""Numbers and lines about what happens: Prometheus metrics and structured logs.

Hot paths count in bulk: one call for a batch, never one a job. Labels are bounded: pools and
outcomes, never tenants; job types only up to a number, and apart: they say what customers do.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fairway.core.insight.activity import Activity
from fairway.core.redaction import HIDDEN, Redaction, without_rows
from fairway.runtime.clock import Clock
from fairway.runtime.log_lines import JsonLines, TextLines, write_unclaimed
from fairway.runtime.log_options import LogOptions
from fairway.runtime.metric_shapes import BulkHistogram, TypeSummary

if TYPE_CHECKING:
    from fairway.runtime.otlp import Otlp
    from fairway.runtime.otlp_spans import JobSpans

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
LONG_SECONDS = (*SECONDS, 300, 1800, 7200, 43200)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class Metrics:
    """Every metric of a server, by its name in `/metrics`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.by_type = CollectorRegistry()  # what names job types: not for everybody
        self.activity = Activity()  # by pool, type and tenant: for insight, and in no registry
        r: dict[str, Any] = {"registry": self.registry}
        self.accepted = Counter(
            "fairway_jobs_accepted_total", "Jobs on disk and answered 202.", **r
        )
        self.refused = Counter("fairway_jobs_refused_total", "Jobs refused.", ["code"], **r)
        self.granted = Counter("fairway_leases_granted_total", "Leases granted.", ["pool"], **r)
        self.recorded = Counter(
            "fairway_outcomes_recorded_total", "Outcomes on disk.", ["pool", "outcome"], **r
        )
        self.retried = Counter(
            "fairway_runs_retried_total", "Runs that failed and are tried again.", ["pool"], **r
        )
        self.dead = Counter("fairway_dead_letters_total", "Jobs that died.", ["pool"], **r)
        self.fenced = Counter(
            "fairway_outcomes_refused_total", "Outcomes whose lease was lost.", **r
        )
        self.lost = Counter("fairway_leases_lost_total", "Leases of silent or dead workers.", **r)
        self.lost_by_own = Counter(
            "fairway_own_leases_lost_total", "The same of tenants' own workers.", **r
        )
        self.violations = Counter(
            "fairway_pool_violations_total", "Runs that outlasted their pool by far.", ["pool"], **r
        )
        self.without_checkpoint = Counter(
            "fairway_runs_without_checkpoint_total", "Long runs that saved nothing for 5 min.", **r
        )
        self.commit_jobs = Histogram(
            "fairway_group_commit_jobs", "Jobs in one commit.", ["kind"], buckets=SIZES, **r
        )
        self.commit_seconds = Histogram(
            "fairway_group_commit_seconds", "Time of one commit.", ["kind"], buckets=SECONDS, **r
        )
        self._add_gauges()
        self._add_times()
        self._add_troubles()
        self._add_front_door()
        self._add_alarms()

    @property
    def registries(self) -> list[CollectorRegistry]:
        """All that is counted, by whoever may hear of it."""
        return [self.registry, self.by_type]

    def drop_otlp(self, signal: str, count: int) -> None:
        self.otlp_dropped.labels(signal).inc(count)

    def _add_gauges(self) -> None:
        r: dict[str, Any] = {"registry": self.registry}
        self.queued = Gauge("fairway_jobs_queued", "Jobs that wait for a slot.", ["pool"], **r)
        self.held = Gauge(
            "fairway_jobs_held",
            "Jobs that wait for something else than a slot, so many at least; by what for.",
            ["pool", "kind"],
            **r,
        )
        self.running = Gauge("fairway_jobs_running", "Leases in force.", ["pool"], **r)
        self.slots = Gauge("fairway_worker_slots", "Slots of live workers.", ["pool"], **r)
        self.workers = Gauge("fairway_workers", "Live workers, each at one server.", **r)
        self.oldest = Gauge(
            "fairway_oldest_runnable_age_seconds", "Age of the oldest waiting job.", ["pool"], **r
        )
        self.window = Gauge("fairway_window_jobs", "Jobs held in memory.", **r)
        self.restraints = Gauge(
            "fairway_restraints", "Circuits open, types in quarantine, throttles.", ["kind"], **r
        )
        self.job_types = Gauge(
            "fairway_job_types", "Names of job types, by whose they are.", ["kind"], **r
        )
        self.job_types_max = Gauge(
            "fairway_job_types_max", "As many of them as there may be.", ["kind"], **r
        )
        self.shards = Gauge("fairway_shards_owned", "Shards this server owns.", **r)
        self.waiters = Gauge(
            "fairway_database_waiters", "Calls that wait for a connection to the store.", **r
        )
        self.pickup = BulkHistogram(
            "fairway_pickup_seconds",
            "From acceptance to the grant of a lease; sampled when busy.",
            SECONDS,
        )
        self.registry.register(self.pickup)
        self.end_to_end = BulkHistogram(
            "fairway_end_to_end_seconds",
            "From when a job was due to its recorded end; sampled when busy.",
            LONG_SECONDS,
        )
        self.registry.register(self.end_to_end)
        self.tenants_waiting = Gauge(
            "fairway_tenants_waiting", "Tenants whose share was looked at.", ["pool"], **r
        )
        self.share_ratio = Gauge(
            "fairway_share_received_ratio",
            "Slot-time received over entitled, of tenants with jobs that wait; the least, the"
            " median. 1 when nobody waits.",
            ["pool", "of"],
            **r,
        )

    def _add_troubles(self) -> None:
        r: dict[str, Any] = {"registry": self.registry}
        self.events_logged = Counter(
            "fairway_events_logged_total", "Events that were added to tenants' logs.", **r
        )
        self.rows_set_aside = Counter(
            "fairway_set_aside_total",
            "Jobs or streams that the store would not read or move.",
            ["what"],
            **r,
        )
        self.set_aside = Counter(
            "fairway_ends_set_aside_total", "Ends of runs that the store refused in any form.", **r
        )
        self.storage_failures = Counter(
            "fairway_storage_failures_total", "Uses of object storage that failed.", **r
        )
        self.overtime = Counter(
            "fairway_leases_overtime_total", "Leases taken back past their job's time limit.", **r
        )
        self.recycled = Counter(
            "fairway_worker_recycled_total",
            "Processes of workers that were replaced, as these say: died, or stuck.",
            ["reason"],
            **r,
        )
        self.otlp_dropped = Counter(
            "fairway_otlp_dropped_total",
            "What was to be sent by OTLP and was not: no room, or no receiver.",
            ["signal"],
            **r,
        )

    def _add_front_door(self) -> None:
        r: dict[str, Any] = {"registry": self.registry}
        self.connections = Gauge("fairway_connections", "Open HTTP connections.", **r)
        self.connections_refused = Counter(
            "fairway_connections_refused_total",
            "Connections closed because there are too many, or for what they sent.",
            ["reason"],
            **r,
        )
        self.connections_handed = Counter(
            "fairway_connections_handed_total",
            "Connections handed to the process of this server that owns what is sent on them.",
            **r,
        )
        self.unread_bytes = Gauge(
            "fairway_unread_bytes", "Bytes of replies that wait to be read.", **r
        )
        self.waits = Gauge(
            "fairway_requests_waiting", "Event streams and held requests.", ["kind"], **r
        )
        self.body_bytes = Gauge(
            "fairway_body_bytes",
            "Bytes of large bodies under way, by whose they are.",
            ["kind"],
            **r,
        )
        self.bodies_refused = Counter(
            "fairway_bodies_refused_total",
            "Large bodies for which there was no room.",
            ["kind", "reason"],
            **r,
        )
        self.wrong_keys = Counter(
            "fairway_wrong_keys_total", "Requests with a key that is not valid.", **r
        )
        self.stalls = Histogram(
            "fairway_loop_late_seconds",
            "How late the event loop came to what was due, sampled.",
            buckets=SECONDS,
            **r,
        )
        self.stall_longest = Gauge(
            "fairway_loop_stall_seconds", "The longest stall of the event loop, last minute.", **r
        )

    def _add_alarms(self) -> None:
        """What the rules in `deploy/prometheus` compare with, besides what is above."""
        r: dict[str, Any] = {"registry": self.registry}
        self.alarms = Gauge("fairway_alarms", "Alarms that are raised.", ["name", "severity"], **r)
        self.without_worker = Gauge(
            "fairway_jobs_without_worker",
            "Jobs whose type no worker runs.",
            ["pool"],
            **r,
        )
        self.autoscale_wanted = Gauge(
            "fairway_autoscale_wanted_workers", "Workers that the pool should have.", ["pool"], **r
        )
        self.autoscale_short_of = Gauge(
            "fairway_autoscale_short_of_workers", "Workers needed past its maximum.", ["pool"], **r
        )
        self.pool_slo = Gauge(
            "fairway_pool_slo_seconds", "How soon a job of the pool should start.", ["pool"], **r
        )
        self.degraded = Gauge(
            "fairway_degraded", "Shards for whose owner this server stands in.", **r
        )
        self.shards_total = Gauge(
            "fairway_shards", "Shards that there are, whoever owns them.", **r
        )
        self.alarm_webhooks_off = Gauge(
            "fairway_alarm_webhooks_off", "Receivers of alarms that the platform gave up.", **r
        )
        self.tenants_over_baseline = Gauge(
            "fairway_tenants_over_baseline", "Tenants far above their usual hour.", **r
        )
        self.disk_free = Gauge(
            "fairway_disk_free_bytes", "Room left on the disk of the data folder.", **r
        )
        self.disk_bytes = Gauge("fairway_disk_bytes", "The size of that disk.", **r)

    def _add_times(self) -> None:
        r: dict[str, Any] = {"registry": self.registry}
        self.slow_statements = Counter(
            "fairway_slow_statements_total", "Hot statements of over a second.", ["statement"], **r
        )
        self.clock_skew = Gauge(
            "fairway_clock_skew_seconds",
            "How far the store's clock is ahead of this machine's.",
            **r,
        )
        self.promoted = Counter("fairway_jobs_promoted_total", "Scheduled jobs that came due.", **r)
        self.oldest_due = Gauge(
            "fairway_oldest_due_unpromoted_age_seconds",
            "How long the oldest due job has waited to be promoted.",
            **r,
        )
        self.late = Counter(
            "fairway_late_executions_total", "Jobs past their last moment.", ["action"], **r
        )
        self.ticks = Counter(
            "fairway_schedule_ticks_total", "Ticks of recurring schedules.", ["outcome"], **r
        )
        self.webhook_calls = Counter(
            "fairway_webhook_calls_total", "Calls of webhooks' receivers.", ["outcome"], **r
        )
        self.lateness = TypeSummary(
            "fairway_lateness_seconds", "From the due time of a job that had one to its start."
        )
        self.by_type.register(self.lateness)


def value_of(metric: Counter | Gauge) -> float:
    """Of one without labels."""
    (family,) = metric.collect()
    value: float = family.samples[0].value
    return value


class Instruments(NamedTuple):
    """What every measured part needs: a clock to read, metrics to write, spans where wanted."""

    clock: Clock
    metrics: Metrics
    otlp: Otlp | None = None

    @property
    def spans(self) -> JobSpans | None:
        return None if self.otlp is None else self.otlp.spans


class _Hide:
    """The last look at a line: no secret by its name, no row that the store quotes in an error."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def __call__(self, _: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        for name, value in line.items():
            if self._redaction.hides(name):
                line[name] = HIDDEN
            elif isinstance(value, str):
                line[name] = self._redaction.text(without_rows(value))
        return line


class _Server:
    """Says in every line which of several processes wrote it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        line.setdefault("server", self._name)
        return line


def configure_logging(
    *, json_lines: bool, level: int = logging.INFO, redacted: Iterable[str] = (), server: str = ""
) -> None:
    """Lines for people, or JSON; to stderr, so that stdout stays data.

    A line is one write: those of several processes stay whole (`lasting_output.py`).
    """
    redaction = Redaction(redacted)
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json_lines
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *([_Server(server)] if server else []),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _Hide(redaction),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    lines = JsonLines if json_lines else TextLines
    write_unclaimed(lines(redaction, server))


def log_as(options: LogOptions) -> None:
    configure_logging(
        json_lines=options.is_json,
        level=options.level,
        redacted=options.redacted,
        server=options.server,
    )


def logger(name: str) -> Any:
    return structlog.get_logger(name)
