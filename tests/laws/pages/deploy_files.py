"""Makes what is in `deploy/`: `python -m tests.laws.pages.deploy_files` writes rules and dashboard.

The rules are the alarms' own; the dashboard is a list of panels, each one or more questions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from fairway.core.insight.prometheus_rules import rules

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "prometheus/fairway.rules.yml"
RULES_TEST = DEPLOY / "prometheus/fairway.rules.test.yml"
DASHBOARD = DEPLOY / "grafana/fairway.json"

SOURCE = {"type": "prometheus", "uid": "${source}"}
OF_POOLS = 'pool=~"$pool"'
WIDTH, HEIGHT, ACROSS = 8, 8, 3


class Panel(NamedTuple):
    title: str
    about: str
    unit: str
    questions: dict[str, str]  # what a line is called → how it is asked for


def _quantiles(metric: str) -> dict[str, str]:
    return {
        f"p{int(quantile * 100)} {{{{pool}}}}": f"histogram_quantile({quantile}, sum by (le, pool)"
        f" (rate({metric}_bucket{{{OF_POOLS}}}[$__rate_interval])))"
        for quantile in (0.5, 0.99)
    }


def _rate(metric: str, by: str = "", matching: str = "") -> str:
    chosen = f"{{{matching}}}" if matching else ""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({metric}{chosen}[$__rate_interval]))"


PANELS = (
    Panel(
        "Alarms",
        "Raised now, by name; docs/OPERATING.md has a line for each.",
        "short",
        {"{{name}}": "sum by (name, severity) (fairway_alarms) > 0"},
    ),
    Panel(
        "Oldest runnable age / SLO",
        "Above 1, jobs that could run wait longer than their pool promises.",
        "short",
        {
            "{{pool}}": f"max by (pool) (fairway_oldest_runnable_age_seconds{{{OF_POOLS}}}) / on"
            f" (pool) max by (pool) (fairway_pool_slo_seconds{{{OF_POOLS}}})"
        },
    ),
    Panel(
        "Oldest runnable age",
        "How long the oldest job waits that could run.",
        "s",
        {
            "{{pool}}": f"max by (pool) (fairway_oldest_runnable_age_seconds{{{OF_POOLS}}})",
        },
    ),
    Panel(
        "In and out",
        "Jobs accepted, leases granted, jobs that ended.",
        "ops",
        {
            "accepted": _rate("fairway_jobs_accepted_total"),
            "granted": _rate("fairway_leases_granted_total"),
            "{{outcome}}": _rate("fairway_outcomes_recorded_total", "outcome"),
        },
    ),
    Panel(
        "Queued",
        "Jobs that wait for a slot.",
        "short",
        {"{{pool}}": f"sum by (pool) (fairway_jobs_queued{{{OF_POOLS}}})"},
    ),
    Panel(
        "Without a worker",
        "Jobs whose type no worker runs, at least.",
        "short",
        {"{{pool}}": f"sum by (pool) (fairway_jobs_without_worker{{{OF_POOLS}}})"},
    ),
    Panel(
        "Slots in use",
        "Of those that live workers offer.",
        "percentunit",
        {
            "{{pool}}": f"sum by (pool) (fairway_jobs_running{{{OF_POOLS}}}) / sum by (pool)"
            f" (fairway_worker_slots{{{OF_POOLS}}})"
        },
    ),
    Panel(
        "Pick-up",
        "From acceptance to the grant of a lease.",
        "s",
        _quantiles("fairway_pickup_seconds"),
    ),
    Panel(
        "End to end",
        "From when a job was due to its recorded end.",
        "s",
        _quantiles("fairway_end_to_end_seconds"),
    ),
    Panel(
        "Retried and dead",
        "Runs that failed and are tried again; jobs that died.",
        "ops",
        {
            "retried {{pool}}": _rate("fairway_runs_retried_total", "pool", OF_POOLS),
            "dead {{pool}}": _rate("fairway_dead_letters_total", "pool", OF_POOLS),
        },
    ),
    Panel(
        "Share received / entitled",
        "Of tenants whose jobs wait; well below 1, somebody does not get its part.",
        "short",
        {
            "{{of}} {{pool}}": f"min by (pool, of) (fairway_share_received_ratio{{{OF_POOLS}}})",
        },
    ),
    Panel(
        "Workers and shards",
        "Live workers; shards with an owner, of all.",
        "short",
        {
            "workers": "sum(fairway_workers)",
            "shards owned": "sum(fairway_shards_owned)",
            "shards": "max(fairway_shards)",
        },
    ),
    Panel(
        "Held back",
        "Circuits open, job types in quarantine, tenants throttled.",
        "short",
        {"{{kind}}": "sum by (kind) (fairway_restraints)"},
    ),
    Panel(
        "Lost",
        "Leases of dead or silent workers, leases past their time, outcomes that came too late.",
        "ops",
        {
            "leases lost": _rate("fairway_leases_lost_total"),
            "past their time": _rate("fairway_leases_overtime_total"),
            "outcomes refused": _rate("fairway_outcomes_refused_total"),
        },
    ),
    Panel(
        "Refused",
        "Jobs, by the code of the problem.",
        "ops",
        {"{{code}}": _rate("fairway_jobs_refused_total", "code")},
    ),
    Panel(
        "Time",
        "Due jobs that are not yet queued, clocks apart.",
        "s",
        {
            "due, not queued": "max(fairway_oldest_due_unpromoted_age_seconds)",
            "clocks apart {{instance}}": "abs(fairway_clock_skew_seconds)",
        },
    ),
    Panel(
        "Group commit",
        "How long one takes, 99 of 100, and how many jobs share one.",
        "short",
        {
            "seconds p99 {{kind}}": "histogram_quantile(0.99, sum by (le, kind)"
            " (rate(fairway_group_commit_seconds_bucket[$__rate_interval])))",
            "jobs {{kind}}": "sum by (kind) (rate(fairway_group_commit_jobs_sum[$__rate_interval]))"
            " / sum by (kind) (rate(fairway_group_commit_jobs_count[$__rate_interval]))",
        },
    ),
    Panel(
        "Database",
        "Calls that wait for a connection; hot statements of over a second.",
        "short",
        {
            "waiting {{instance}}": "fairway_database_waiters",
            "slow {{statement}}": _rate("fairway_slow_statements_total", "statement"),
        },
    ),
    Panel(
        "Event loop",
        "The longest stall of the last minute: every request waits that long.",
        "s",
        {"{{instance}}": "fairway_loop_stall_seconds"},
    ),
    Panel(
        "Front door",
        "Open connections; those that were refused.",
        "short",
        {
            "open {{instance}}": "fairway_connections",
            "refused a second: {{reason}}": _rate("fairway_connections_refused_total", "reason"),
        },
    ),
    Panel(
        "Webhooks and events",
        "Calls of receivers by outcome; events added to tenants' logs.",
        "ops",
        {
            "calls {{outcome}}": _rate("fairway_webhook_calls_total", "outcome"),
            "events": _rate("fairway_events_logged_total"),
        },
    ),
    Panel(
        "Disk of the data folder",
        "Part in use, by server.",
        "percentunit",
        {"{{instance}}": "1 - fairway_disk_free_bytes / fairway_disk_bytes"},
    ),
)


def dashboard() -> str:
    return json.dumps(_dashboard(), indent=2, ensure_ascii=False) + "\n"


def _dashboard() -> dict[str, Any]:
    return {
        "uid": "fairway",
        "title": "Fairway",
        "tags": ["fairway"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _pools()]},
        "panels": [_panel(number, one) for number, one in enumerate(PANELS)],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _pools() -> dict[str, Any]:
    return {
        "name": "pool",
        "label": "Pool",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(fairway_jobs_queued, pool)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {
            "x": number % ACROSS * WIDTH,
            "y": number // ACROSS * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8}},
            "overrides": [],
        },
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "expr": asked,
                "legendFormat": of,
            }
            for place, (of, asked) in enumerate(panel.questions.items())
        ],
    }


if __name__ == "__main__":
    RULES.write_text(rules(), "utf-8")
    DASHBOARD.write_text(dashboard(), "utf-8")
