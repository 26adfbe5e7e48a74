"""Figures of several regions: how far the others are, how old the directory is, what is held.

Labels are names of regions, of which there are few. Made only where there are regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


class RegionMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.reachable = Gauge(
            "fairway_region_reachable",
            "Whether another region answered when it was last asked.",
            ["region"],
            registry=registry,
        )
        self.latency = Gauge(
            "fairway_region_peer_latency_seconds",
            "How long the last answer of another region took.",
            ["region"],
            registry=registry,
        )
        self.lag = Gauge(
            "fairway_region_directory_lag_seconds",
            "How old this region's copy of the directory is.",
            registry=registry,
        )
        self.held = Gauge(
            "fairway_region_held_jobs",
            "Jobs in this region's store that wait for their home.",
            registry=registry,
        )
        self.in_doubt = Gauge(
            "fairway_region_held_in_doubt_jobs",
            "Of those, jobs that a region may have which gave no answer.",
            registry=registry,
        )
        self.passed_on = Counter(
            "fairway_region_passed_on_total",
            "Jobs for other regions: passed on, held, refused.",
            ["region", "result"],
            registry=registry,
        )
        self.handed_over = Counter(
            "fairway_region_handed_over_total",
            "Held jobs and schedules that their home took.",
            ["region"],
            registry=registry,
        )

    def looked(
        self, others: Iterable[str], latencies_ms: Mapping[str, float], lag_seconds: float
    ) -> None:
        for region in others:
            self.reachable.labels(region).set(region in latencies_ms)
            if region in latencies_ms:
                self.latency.labels(region).set(latencies_ms[region] / 1000)
        self.lag.set(lag_seconds)
