"""The alarms for Prometheus: one alert for each, with the same thresholds and the same patience.

Metrics name no tenant, so a rule says how many tenants are over their baseline and not which.
Needs Prometheus 2.42 or newer (`keep_firing_for`).
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.core.insight.alarm_readings import (
    DEAD_PER_SECOND_MIN,
    LOST_WINDOW_SECONDS,
    RATE_WINDOW_SECONDS,
)
from fairway.core.insight.alarms import ALARMS, Alarm

HEAD = """\
# Alerts of Fairway, made from its alarms (core/insight/alarms.py); do not edit.
# Queues, leases and workers are told by the server that owns them: rules sum over servers.
"""
_ENDS = 'fairway_outcomes_recorded_total{outcome=~"succeeded|dead|cancelled|expired"}'
_DEATHS = 'fairway_outcomes_recorded_total{outcome="dead"}'
_RATES = f"[{RATE_WINDOW_SECONDS:.0f}s]"
_AGES = (
    "max by (pool) (fairway_oldest_runnable_age_seconds)"
    " > on (pool) {threshold:g} * max by (pool) (fairway_pool_slo_seconds)"
)
_DISK = "1 - fairway_disk_free_bytes / fairway_disk_bytes > {threshold:g}"

#: Alarm → what is asked of Prometheus, and what is said with its labels and value.
EXPRESSIONS: dict[str, tuple[str, str]] = {
    "OLDEST_AGE_OVER_SLO": (
        _AGES,
        "The oldest job of the pool {{ $labels.pool }} has waited {{ $value | humanizeDuration }}.",
    ),
    "OLDEST_AGE_FAR_OVER_SLO": (
        _AGES,
        "The oldest job of the pool {{ $labels.pool }} has waited {{ $value | humanizeDuration }}.",
    ),
    "PROMOTER_LAG": (
        "max(fairway_oldest_due_unpromoted_age_seconds) > {threshold:g}",
        "The oldest due job has waited {{ $value | humanizeDuration }} to be queued.",
    ),
    "DEAD_LETTER_RATE": (
        f"sum(rate({_DEATHS}{_RATES})) / sum(rate({_ENDS}{_RATES})) > {{threshold:g}}"
        f" and sum(rate({_DEATHS}{_RATES})) >= {DEAD_PER_SECOND_MIN:g}",
        "{{ $value | humanizePercentage }} of the jobs that ended in the last minutes are dead;"
        " GET /v1/alarms says whether they are one tenant's.",
    ),
    "CIRCUIT_OPEN": (
        'sum(fairway_restraints{kind="circuit"}) > {threshold:g}',
        "Circuits open: {{ $value }}.",
    ),
    "SHARD_WITHOUT_OWNER": (
        "max(fairway_shards) - sum(fairway_shards_owned) > {threshold:g}",
        "Shards without an owner: {{ $value }}.",
    ),
    "REGION_AWAY": (
        "1 - min by (region) (fairway_region_reachable) > {threshold:g}",
        "The region {{ $labels.region }} gives no answer.",
    ),
    "WORKERS_LOST": (
        f"sum(increase(fairway_leases_lost_total[{LOST_WINDOW_SECONDS:.0f}s])) > {{threshold:g}}",
        "Runs lost with dead or silent workers in the last minutes: {{ $value | humanize }}.",
    ),
    "POOL_WITHOUT_WORKERS": (
        "sum by (pool) (fairway_jobs_queued) > {threshold:g}"
        " unless on (pool) sum by (pool) (fairway_worker_slots) > 0",
        "{{ $value }} jobs wait in the pool {{ $labels.pool }}, and no worker serves it.",
    ),
    "NO_WORKER_FOR_TYPE": (
        "sum by (pool) (fairway_jobs_without_worker) > {threshold:g}"
        " and on (pool) sum by (pool) (fairway_worker_slots) > 0",
        "{{ $value }} jobs wait in the pool {{ $labels.pool }} whose type no worker runs.",
    ),
    "AUTOSCALE_AT_MAXIMUM": (
        "max by (pool) (fairway_autoscale_short_of_workers) > {threshold:g}",
        "The pool {{ $labels.pool }} needs {{ $value }} workers beyond its maximum.",
    ),
    "ALARM_WEBHOOK_OFF": (
        "max(fairway_alarm_webhooks_off) > {threshold:g}",
        "Receivers of alarms that were switched off: {{ $value }}.",
    ),
    "TENANT_OVER_BASELINE": (
        "max(fairway_tenants_over_baseline) > 0",
        "Tenants over {threshold:g} times their usual hour: {{ $value }}; GET /v1/alarms names"
        " them.",
    ),
    "DISK_LOW": (_DISK, "{{ $value | humanizePercentage }} of the disk is used."),
    "DISK_NEARLY_FULL": (_DISK, "{{ $value | humanizePercentage }} of the disk is used."),
}


def rules() -> str:
    """The file of rules, as text."""
    return HEAD + "groups:\n  - name: fairway\n    rules:\n" + "".join(map(_rule, ALARMS))


def alert_name(alarm: Alarm) -> str:
    """As Prometheus writes names: `FairwayCircuitOpen`."""
    return "Fairway" + "".join(word.capitalize() for word in alarm.name.split("_"))


def _rule(alarm: Alarm) -> str:
    return "".join(f"      {line}\n" for line in _lines(alarm))


def _lines(alarm: Alarm) -> Iterator[str]:
    expression, text = (_filled(part, alarm) for part in EXPRESSIONS[alarm.name])
    yield f"- alert: {alert_name(alarm)}"
    yield f"  expr: {_quoted(expression)}"
    yield f"  for: {alarm.hold_seconds:.0f}s"
    yield f"  keep_firing_for: {alarm.clear_seconds:.0f}s"
    yield "  labels:"
    yield f"    severity: {alarm.severity}"
    yield "  annotations:"
    yield f"    summary: {_quoted(alarm.means)}"
    yield f"    description: {_quoted(text)}"
    yield f"    runbook: {_quoted(alarm.runbook)}"


def _filled(text: str, alarm: Alarm) -> str:
    """Prometheus' own braces stay as they are."""
    return text.replace("{threshold:g}", f"{alarm.threshold:g}")


def _quoted(text: str) -> str:
    """YAML's plain quotes: only a quote inside is doubled."""
    return "'" + text.replace("'", "''") + "'"
