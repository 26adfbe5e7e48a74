"""Metrics of several processes as those of one server: pure functions of Prometheus' text format.

Counts of events are added up. Of what holds at this moment, numbers of things are added up, of ages
and of facts that every process sees alike the greatest is told, of shares the least. What the
processes before the present ones counted is carried on, so that no sum falls when one is replaced:
Prometheus would take that for a restart of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import NamedTuple

CREATED = "_created"  # when a count began: the earliest is told
EXPONENT_DIGITS = 6  # more before the point are written as a power of ten
COUNTS = frozenset({"counter", "histogram", "summary"})

ADDED = frozenset(
    {
        "fairway_jobs_queued",
        "fairway_jobs_held",
        "fairway_jobs_running",
        "fairway_jobs_without_worker",
        "fairway_worker_slots",
        "fairway_workers",
        "fairway_window_jobs",
        "fairway_restraints",
        "fairway_shards_owned",
        "fairway_database_waiters",
        "fairway_tenants_waiting",
        "fairway_connections",
        "fairway_unread_bytes",
        "fairway_requests_waiting",
        "fairway_body_bytes",
        "fairway_degraded",
    }
)
GREATEST = frozenset(
    {
        "fairway_oldest_runnable_age_seconds",
        "fairway_oldest_due_unpromoted_age_seconds",
        "fairway_loop_stall_seconds",
        "fairway_clock_skew_seconds",
        "fairway_lateness_seconds_max",
        # what every process sees alike
        "fairway_alarms",
        "fairway_alarm_webhooks_off",
        "fairway_job_types",
        "fairway_job_types_max",
        "fairway_pool_slo_seconds",
        "fairway_autoscale_wanted_workers",
        "fairway_autoscale_short_of_workers",
        "fairway_shards",
        "fairway_tenants_over_baseline",
        "fairway_disk_bytes",
        "fairway_region_peer_latency_seconds",
        "fairway_region_directory_lag_seconds",
        "fairway_region_held_jobs",
        "fairway_region_held_in_doubt_jobs",
    }
)
LEAST = frozenset(
    {"fairway_share_received_ratio", "fairway_disk_free_bytes", "fairway_region_reachable"}
)


class Family(NamedTuple):
    """One metric with its lines, in the order in which they came."""

    name: str
    kind: str
    head: list[str]  # HELP and TYPE
    samples: dict[str, float]  # by name and labels, as they stand in the text


def parsed(text: str) -> dict[str, Family]:
    """Families by name. Raises ValueError for what is no text of ours."""
    found: dict[str, Family] = {}
    family: Family | None = None
    help_line: list[str] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            help_line = [line]
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            family = found[name] = Family(name, kind, [*help_line, line], {})
        elif line:
            sample, _, value = line.rpartition(" ")
            if family is None or not sample:
                raise ValueError(f"no line of metrics: {line[:100]}")
            family.samples[sample] = float(value)
    return found


def merged(texts: Iterable[str]) -> str:
    """One text for all of these, in the shape of the first."""
    found: dict[str, Family] = {}
    for text in texts:
        for name, family in parsed(text).items():
            if name in found:
                _join(found[name], family)
            else:
                found[name] = family
    return _written(found.values())


def counts_of(text: str) -> str:
    """Only what was counted: it stays true when the process that counted is gone."""
    return _written(one for one in parsed(text).values() if _is_count(one))


def _is_count(family: Family) -> bool:
    return family.kind in COUNTS or family.name.endswith(CREATED)


def _join(into: Family, other: Family) -> None:
    joined = _rule(into)
    for sample, value in other.samples.items():
        known = into.samples.get(sample)
        into.samples[sample] = value if known is None else joined((known, value))


def _rule(family: Family) -> Callable[[Sequence[float]], float]:
    if family.name.endswith(CREATED) or family.name in LEAST:
        return min
    return max if family.name in GREATEST else sum


def _written(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for family in families:
        lines += family.head
        lines += (f"{sample} {_number(value)}" for sample, value in family.samples.items())
    return "".join(f"{line}\n" for line in lines)


def _number(value: float) -> str:
    """As Prometheus' own library writes it."""
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    point = text.find(".")
    if value <= 0 or point <= EXPONENT_DIGITS:
        return text
    mantissa = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
    return f"{mantissa}e+0{point - 1}"
